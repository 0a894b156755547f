//! The controller's end.

use zonelab_nvme::auth::{
    AuthId, AuthType, Challenge, DhGroup, Failure, FailureExplanation, Hash, MessageHeader,
    Negotiate, ProtocolDescriptor, Reply, SecureChannel, Success1,
};
use zonelab_nvme::zerocopy::FromZeros;

use zeroize::Zeroizing;

use crate::calculation::{Calculation, Outcome};
use crate::response::{self, Challenged};
use crate::{AuthError, GROUPS, HASHES, Parties, Random, challenge, expect, split, take};

/// What a controller does to authenticate the host of a queue.
///
/// [`Controller::receive`] takes the messages of Authentication Send commands,
/// [`Controller::send`] gives those for Authentication Receive commands. A
/// message with a Diffie-Hellman exchange needs a [`Calculation`], which takes
/// milliseconds: [`Controller::calculation`] gives it, to be done wherever there
/// is time, and [`Controller::calculated`] takes what came of it. Until then
/// there is nothing to send.
#[derive(Clone)]
pub struct Controller {
    parties: Parties,
    random: Random,
    seqnum: u32,
    accepted: (Vec<Hash>, Vec<DhGroup>),
    state: State,
    /// The message that the host may fetch.
    outgoing: Option<Vec<u8>>,
    calculation: Option<Calculation>,
}

#[derive(Clone)]
enum State {
    Idle,
    /// Waits for its own public value.
    Choosing {
        t_id: u16,
        hash: Hash,
        group: DhGroup,
    },
    /// Waits for the shared secret, to check this message.
    Checking {
        t_id: u16,
        hash: Hash,
        group: DhGroup,
        reply: Vec<u8>,
    },
    Challenged {
        t_id: u16,
        hash: Hash,
        group: DhGroup,
    },
    /// Waits for the host's word on the controller's response.
    Responded {
        t_id: u16,
    },
    Authenticated,
    Failed(AuthError),
}

impl Controller {
    /// A transaction that the host has to begin. `seqnum` numbers the challenges
    /// of a controller; 0 counts as 1.
    #[must_use]
    pub fn new(parties: Parties, random: Random, seqnum: u32) -> Self {
        Self::accepting(parties, random, seqnum, (&HASHES, &GROUPS))
    }

    /// The same with these hashes and groups, those that it prefers first.
    #[must_use]
    pub fn accepting(
        parties: Parties,
        random: Random,
        seqnum: u32,
        (hashes, groups): (&[Hash], &[DhGroup]),
    ) -> Self {
        Self {
            parties,
            random,
            seqnum: seqnum.max(1),
            accepted: (hashes.to_vec(), groups.to_vec()),
            state: State::Idle,
            outgoing: None,
            calculation: None,
        }
    }

