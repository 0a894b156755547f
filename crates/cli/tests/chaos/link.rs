//! The connection of a host: the project's own initiator, through a proxy.

use zonelab_device::{Buf, Command, Completion, Nanos, Op, QueuePair as _, RejectReason, Tag};
use zonelab_driver::tcp::ProtocolError;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{
    Controller as _, DriverError, IoQueue as _, Options, TcpController, TcpQueue,
};
use zonelab_nvme::Status;

use super::arena::Arena;
use super::counts::{add, count};
use super::dice::Dice;
use super::events::Known;
use super::stage::{Beat, Stage};

/// Longest time of a command: one that takes longer hangs.
const COMMAND_TIMEOUT: Nanos = Nanos::from_secs(120);
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(60);
/// How often a host that waits looks after its admin queue.
const LOOK: Nanos = Nanos::from_ms(500);
/// Between two tries to connect.
const RETRY: Nanos = Nanos::from_ms(20);

/// The connection is gone, as it may be at any time.
#[derive(Debug)]
pub(crate) struct Lost;

pub(crate) struct Link {
    controller: TcpController,
    queue: TcpQueue,
    in_flight: usize,
    pub(crate) known: Known,
}

/// Panics if the error says that something hung: everything else is what proxies and ends of the
/// server do to a host.
fn check(what: &str, error: &DriverError) {
    let hangs = matches!(
        error,
        DriverError::NotReady { .. }
            | DriverError::Protocol(
                ProtocolError::CommandTimeout { .. } | ProtocolError::OpenTimeout
            )
    );
    assert!(!hangs, "{what} hangs: {error}");
    // Bytes are delayed, cut off and sent one by one, and none is changed.
    let is_wrong = matches!(
        error,
        DriverError::Protocol(error) if !matches!(error, ProtocolError::CommandTimeout { .. })
    );
    assert!(!is_wrong, "{what}: the server broke the protocol: {error}");
}

impl Link {
    /// Connects, however often that takes. `None`: all is over.
    pub(crate) fn connect(
        (arena, stage): (&Arena, &Stage),
        host: u32,
        dice: &mut Dice,
        beat: &Beat,
    ) -> Option<Self> {
        beat.doing("it connects");
        while !stage.is_over() {
            let [hdgst, ddgst] = [dice.below(2), dice.below(2)];
            let url = format!(
                "tcp://{}/{}?hostnqn=nqn.2014-08.org.nvmexpress:uuid:7a6f6e65-6c61-4b00-8000-\
                 {host:012x}&hdgst={hdgst}&ddgst={ddgst}",
                arena.proxy(),
                arena.nqn()
            );
            let mut options = Options::new(TcpAddress::parse(&url).unwrap());
            options.command_timeout = COMMAND_TIMEOUT;
            options.connect_timeout = CONNECT_TIMEOUT;
            // Whoever waits looks at it twice in a second.
            options.kato_ms = 60_000;
            let before = arena.events.marks();
            let connected = TcpController::connect(options).and_then(|mut controller| {
                let queue = controller.open_queue()?;
                Ok((controller, queue))
            });
            match connected {
                Ok((controller, queue)) => {
                    count(&stage.counts.associations);
                    let established = arena.events.marks();
                    return Some(Self {
                        controller,
                        queue,
                        in_flight: 0,
                        known: Known {
                            before,
                            established,
                        },
                    });
                }
                Err(error) => {
                    check("connecting", &error);
                    count(&stage.counts.refusals);
                    stage.pause(RETRY);
                }
            }
        }
        None
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Blocks of the namespace.
    pub(crate) fn size_lbas(&self) -> u64 {
        self.queue.info().namespaces[0].size_lbas
    }

    /// Submits a command, which is sent by [`Self::next`].
    pub(crate) fn submit(&mut self, op: Op, tag: u32, data: Option<Buf>) -> Result<(), Lost> {
        let taken = self.queue.submit(Command::new(op), Tag(tag), data);
        match taken.map_err(|rejected| rejected.reason) {
            Ok(()) => {
                self.in_flight += 1;
                Ok(())
            }
            Err(RejectReason::Disconnected) => Err(Lost),
            Err(reason) => panic!("{op:?} is not taken: {reason}"),
        }
    }

    /// Waits for commands that end, and moves them to `done`. If the connection is lost, those
    /// that are left get no answer.
    pub(crate) fn next(
        &mut self,
        stage: &Stage,
        beat: &Beat,
        done: &mut Vec<Completion>,
    ) -> Result<(), Lost> {
        beat.doing("it waits for its commands");
        loop {
            self.queue.ring();
            self.queue.poll(done);
            if let Some(error) = self.queue.error() {
                check("a command", error);
                // Our own, for what was in flight.
                done.retain(|completion| completion.status != Status::HOST_PATHING_ERROR);
                add(&stage.counts.commands, done.len() as u64);
                add(
                    &stage.counts.unanswered,
                    (self.in_flight - done.len()) as u64,
                );
                count(&stage.counts.losses);
                return Err(Lost);
            }
            if let Err(error) = self.controller.keep_alive() {
                check("a keep alive", &error);
                self.queue.abandon();
                continue;
            }
            if !done.is_empty() {
                self.in_flight -= done.len();
                add(&stage.counts.commands, done.len() as u64);
                return Ok(());
            }
            if stage.is_over() {
                return Err(Lost);
            }
            let until = self.queue.now().saturating_add(LOOK);
            // The next look meets an error, too.
            let _ = self.queue.wait(until);
        }
    }

    /// Does one command to its end.
    pub(crate) fn run(
        &mut self,
        op: Op,
        data: Option<Buf>,
        (stage, beat): (&Stage, &Beat),
    ) -> Result<Completion, Lost> {
        self.submit(op, 0, data)?;
        let mut done = Vec::new();
        self.next(stage, beat, &mut done)?;
        let completion = done.pop().expect("a command has ended");
        match completion.status {
            // The queue had ended, and its connection does so too.
            Status::ABORTED_SQ_DELETION => Err(Lost),
            _ => Ok(completion),
        }
    }

    /// Leaves in good order.
    pub(crate) fn leave(self, beat: &Beat) {
        beat.doing("it leaves");
        self.queue.close();
        if let Err(error) = self.controller.disconnect() {
            check("leaving", &error);
        }
    }
}
