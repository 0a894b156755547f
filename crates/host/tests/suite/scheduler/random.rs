//! Scripts of the random world. A failure prints its seed.

use proptest::prelude::*;
use zonelab_device::{Command, Nanos};
use zonelab_host::Rng;
use zonelab_host::scheduler::{
    MqDeadlineSettings, RequestId, Scheduler, SchedulerSpec, ZincSettings, ZincThrottle,
};

use super::INFO;
use super::world::{Habits, World, random_spec};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// What the interface promises, and what is particular to each scheduler.
    #[test]
    fn every_scheduler_keeps_its_promises(
        seed: u64, late_timers: bool, switches: bool, retries: bool, prompt: bool,
    ) {
        let habits = Habits { late_timers, switches, retries, prompt, one_management: false };
        let spec = random_spec(&mut Rng::new(seed, 1));
        World::new(seed, habits, spec).run(600);
    }

    /// The bound on holding back, which [`World`] checks where timers are exact.
    #[test]
    fn zinc_holds_nothing_longer_than_it_says(seed: u64) {
        let habits = Habits { prompt: true, ..Habits::default() };
        let mut rng = Rng::new(seed, 1);
        let spec = loop {
            let spec = random_spec(&mut rng);
            if let SchedulerSpec::Zinc(_) = spec {
                break spec;
            }
        };
        World::new(seed, habits, spec).run(1_500);
    }

    /// Below its concurrency, and with one management command at a time, zinc
    /// does what mq-deadline does.
    #[test]
    fn zinc_is_mq_deadline_below_its_concurrency(seed: u64, retries: bool, prompt: bool) {
        let habits = Habits { retries, prompt, one_management: true, ..Habits::default() };
        let throttle = ZincThrottle { min_concurrency: 65_536, ..ZincThrottle::default() };
        let settings = ZincSettings {
            reset: throttle,
            finish: throttle,
            ..ZincSettings::default()
        };
        let deadline = SchedulerSpec::MqDeadline(settings.deadline);
        let build = |spec: SchedulerSpec| spec.build(&INFO).expect("in range");
        let twins = Twins(build(deadline), build(SchedulerSpec::Zinc(settings)));
        World::with(seed, habits, deadline, Box::new(twins)).run(600);
    }
}

/// The scripts do merge, and do come to an end with work done.
#[test]
fn the_world_is_busy() {
    let spec = SchedulerSpec::MqDeadline(MqDeadlineSettings::default());
    let world = World::new(1, Habits::default(), spec).run(10_000);
    let (merged, completed) = (world.merged, world.completed);
    assert!(completed > 8_000, "{completed} completed");
    assert!(merged > 800, "{merged} of {completed} merged");
    assert!(world.now > Nanos::from_secs(1));
}

/// Two schedulers that must not be told apart.
struct Twins(Box<dyn Scheduler>, Box<dyn Scheduler>);

impl Scheduler for Twins {
    fn name(&self) -> &'static str {
        "twins"
    }

    fn insert(&mut self, now: Nanos, id: RequestId, command: Command) {
        self.0.insert(now, id, command);
        self.1.insert(now, id, command);
    }

    fn dispatch(&mut self, now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        let mut others = Vec::new();
        let other = self.1.dispatch(now, &mut others);
        let command = self.0.dispatch(now, carried);
        assert_eq!((command, &*carried), (other, &others), "the twins differ");
        command
    }

    fn completed(&mut self, now: Nanos, command: &Command) {
        self.0.completed(now, command);
        self.1.completed(now, command);
    }

    fn next_timer(&self) -> Option<Nanos> {
        let timers = (self.0.next_timer(), self.1.next_timer());
        assert_eq!(timers, (None, None), "nothing is held back");
        None
    }

    fn waiting(&self) -> usize {
        assert_eq!(self.0.waiting(), self.1.waiting());
        self.0.waiting()
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        self.0.drain(waiting);
    }
}
