//! The host's end.

use zonelab_nvme::auth::{
    AuthId, AuthType, Challenge, DhGroup, Failure, FailureExplanation, Hash, MessageHeader,
    Negotiate, ProtocolDescriptor, Reply, SecureChannel, Success1, Success2,
};
use zonelab_nvme::zerocopy::FromZeros;

use crate::response::{self, Challenged};
use crate::{
    AuthError, GROUPS, HASHES, Parties, Random, challenge, expect, group, message, split, take,
};

/// What a host does to authenticate itself for a queue, and the controller if
/// the parties have a secret for that.
///
/// [`Host::send`] gives the messages for Authentication Send commands; after
/// each but the last, an Authentication Receive command fetches what
/// [`Host::receive`] takes.
#[derive(Clone)]
pub struct Host {
    parties: Parties,
    random: Random,
    t_id: u16,
    offer: (Vec<Hash>, Vec<DhGroup>),
    state: State,
    outgoing: Option<Vec<u8>>,
}

#[derive(Clone)]
enum State {
    Negotiating,
    /// The response that the controller has to give, if it was challenged.
    Replied {
        hash: Hash,
        expected: Option<Vec<u8>>,
    },
    Authenticated,
    Failed(AuthError),
}

impl Host {
    /// The transaction `t_id` of a host. Its first message is ready.
    #[must_use]
    pub fn new(parties: Parties, random: Random, t_id: u16) -> Self {
        Self::offering(parties, random, t_id, (&HASHES, &GROUPS))
    }

    /// The same with these hashes and groups, those that it prefers first.
    #[must_use]
    pub fn offering(
        parties: Parties,
        random: Random,
        t_id: u16,
        (hashes, groups): (&[Hash], &[DhGroup]),
    ) -> Self {
        let start = Negotiate {
            header: MessageHeader::new(AuthId::NEGOTIATE, t_id),
            sc_c: SecureChannel::NONE,
            napd: 1,
        };
        let descriptor = ProtocolDescriptor::new(hashes, groups);
        let first = message(
            &start,
            &[zonelab_nvme::zerocopy::IntoBytes::as_bytes(&descriptor)],
        );
        Self {
            parties,
            random,
            t_id,
            offer: (hashes.to_vec(), groups.to_vec()),
            state: State::Negotiating,
            outgoing: Some(first),
        }
    }

    /// Whether both ends have shown what they had to.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        matches!(self.state, State::Authenticated)
    }

    /// Why the transaction has failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<AuthError> {
        match self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The message that is to be sent, if one is.
    pub fn send(&mut self) -> Option<Vec<u8>> {
        self.outgoing.take()
    }

    /// Takes a message of the controller. After an error of which it does not
    /// know yet, [`Host::send`] gives AUTH_Failure2.
    ///
    /// # Errors
    /// Why the transaction has failed.
    pub fn receive(&mut self, message: &[u8]) -> Result<(), AuthError> {
        if let State::Failed(error) = self.state {
            // It has been said.
            return Err(error);
        }
        let result = self.handle(message);
        if let Err(error) = result {
            self.state = State::Failed(error);
            self.outgoing = match error {
                AuthError::Refused(_) => None,
                _ => {
                    let failure = Failure::of_host(self.t_id, error.explanation());
                    Some(crate::message(&failure, &[]))
                }
            };
        }
        result
    }

    fn handle(&mut self, message: &[u8]) -> Result<(), AuthError> {
        let (header, _) = split::<MessageHeader>(message)?;
        if header.auth_type == AuthType::COMMON && header.auth_id == AuthId::FAILURE1 {
            let (failure, _) = split::<Failure>(message)?;
            return Err(AuthError::Refused(failure.explanation));
        }
        let is_ours = header.auth_type == AuthType::DH_HMAC_CHAP && header.t_id == self.t_id;
        expect(is_ours, FailureExplanation::INCORRECT_MESSAGE)?;
        match (&self.state, header.auth_id) {
            (State::Negotiating, AuthId::CHALLENGE) => self.challenged(message),
            (State::Replied { hash, expected }, AuthId::SUCCESS1) => {
                let (start, rest) = split::<Success1>(message)?;
                match expected {
                    None => self.state = State::Authenticated,
                    Some(expected) => {
                        let is_sound = start.rvalid == 1 && Some(start.hl) == hash.bytes();
                        expect(is_sound, FailureExplanation::INCORRECT_PAYLOAD)?;
                        let (of_controller, _) = take(rest, usize::from(start.hl))?;
                        if !response::are_equal(expected, of_controller) {
                            return Err(AuthError::WrongResponse);
                        }
                        let last = Success2 {
                            header: MessageHeader::new(AuthId::SUCCESS2, self.t_id),
                            ..Success2::new_zeroed()
                        };
                        self.outgoing = Some(crate::message(&last, &[]));
                        self.state = State::Authenticated;
                    }
                }
                Ok(())
            }
            _ => Err(AuthError::Message(FailureExplanation::INCORRECT_MESSAGE)),
        }
    }

    fn challenged(&mut self, message: &[u8]) -> Result<(), AuthError> {
        let (start, rest) = split::<Challenge>(message)?;
        let (hash, group) = (start.hashid, start.dhgid);
        let (hashes, groups) = &self.offer;
        expect(hashes.contains(&hash), FailureExplanation::HASH_NOT_USABLE)?;
        expect(
            groups.contains(&group),
            FailureExplanation::DH_GROUP_NOT_USABLE,
        )?;
        let has_lengths = Some(start.hl) == hash.bytes();
        expect(has_lengths, FailureExplanation::INCORRECT_PAYLOAD)?;
        let (to_host, rest) = take(rest, usize::from(start.hl))?;
        let (theirs, _) = take(rest, usize::from(start.dhvlen.get()))?;
        let shared = match group {
            DhGroup::NULL => {
                expect(theirs.is_empty(), FailureExplanation::INCORRECT_PAYLOAD)?;
                None
            }
            _ => Some(
                group::shared_secret(group, theirs, &self.random.exponent)
                    .map_err(|_| AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD))?,
            ),
        };
        let value = group::public_value(group, &self.random.exponent).unwrap_or_default();
        let augment = |challenge: &[u8]| match &shared {
            Some(shared) => response::augmented(hash, challenge, shared),
            None => challenge.to_vec(),
        };
        let Parties {
            host_nqn,
            subsystem_nqn,
            ..
        } = &self.parties;
        let asked = Challenged {
            hash,
            challenge: &augment(to_host),
            seqnum: start.seqnum.get(),
            t_id: self.t_id,
            role: "HostHost",
            names: [host_nqn, subsystem_nqn],
        };
        let own = asked.response(&self.parties.host_key());
        let to_controller = challenge(&self.random, hash);
        let key = self.parties.controller_key();
        // A number of its own, as the controller's: not 0, which means none.
        let seqnum = u32::from(key.is_some()) * (u32::from(self.t_id) + 1);
        let expected = key.map(|key| {
            Challenged {
                challenge: &augment(to_controller),
                seqnum,
                role: "Controller",
                names: [subsystem_nqn, host_nqn],
                ..asked
            }
            .response(&key)
        });
        let reply = Reply {
            header: MessageHeader::new(AuthId::REPLY, self.t_id),
            hl: start.hl,
            cvalid: u8::from(expected.is_some()),
            dhvlen: (value.len() as u16).into(),
            seqnum: seqnum.into(),
            ..Reply::new_zeroed()
        };
        self.outgoing = Some(crate::message(&reply, &[&own, to_controller, &value]));
        self.state = State::Replied { hash, expected };
        Ok(())
    }
}
