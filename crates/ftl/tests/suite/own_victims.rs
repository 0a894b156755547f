//! Rules for victims from outside of the crate: built-in ones written again collect the
//! same zones, and answers that make no sense end the layer with a typed error.

use crate::support::layer;
use std::rc::Rc;

use crate::support::layer::{Fuse, Machine, Main};
use zonelab_device::{Command, Lba, Op};
use zonelab_ftl::{
    FtlError, FtlSettings, Metrics, OwnVictims, Policy, VictimCandidate, VictimPolicy,
};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_ssd::config::DataStore;

/// A rule, as a function of the candidates.
struct Rule(fn(&[VictimCandidate]) -> usize);

impl core::fmt::Debug for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Rule")
    }
}

impl VictimPolicy for Rule {
    fn name(&self) -> &str {
        "rule"
    }

    fn choose(&mut self, candidates: &[VictimCandidate]) -> Result<usize, FtlError> {
        Ok(self.0(candidates))
    }
}

fn best(candidates: &[VictimCandidate], key: impl Fn(&VictimCandidate) -> (u64, u64)) -> usize {
    let keys = candidates.iter().map(key).enumerate();
    keys.min_by_key(|(_, key)| *key).map_or(0, |(at, _)| at)
}

/// Overwrites a full namespace three times over. What was done, and when it was over.
fn run(settings: FtlSettings) -> (Metrics, String, Option<FtlError>) {
    let mut config = layer::drive(64, 64);
    config.data = DataStore::None;
    let mut machine = Machine::new(&config);
    let settings = FtlSettings {
        keeps_data: false,
        device_copy: false,
        ..settings
    };
    let ftl = machine.mount(layer::format(0.07), &settings);
    let user = u64::from(ftl.shape().logical_blocks);
    let never = Fuse::after(u64::MAX, 0);
    let main: Main = Box::new(move |io| Box::pin(overwrite(io, user)));
    let ftl = machine.run(ftl, &never, vec![main]);
    let totals = machine
        .drive
        .with_drive(|drive| format!("{:?}", drive.totals()));
    (
        ftl.metrics(),
        format!("{totals} {}", machine.now),
        ftl.failure(),
    )
}

async fn overwrite(io: Io, blocks: u64) {
    let rng = Rc::new(std::cell::RefCell::new(Rng::new(7, 0)));
    let workers = (0..8).map(|_| {
        let (own, rng) = (io.clone(), Rc::clone(&rng));
        io.spawn(async move {
            for _ in 0..3 * blocks / 8 {
                let slba = Lba(rng.borrow_mut().below(blocks));
                let write = Command::new(Op::Write { slba, nlb: 1 });
                let _ = own.run(write, None).await.expect("the device is there");
            }
        })
    });
    futures_util::future::join_all(workers.collect::<Vec<_>>()).await;
}

fn own(rule: fn(&[VictimCandidate]) -> usize) -> FtlSettings {
    FtlSettings {
        own_victims: Some(OwnVictims::new(move || Box::new(Rule(rule)))),
        ..FtlSettings::default()
    }
}

fn built_in(victims: Policy) -> FtlSettings {
    FtlSettings {
        victims,
        ..FtlSettings::default()
    }
}

/// The position of a victim among candidates.
type Choose = fn(&[VictimCandidate]) -> usize;

#[test]
fn built_in_rules_from_outside_collect_the_same_zones() {
    let rules: [(Policy, Choose); 2] = [
        (Policy::Greedy, |of| {
            best(of, |of| (u64::from(of.valid), of.closed_as))
        }),
        (Policy::Fifo, |of| best(of, |of| (of.closed_as, 0))),
    ];
    let mut seen = Vec::new();
    for (policy, rule) in rules {
        let native = run(built_in(policy));
        assert!(native.0.moved_blocks > 0, "{policy} moves something");
        assert_eq!(native, run(own(rule)), "{policy}");
        seen.push(native.1);
    }
    assert_ne!(seen[0], seen[1], "the rules are not the same");
}

#[test]
fn a_zone_that_is_no_candidate_ends_the_layer_with_an_error() {
    let (_, _, failure) = run(own(<[_]>::len));
    let text = failure.expect("there is no such candidate").to_string();
    assert!(
        text.starts_with("victims by rule: it chose candidate"),
        "{text}"
    );
}

#[test]
fn settings_with_the_same_rule_are_equal() {
    let settings = own(|_| 0);
    assert_eq!(settings, settings.clone());
    assert_ne!(settings, own(|_| 0));
}
