//! How long a command takes that does nothing: what the way to a device costs.

use std::sync::atomic::AtomicBool;

use zonelab_device::{Command, Completion, NamespaceId, Nanos, Op, QueuePair, Tag};
use zonelab_host::stats::Latency;
use zonelab_host::{Job, NextWake};
use zonelab_lab::device::{Site, run_alone};

/// Commands that are measured.
pub const EMPTY_COMMANDS: u64 = 2_000;

/// Commands before, so that caches and sockets are warm.
const WARM_UP: u64 = 200;

/// Measures how long a Flush takes on a device at rest, one after another: there
/// is nothing to be made durable, so that is the way there and back.
///
/// # Errors
/// The device refuses it: a text that says so.
pub fn empty_commands<S: Site>(site: &mut S, namespace: NamespaceId) -> Result<Latency, String> {
    let mut job = Flushes {
        namespace,
        done: 0,
        submitted: Nanos::ZERO,
        latency: Latency::new(),
        failure: None,
    };
    run_alone(site, 1, &mut job, &AtomicBool::new(false))?;
    match job.failure {
        Some(failure) => Err(format!("a Flush failed: {failure}")),
        None => Ok(job.latency),
    }
}

struct Flushes {
    namespace: NamespaceId,
    done: u64,
    submitted: Nanos,
    latency: Latency,
    failure: Option<String>,
}

impl Job for Flushes {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.iter() {
            if !completion.status.is_success() {
                self.failure = Some(completion.status.to_string());
                return NextWake::Finished;
            }
            self.done += 1;
            if self.done > WARM_UP {
                self.latency
                    .record(completion.at.saturating_sub(self.submitted));
            }
        }
        if self.done == WARM_UP + EMPTY_COMMANDS {
            return NextWake::Finished;
        }
        self.submitted = queue.now();
        let nsid = self.namespace;
        let op = Op::Flush;
        if let Err(refused) = queue.submit(Command::on(nsid, op), Tag(0), None) {
            self.failure = Some(refused.reason.to_string());
            return NextWake::Finished;
        }
        queue.ring();
        NextWake::Completion
    }
}
