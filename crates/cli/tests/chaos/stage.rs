//! What all that takes part shares: the phase, the clock, the counts, and who is stuck.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use zonelab_device::{Monotonic, Nanos};

use super::counts::Counts;

/// How long anything may take. Far more than it takes on a machine with much else to do: it only
/// tells what hangs from what is slow.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(180);

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All at once. With `has_kills`, servers end too.
    Storm { has_kills: bool },
    /// Nobody disturbs. Hosts look at everything, leave, and rest; neighbours leave and rest.
    Calm,
    /// It is over.
    End,
}

struct State {
    phase: Phase,
    resting: usize,
    failures: Vec<String>,
}

/// Who takes part, and when it last got on.
struct Pulse {
    name: String,
    doing: &'static str,
    /// `None`: it rests, or has ended.
    since: Option<Nanos>,
}

pub(crate) struct Stage {
    pub(crate) seed: u64,
    pub(crate) clock: Monotonic,
    pub(crate) counts: Counts,
    state: Mutex<State>,
    changed: Condvar,
    pulses: Mutex<Vec<Pulse>>,
}

impl Stage {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            seed,
            clock: Monotonic::new(),
            counts: Counts::default(),
            state: Mutex::new(State {
                phase: Phase::Calm,
                resting: 0,
                failures: Vec::new(),
            }),
            changed: Condvar::new(),
            pulses: Mutex::new(Vec::new()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The phase. Once something has failed, all is over.
    pub(crate) fn phase(&self) -> Phase {
        let state = self.state();
        match state.failures.is_empty() {
            true => state.phase,
            false => Phase::End,
        }
    }

    pub(crate) fn is_storm(&self) -> bool {
        matches!(self.phase(), Phase::Storm { .. })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase() == Phase::End
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        state.resting = 0;
        self.changed.notify_all();
    }

    pub(crate) fn fail(&self, message: String) {
        self.state().failures.push(message);
        self.changed.notify_all();
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        self.state().failures.clone()
    }

    /// Lets time pass, but no longer than this phase lasts.
    pub(crate) fn pause(&self, span: Nanos) {
        let phase = self.phase();
        let until = self.clock.now().saturating_add(span);
        let mut state = self.state();
        loop {
            let left = until.saturating_sub(self.clock.now());
            let has_changed = state.phase != phase || !state.failures.is_empty();
            if left == Nanos::ZERO || has_changed {
                return;
            }
            let left = Duration::from_nanos(left.0);
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until all of `actors` rest, something has failed, or a second has passed. True if
    /// they rest.
    pub(crate) fn all_rest(&self, actors: usize) -> bool {
        let state = self.state();
        let is_waiting = |state: &mut State| state.resting < actors && state.failures.is_empty();
        let second = Duration::from_secs(1);
        let waited = self.changed.wait_timeout_while(state, second, is_waiting);
        waited.unwrap().0.resting >= actors
    }

    /// Who has not got on for too long.
    pub(crate) fn stuck(&self) -> Option<String> {
        let now = self.clock.now();
        let pulses = self.pulses.lock().unwrap();
        pulses.iter().find_map(|pulse| {
            let span = now.saturating_sub(pulse.since?);
            let Pulse { name, doing, .. } = pulse;
            (span > PATIENCE).then(|| format!("{name} hangs: {doing}, for {span}"))
        })
    }

    /// Starts somebody. If it panics, everything ends.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce(&Beat) + Send + 'static,
    ) -> JoinHandle<()> {
        let stage = Arc::clone(self);
        let mut pulses = self.pulses.lock().unwrap();
        let beat = Beat {
            stage: Arc::clone(self),
            index: pulses.len(),
        };
        pulses.push(Pulse {
            name: name.clone(),
            doing: "it starts",
            since: Some(self.clock.now()),
        });
        std::thread::spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| run(&beat)));
            beat.set("it has ended", None);
            if let Err(panic) = ended {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref().map(|text: &&str| (*text).into()));
                let text = text.unwrap_or_else(|| "a panic without a message".to_owned());
                stage.fail(format!("{name}: {text}"));
            }
        })
    }
}

/// By which somebody says that it gets on.
pub(crate) struct Beat {
    stage: Arc<Stage>,
    index: usize,
}

impl Beat {
    fn set(&self, doing: &'static str, since: Option<Nanos>) {
        let pulse = &mut self.stage.pulses.lock().unwrap()[self.index];
        (pulse.doing, pulse.since) = (doing, since);
    }

    /// It begins with something, which may not take longer than [`PATIENCE`].
    pub(crate) fn doing(&self, what: &'static str) {
        self.set(what, Some(self.stage.clock.now()));
    }

    /// Rests until it is no longer calm.
    pub(crate) fn rest(&self) {
        self.set("it rests", None);
        let mut state = self.stage.state();
        state.resting += 1;
        self.stage.changed.notify_all();
        let is_calm = |state: &mut State| state.phase == Phase::Calm && state.failures.is_empty();
        drop(self.stage.changed.wait_while(state, is_calm).unwrap());
        self.doing("it goes on");
    }
}