    /// Whether the host has shown that it knows the secret.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        matches!(self.state, State::Authenticated)
    }

    /// Why the transaction has failed, if it has: the connection is to end.
    #[must_use]
    pub fn failure(&self) -> Option<AuthError> {
        match self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The message that waits for the host, if one does, to look at.
    #[must_use]
    pub fn outgoing(&self) -> Option<&[u8]> {
        self.outgoing.as_deref()
    }

    /// Takes the message that waits for the host, if one does.
    pub fn send(&mut self) -> Option<Vec<u8>> {
        self.outgoing.take()
    }

    /// Takes a message of the host. After an error, [`Controller::send`] gives
    /// AUTH_Failure1.
    ///
    /// # Errors
    /// Why the transaction has failed.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), AuthError> {
        if let State::Failed(error) = self.state {
            // It has been said.
            return Err(error);
        }
        let result = self.handle(message);
        let t_id = split::<MessageHeader>(message).map_or(0, |(header, _)| header.t_id.get());
        self.concluded(t_id, result)
    }

    /// Keeps an error, and tells the host of it.
    fn concluded(&mut self, t_id: u16, result: Result<(), AuthError>) -> Result<(), AuthError> {
        if let Err(error) = result {
            self.state = State::Failed(error);
            self.calculation = None;
            let failure = Failure::of_controller(t_id, error.explanation());
            self.outgoing = Some(crate::message(&failure, &[]));
        }
        result
    }

    /// Takes the calculation that it needs to go on.
    pub fn calculation(&mut self) -> Option<Calculation> {
        self.calculation.take()
    }

    /// Whether it waits for the outcome of a calculation.
    #[must_use]
    pub fn is_calculating(&self) -> bool {
        matches!(self.state, State::Choosing { .. } | State::Checking { .. })
    }

    /// Takes what came of its calculation, and goes on. After an error,
    /// [`Controller::send`] gives AUTH_Failure1.
    ///
    /// # Errors
    /// Why the transaction has failed.
    pub fn calculated(&mut self, outcome: Outcome) -> Result<(), AuthError> {
        let refused = AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD);
        let value = outcome.0.map_err(|_| refused);
        let state = core::mem::replace(&mut self.state, State::Idle);
        let (t_id, result) = match state {
            State::Choosing { t_id, hash, group } => (
                t_id,
                value.map(|value| self.challenge(t_id, (hash, group), &value)),
            ),
            State::Checking {
                t_id,
                hash,
                group,
                reply,
            } => {
                let checked =
                    value.and_then(|shared| self.check(t_id, (hash, group), &reply, Some(&shared)));
                (t_id, checked)
            }
            // It waits for none.
            other => {
                self.state = other;
                return Ok(());
            }
        };
        self.concluded(t_id, result)
    }

    fn handle(&mut self, message: &[u8]) -> Result<(), AuthError> {
        let (header, _) = split::<MessageHeader>(message)?;
        let t_id = header.t_id.get();
        let is_common = header.auth_type == AuthType::COMMON;
        let is_chap = header.auth_type == AuthType::DH_HMAC_CHAP;
        match (&self.state, header.auth_id) {
            (State::Idle, AuthId::NEGOTIATE) if is_common => self.negotiate(t_id, message),
            (
                &State::Challenged {
                    t_id: own,
                    hash,
                    group,
                },
                AuthId::REPLY,
            ) if is_chap && own == t_id => self.reply(t_id, (hash, group), message),
            (&State::Responded { t_id: own }, AuthId::SUCCESS2) if is_chap && own == t_id => {
                self.state = State::Authenticated;
                Ok(())
            }
            (_, AuthId::FAILURE2) if is_common => {
                let (failure, _) = split::<Failure>(message)?;
                Err(AuthError::Refused(failure.explanation))
            }
            _ => Err(AuthError::Message(FailureExplanation::INCORRECT_MESSAGE)),
        }
    }

    fn negotiate(&mut self, t_id: u16, message: &[u8]) -> Result<(), AuthError> {
        let (negotiate, mut rest) = split::<Negotiate>(message)?;
        expect(
            negotiate.sc_c == SecureChannel::NONE,
            FailureExplanation::SECURE_CHANNEL_MISMATCH,
        )?;
        let mut chosen = Err(AuthError::Message(FailureExplanation::PROTOCOL_NOT_USABLE));
        for _ in 0..negotiate.napd {
            let (descriptor, others) = split::<ProtocolDescriptor>(rest)?;
            rest = others;
            if descriptor.authid == ProtocolDescriptor::DH_HMAC_CHAP {
                chosen = self.choose(&descriptor);
                break;
            }
        }
        let (hash, group) = chosen?;
        if group == DhGroup::NULL {
            self.challenge(t_id, (hash, group), &[]);
        } else {
            self.calculation = Some(Calculation::public_value(group, &self.random.exponent));
            self.state = State::Choosing { t_id, hash, group };
        }
        Ok(())
    }

    /// Challenges the host, with the public `value` of the controller.
    fn challenge(&mut self, t_id: u16, (hash, group): (Hash, DhGroup), value: &[u8]) {
        let start = Challenge {
            header: MessageHeader::new(AuthId::CHALLENGE, t_id),
            hl: hash.bytes().unwrap_or_default(),
            hashid: hash,
            dhgid: group,
            dhvlen: (value.len() as u16).into(),
            seqnum: self.seqnum.into(),
            ..Challenge::new_zeroed()
        };
        self.outgoing = Some(crate::message(
            &start,
            &[challenge(&self.random, hash), value],
        ));
        self.state = State::Challenged { t_id, hash, group };
    }

    fn reply(
        &mut self,
        t_id: u16,
        (hash, group): (Hash, DhGroup),
        message: &[u8],
    ) -> Result<(), AuthError> {
        let (reply, rest) = split::<Reply>(message)?;
        let is_sound = Some(reply.hl) == hash.bytes() && Some(reply.dhvlen.get()) == group.bytes();
        expect(is_sound, FailureExplanation::INCORRECT_PAYLOAD)?;
        let (_, rest) = take(rest, 2 * usize::from(reply.hl))?;
        let (value, _) = take(rest, usize::from(reply.dhvlen.get()))?;
        if group == DhGroup::NULL {
            return self.check(t_id, (hash, group), message, None);
        }
        let exponent = &self.random.exponent;
        self.calculation = Some(Calculation::shared_secret(group, value, exponent));
        self.state = State::Checking {
            t_id,
            hash,
            group,
            reply: message.to_vec(),
        };
        Ok(())
    }

    /// Checks the response in a reply whose lengths are right, with the shared
    /// secret of the exchange if there was one.
    fn check(
        &mut self,
        t_id: u16,
        (hash, _): (Hash, DhGroup),
        message: &[u8],
        shared: Option<&Zeroizing<Vec<u8>>>,
    ) -> Result<(), AuthError> {
        let (reply, rest) = split::<Reply>(message)?;
        let (of_host, rest) = take(rest, usize::from(reply.hl))?;
        let (to_controller, _) = take(rest, usize::from(reply.hl))?;
        let augment = |challenge: &[u8]| match shared {
            Some(shared) => response::augmented(hash, challenge, shared),
            None => challenge.to_vec(),
        };
        let Parties {
            host_nqn,
            subsystem_nqn,
            ..
        } = &self.parties;
        let expected = Challenged {
            hash,
            challenge: &augment(challenge(&self.random, hash)),
            seqnum: self.seqnum,
            t_id,
            role: "HostHost",
            names: [host_nqn, subsystem_nqn],
        };
        if !response::are_equal(&expected.response(&self.parties.host_key()), of_host) {
            return Err(AuthError::WrongResponse);
        }
        let own = match (reply.cvalid, self.parties.controller_key()) {
            (0, _) => None,
            (1, Some(key)) => {
                let asked = Challenged {
                    challenge: &augment(to_controller),
                    seqnum: reply.seqnum.get(),
                    role: "Controller",
                    names: [subsystem_nqn, host_nqn],
                    ..expected
                };
                Some(asked.response(&key))
            }
            // It is asked for what it does not know.
            (1, None) => return Err(AuthError::WrongResponse),
            _ => return Err(AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD)),
        };
        let start = Success1 {
            header: MessageHeader::new(AuthId::SUCCESS1, t_id),
            hl: reply.hl,
            rvalid: u8::from(own.is_some()),
            ..Success1::new_zeroed()
        };
        self.state = match own {
            Some(_) => State::Responded { t_id },
            None => State::Authenticated,
        };
        self.outgoing = Some(crate::message(&start, &[&own.unwrap_or_default()]));
        Ok(())
    }

    /// The hash and the group that are preferred of those that the host offers.
    fn choose(&self, offered: &ProtocolDescriptor) -> Result<(Hash, DhGroup), AuthError> {
        let payload = AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD);
        let (hashes, groups) = (
            offered.hashes().ok_or(payload)?,
            offered.groups().ok_or(payload)?,
        );
        let mut accepted = self.accepted.0.iter().copied();
        let hash = accepted.find(|hash| hashes.contains(hash));
        let mut accepted = self.accepted.1.iter().copied();
        let group = accepted.find(|group| groups.contains(group));
        Ok((
            hash.ok_or(AuthError::Message(FailureExplanation::HASH_NOT_USABLE))?,
            group.ok_or(AuthError::Message(FailureExplanation::DH_GROUP_NOT_USABLE))?,
        ))
    }
}
