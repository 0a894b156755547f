//! In-band authentication (base specification 2.0, sections 6.2 and 8.13): who
//! has which secret, and the gate between a queue and its commands.
//!
//! Every queue of an I/O controller has a gate if authentication is required,
//! and is let through by a transaction of its own. Until then all commands but
//! Authentication Send and Receive fail with Authentication Required, those
//! of properties too. Later transactions are a host that authenticates itself
//! anew. The queue works on meanwhile; if one fails, it ends.
//!
//! A key exchange takes milliseconds. It is done by whoever drives the subsystem,
//! wherever there is time for it: as a [`Calculation`], which the Authentication
//! Send that needs it waits for.
//!
//! Discovery controllers require nothing, as those of Linux do not: a host
//! learns name and address of a subsystem, and is then asked there.

use core::fmt;
use std::collections::BTreeSet;

use zonelab_auth::{
    AuthError, Calculation as Work, Controller, GROUPS, HASHES, NoRandom, Outcome, Parties, Random,
};
use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::auth::{DhGroup, Hash, Secret};
use zonelab_nvme::fabrics::{
    AuthenticationReceive, AuthenticationSend, FabricsCommand, SecurityProtocol,
};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;

use super::admin::expect_length;
use super::failure::{Failure, byte};
use super::plan::check_flags;
use super::settings::nqn;
use super::state::{Kind, Life};
use super::{Answer, Layer, QueueHandle, SettingsError, Subsystem};

/// How long a transaction may take. The longest exchange (ffdhe8192) takes a
/// machine without hardware virtualisation seconds.
const TIME_LIMIT: Nanos = Nanos::from_secs(30);

/// A host, and the secrets that it shares with the subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSecret {
    /// Qualified name of the host.
    pub hostnqn: String,
    /// By which the host is authenticated.
    pub host: Secret,
    /// By which the controller is authenticated, if the host asks for that.
    pub controller: Option<Secret>,
}

/// Fills a slice with random bytes that nobody can guess.
pub type RandomSource = Box<dyn FnMut(&mut [u8]) -> Result<(), NoRandom> + Send>;

/// What a subsystem needs to authenticate its hosts.
pub struct Authentication {
    /// The hosts that may connect.
    pub hosts: Vec<HostSecret>,
    /// Where challenges and exponents come from.
    pub random: RandomSource,
    /// Hash functions that a host may use, those that are preferred first.
    pub hashes: Vec<Hash>,
    /// Diffie-Hellman groups that a host may use, those that are preferred first.
    pub groups: Vec<DhGroup>,
    /// Longest time from the Connect command, or from the begin of a later
    /// transaction, to its end.
    pub time_limit: Nanos,
    /// Sequence number of the last challenge; 0: there was none.
    seqnum: u32,
    /// Number of the last calculation.
    calculations: u64,
}

impl Authentication {
    /// All hash functions and groups, and 30 s for each transaction.
    #[must_use]
    pub fn new(hosts: Vec<HostSecret>, random: RandomSource) -> Self {
        Self {
            hosts,
            random,
            hashes: HASHES.to_vec(),
            groups: GROUPS.to_vec(),
            time_limit: TIME_LIMIT,
            seqnum: 0,
            calculations: 0,
        }
    }

    pub(super) fn host(&self, hostnqn: &str) -> Option<&HostSecret> {
        self.hosts.iter().find(|host| host.hostnqn == hostnqn)
    }

    /// A transaction with a host, which the host has to begin.
    fn transaction(&mut self, hostnqn: &str, subnqn: &str) -> Result<Controller, Failure> {
        let host = self.host(hostnqn);
        let host = host.ok_or(Failure::from(Status::OPERATION_DENIED))?;
        let parties = Parties {
            host_nqn: host.hostnqn.clone(),
            subsystem_nqn: subnqn.to_owned(),
            host_secret: host.host.clone(),
            controller_secret: host.controller.clone(),
        };
        let no_random = |_: NoRandom| Failure::from(Status::INTERNAL_ERROR);
        let random = Random::draw(&mut self.random).map_err(no_random)?;
        if self.seqnum == 0 {
            // The first number is random, the others follow it.
            let mut first = [0; 4];
            (self.random)(&mut first).map_err(no_random)?;
            self.seqnum = u32::from_le_bytes(first);
        }
        self.seqnum = self.seqnum.wrapping_add(1).max(1);
        let accepted = (&self.hashes[..], &self.groups[..]);
        Ok(Controller::accepting(
            parties,
            random,
            self.seqnum,
            accepted,
        ))
    }
}

impl fmt::Debug for Authentication {
    /// Who, and not by which secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication")
            .field("hosts", &self.hosts.len())
            .field("hashes", &self.hashes)
            .field("groups", &self.groups)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}

/// What the transaction of a queue needs to have calculated, wherever there is
/// time for it: [`Subsystem::calculated`] takes the result.
#[derive(Clone, Debug)]
pub struct Calculation {
    queue: QueueHandle,
    number: u64,
    work: Work,
}

impl Calculation {
    /// Whose it is.
    #[must_use]
    pub const fn queue(&self) -> QueueHandle {
        self.queue
    }

    /// Does it, which takes milliseconds.
    #[must_use]
    pub fn run(&self) -> Calculated {
        Calculated {
            queue: self.queue,
            number: self.number,
            outcome: self.work.run(),
        }
    }
}

/// What came of a [`Calculation`].
#[derive(Debug)]
pub struct Calculated {
    queue: QueueHandle,
    number: u64,
    outcome: Outcome,
}

/// What a queue gives access to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: its host has not authenticated itself, or it is closed.
    None,
    /// The discovery log.
    Discovery,
    /// The drive.
    Drive,
}

/// Why a queue was not let through its gate, and ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAuthenticated {
    /// A transaction failed.
    #[error("authentication failed: {0}")]
    Failed(AuthError),
    /// A transaction was not over in time.
    #[error("it did not authenticate itself in time")]
    Late,
}

/// What stands between a queue and its commands.
pub(super) struct Gate {
    is_open: bool,
    /// The transaction that runs, or the last one.
    transaction: Option<Controller>,
    /// When the transaction has to be over; `None`: none runs.
    pub(super) due: Option<Nanos>,
    failure: Option<NotAuthenticated>,
    /// The Authentication Send that waits for a calculation: its identifier, and
    /// the number of the calculation.
    waiting: Option<(u16, u64)>,
}

impl Gate {
    fn new(due: Nanos) -> Self {
        Self {
            is_open: false,
            transaction: None,
            due: Some(due),
            failure: None,
            waiting: None,
        }
    }

    /// Whether commands pass.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    fn outgoing(&self) -> Option<&[u8]> {
        self.transaction.as_ref()?.outgoing()
    }

    /// Whether the queue is to end: there was a failure, and the host knows.
    fn is_over(&self) -> bool {
        match self.failure {
            None => false,
            Some(NotAuthenticated::Failed(AuthError::Refused(_)) | NotAuthenticated::Late) => true,
            Some(NotAuthenticated::Failed(_)) => self.outgoing().is_none(),
        }
    }

    /// Takes a message of the host.
    fn receive(&mut self, message: &[u8]) {
        let Some(transaction) = &mut self.transaction else {
            return;
        };
        let received = transaction.receive(message);
        self.note(received);
    }

    /// Takes what came of a calculation.
    fn calculated(&mut self, outcome: Outcome) {
        self.waiting = None;
        let Some(transaction) = &mut self.transaction else {
            return;
        };
        let calculated = transaction.calculated(outcome);
        self.note(calculated);
    }

    /// Notes how far the transaction is.
    fn note(&mut self, result: Result<(), AuthError>) {
        if let Err(error) = result {
            self.failure = Some(NotAuthenticated::Failed(error));
        } else if self
            .transaction
            .as_ref()
            .is_some_and(Controller::is_authenticated)
        {
            self.is_open = true;
            self.due = None;
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("is_open", &self.is_open)
            .field("due", &self.due)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Whether each host has a name, and is there once.
pub(super) fn check_names(hosts: &[HostSecret]) -> Result<(), SettingsError> {
    let mut names = BTreeSet::new();
    for host in hosts {
        nqn("hosts", &host.hostnqn)?;
        if !names.insert(&host.hostnqn) {
            return Err(SettingsError::HostTwice(host.hostnqn.clone()));
        }
    }
    Ok(())
}

/// The only protocol is that of NVMe.
fn check_protocol(protocol: SecurityProtocol) -> Result<(), Failure> {
    let SecurityProtocol { secp, spsp0, spsp1 } = SecurityProtocol::NVME;
    for (at, is_right) in [
        (1, protocol.spsp0 == spsp0),
        (2, protocol.spsp1 == spsp1),
        (3, protocol.secp == secp),
    ] {
        if !is_right {
            return Err(Failure::field(byte::CDW10 + at));
        }
    }
    Ok(())
}

impl<L: Layer> Subsystem<L> {
    /// From now on, lets in only hosts that have a secret and show that they
    /// know it. Queues that there are stay as they are.
    ///
    /// # Errors
    /// [`SettingsError`]: a name is none, or is there twice.
    pub fn require_authentication(&mut self, by: Authentication) -> Result<(), SettingsError> {
        check_names(&by.hosts)?;
        self.authentication = Some(by);
        Ok(())
    }

    /// Whether hosts have to authenticate themselves.
    #[must_use]
    pub const fn requires_authentication(&self) -> bool {
        self.authentication.is_some()
    }

    /// Why a queue that is being closed was not let through its gate; `None` if
    /// that is not why it ends. Until [`Subsystem::disconnect`].
    #[must_use]
    pub fn not_authenticated(&mut self, queue: QueueHandle) -> Option<NotAuthenticated> {
        self.queues.get_mut(queue.0)?.gate.as_ref()?.failure
    }

    /// Whether a host of that name may connect at all.
    pub(super) fn lets_in(&self, hostnqn: &str) -> bool {
        let has_secret = |by: &Authentication| by.host(hostnqn).is_some();
        self.settings.allows(hostnqn)
            && self.authentication.as_ref().is_none_or(has_secret)
            && self
                .hosts
                .as_ref()
                .is_none_or(|hosts| hosts.find(hostnqn).is_some())
    }

    /// Puts a gate before a new queue, if there has to be one.
    pub(super) fn shut(&mut self, queue: u32) -> bool {
        let Some(by) = &self.authentication else {
            return false;
        };
        let due = self.now.saturating_add(by.time_limit);
        self.queues.at(queue).gate = Some(Box::new(Gate::new(due)));
        self.find_alarm();
        true
    }

    /// What becomes of a command at the gate of its queue; `None`: it passes.
    pub(super) fn at_gate(
        &mut self,
        queue: u32,
        entry: &SubmissionEntry,
        data: Option<&[u8]>,
        data_len: u32,
    ) -> Option<Result<Answer, Failure>> {
        let is_open = self.queues.at(queue).gate.as_ref()?.is_open;
        let is_fabrics = entry.cdw0.opc() == AdminOpcode::FABRICS.0;
        let command = is_fabrics.then(|| FabricsCommand::parse(entry));
        match command {
            Some(Ok(FabricsCommand::AuthenticationSend(send))) => {
                let checked = check_flags(entry);
                let cid = entry.cdw0.cid();
                Some(checked.and_then(|()| self.authentication_send((queue, cid), send, data)))
            }
            Some(Ok(FabricsCommand::AuthenticationReceive(receive))) => {
                let checked = check_flags(entry);
                Some(checked.and_then(|()| self.authentication_receive(queue, receive, data_len)))
            }
            _ if is_open => None,
            _ => Some(Err(Failure::from(
                FabricsStatus::AUTHENTICATION_REQUIRED.status(),
            ))),
        }
    }

    fn authentication_send(
        &mut self,
        (queue, cid): (u32, u16),
        send: AuthenticationSend,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        check_protocol(send.protocol)?;
        if send.tl == 0 {
            return Err(Failure::field(byte::CDW11));
        }
        let message = expect_length(data, send.tl as usize)?;
        let of = self.queues.at(queue);
        let slot = of.controller;
        let Some(gate) = &mut of.gate else {
            return Err(Failure::at(Status::INVALID_OPCODE, byte::NSID));
        };
        if gate.waiting.is_some() || gate.failure.is_some() {
            // One message at a time. A failure is told by Authentication Receive, and
            // then the queue ends.
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        if gate
            .transaction
            .as_ref()
            .is_none_or(Controller::is_authenticated)
        {
            self.begin(queue, slot)?;
        }
        if let Some(gate) = &mut self.queues.at(queue).gate {
            gate.receive(message);
        }
        self.find_alarm();
        if self.calculate((queue, cid)) {
            return Ok(Answer::Later);
        }
        Ok(Answer::value(0))
    }

    /// Has done what a transaction needs to go on; the command ends with it.
    fn calculate(&mut self, (queue, cid): (u32, u16)) -> bool {
        let Some(gate) = &mut self.queues.at(queue).gate else {
            return false;
        };
        let transaction = gate.transaction.as_mut();
        let Some(work) = transaction.and_then(Controller::calculation) else {
            return false;
        };
        let Some(by) = &mut self.authentication else {
            return false;
        };
        by.calculations += 1;
        let number = by.calculations;
        gate.waiting = Some((cid, number));
        self.calculations.push_back(Calculation {
            queue: QueueHandle(queue),
            number,
            work,
        });
        true
    }

    /// Takes a calculation that a command needs which was submitted.
    pub fn take_calculation(&mut self) -> Option<Calculation> {
        self.calculations.pop_front()
    }

    /// Takes the result of a calculation: the command that needs it ends.
    pub fn calculated(&mut self, now: Nanos, result: Calculated) {
        self.now = self.now.max(now);
        let queue = result.queue.0;
        let of = self.queues.get_mut(queue);
        let Some(of) = of.filter(|of| of.life == Life::Open) else {
            return;
        };
        let Some(gate) = &mut of.gate else {
            return;
        };
        // The queue may be another one of the same number.
        let waiting = gate.waiting.filter(|(_, number)| *number == result.number);
        let Some((cid, _)) = waiting else {
            return;
        };
        gate.calculated(result.outcome);
        of.end(cid);
        self.post(
            queue,
            CompletionEntry::new(cid, Status::SUCCESS),
            None,
            None,
        );
        self.find_alarm();
        self.end_or_take_place(queue);
    }

    /// What a queue gives access to by now.
    #[must_use]
    pub fn access(&mut self, queue: QueueHandle) -> Access {
        let Some(of) = self.queues.get_mut(queue.0) else {
            return Access::None;
        };
        let is_shut = of.gate.as_ref().is_some_and(|gate| !gate.is_open);
        if of.life != Life::Open || is_shut {
            return Access::None;
        }
        let slot = of.controller;
        match self.controllers.at(slot).kind {
            Kind::Io => Access::Drive,
            Kind::Discovery => Access::Discovery,
        }
    }

    /// Whether a command may come at all through the gate of its queue.
    pub(super) fn passes_gate(&mut self, queue: u32, entry: &SubmissionEntry) -> bool {
        let gate = self.queues.at(queue).gate.as_ref();
        if gate.is_none_or(|gate| gate.is_open) {
            return true;
        }
        let is_fabrics = entry.cdw0.opc() == AdminOpcode::FABRICS.0;
        let command = is_fabrics.then(|| FabricsCommand::parse(entry));
        matches!(
            command,
            Some(Ok(
                FabricsCommand::AuthenticationSend(_) | FabricsCommand::AuthenticationReceive(_)
            ))
        )
    }

    /// Begins a transaction on a queue.
    fn begin(&mut self, queue: u32, slot: u32) -> Result<(), Failure> {
        let hostnqn = self.controllers.at(slot).hostnqn;
        let by = self.authentication.as_mut();
        let by = by.ok_or(Failure::from(Status::INTERNAL_ERROR))?;
        let hostnqn = hostnqn.as_str().unwrap_or_default();
        let transaction = by.transaction(hostnqn, &self.settings.nqn)?;
        let due = self.now.saturating_add(by.time_limit);
        if let Some(gate) = &mut self.queues.at(queue).gate {
            gate.transaction = Some(transaction);
            // The time of the first one runs since the queue was made.
            gate.due.get_or_insert(due);
        }
        Ok(())
    }

    fn authentication_receive(
        &mut self,
        queue: u32,
        receive: AuthenticationReceive,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        check_protocol(receive.protocol)?;
        if receive.al == 0 {
            return Err(Failure::field(byte::CDW11));
        }
        if receive.al != data_len {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let gate = self.queues.at(queue).gate.as_mut();
        let transaction = gate.and_then(|gate| gate.transaction.as_mut());
        // A host that asks for a message before it has sent one.
        let nothing = Failure::from(Status::COMMAND_SEQUENCE_ERROR);
        let transaction = transaction.ok_or(nothing)?;
        let length = transaction.outgoing().ok_or(nothing)?.len();
        if length > receive.al as usize {
            return Err(Failure::field(byte::CDW11));
        }
        let message = transaction.send().unwrap_or_default();
        let mut buf = self.pool.take(receive.al as usize);
        let (head, rest) = buf.split_at_mut(message.len());
        head.copy_from_slice(&message);
        // The buffer had other data before, maybe of another host.
        rest.fill(0);
        Ok(Answer::data(buf))
    }

    /// Ends a queue whose gate will not open.
    pub(super) fn end_if_refused(&mut self, queue: u32) {
        let of = self.queues.at(queue);
        if of.life != Life::Open || !of.gate.as_ref().is_some_and(|gate| gate.is_over()) {
            return;
        }
        let (slot, qid) = (of.controller, of.qid);
        if qid == 0 {
            self.drop_controller(slot);
        } else {
            self.controllers.at(slot).leave_place(qid, queue);
            self.close(queue);
            self.find_alarm();
        }
    }

    /// Ends the queues whose hosts have not authenticated themselves in time.
    pub(super) fn end_late_transactions(&mut self) {
        let now = self.now;
        let is_late = |gate: &Gate| gate.due.is_some_and(|due| due <= now);
        let late: Vec<u32> = self
            .queues
            .iter()
            .filter(|(_, of)| of.life == Life::Open && of.gate.as_deref().is_some_and(is_late))
            .map(|(queue, _)| queue)
            .collect();
        for queue in late {
            if let Some(gate) = &mut self.queues.at(queue).gate {
                gate.failure.get_or_insert(NotAuthenticated::Late);
                // What waits for the host is not fetched any more.
                gate.transaction = None;
            }
            self.end_if_refused(queue);
        }
    }
}
