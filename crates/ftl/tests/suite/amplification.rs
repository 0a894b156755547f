//! Write amplification in the steady state, against what analysis says.
//!
//! The analysis knows one pool of zones, of which one is emptied whenever one is needed.
//! So its physical space is that of zones that hold data: not the free ones, and of the
//! two that are being written (by programs and by the collector, which do not share one)
//! what is written.

use crate::support::layer;
use std::rc::Rc;

use crate::support::layer::{Fuse, Machine, Main};
use zonelab_device::{Command, Lba, Op};
use zonelab_ftl::{FtlSettings, Metrics, Policy};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_ssd::config::DataStore;

/// What a run in the steady state came to.
struct Steady {
    amplification: f64,
    /// Blocks that are written, over blocks that programs see.
    physical_over_user: f64,
}

/// Overwrites a full namespace with uniformly random blocks until the amplification is
/// steady, and then for as long again.
fn run(victims: Policy, spare: f64, zones: u32, zone_blocks: u64, seed: u64) -> Steady {
    let mut config = layer::drive(zones, zone_blocks);
    config.data = DataStore::None;
    let mut machine = Machine::new(&config);
    let settings = FtlSettings {
        victims,
        keeps_data: false,
        device_copy: false,
        seed,
        ..FtlSettings::default()
    };
    let mut ftl = machine.mount(layer::format(spare), &settings);
    let shape = ftl.shape().clone();
    let user = u64::from(shape.logical_blocks);
    let never = Fuse::after(u64::MAX, 0);
    let fill: Main = Box::new(move |io| Box::pin(fill(io, user)));
    ftl = machine.run(ftl, &never, vec![fill]);
    let mut before = ftl.metrics();
    let mut windows: Vec<Metrics> = Vec::new();
    let mut closed = 0.0;
    for window in 0..10 {
        let rng = Rng::new(seed, window);
        let main: Main = Box::new(move |io| Box::pin(overwrite(io, user, user / 2, rng)));
        ftl = machine.run(ftl, &never, vec![main]);
        let now = ftl.metrics();
        windows.push(now.since(&before));
        before = now;
        let free = now.free_zones + now.active_zones;
        closed += f64::from(shape.data_zones() - free) / 10.0;
    }
    let steady = &windows[5..];
    let host: u64 = steady.iter().map(|window| window.host_blocks).sum();
    let moved: u64 = steady.iter().map(|window| window.moved_blocks).sum();
    // Of the two zones that are written, half is written on average.
    let written = (closed + 1.0) * f64::from(shape.data_blocks());
    Steady {
        amplification: (host + moved) as f64 / host as f64,
        physical_over_user: written / user as f64,
    }
}

async fn fill(io: Io, blocks: u64) {
    let mut next = 0;
    while next < blocks {
        let nlb = (blocks - next).min(64);
        let op = Op::Write {
            slba: Lba(next),
            nlb: nlb as u32,
        };
        layer::good(&io, op, None).await;
        next += nlb;
    }
}

async fn overwrite(io: Io, blocks: u64, count: u64, rng: Rng) {
    let rng = Rc::new(std::cell::RefCell::new(rng));
    let workers = (0..16).map(|_| {
        let (own, rng) = (io.clone(), Rc::clone(&rng));
        io.spawn(async move {
            for _ in 0..count / 16 {
                let slba = Lba(rng.borrow_mut().below(blocks));
                let write = Command::new(Op::Write { slba, nlb: 1 });
                let answer = own.run(write, None).await.expect("the device is there");
                assert!(answer.status.is_success());
            }
        })
    });
    futures_util::future::join_all(workers.collect::<Vec<_>>()).await;
}

/// Lambert's W0 for `x` in (-1/e, 0), by Newton's method.
fn lambert_w0(x: f64) -> f64 {
    let mut w = x;
    for _ in 0..200 {
        let e = libm::exp(w);
        let next = w - (w * e - x) / (e * (w + 1.0));
        if (next - w).abs() < 1e-14 {
            return next;
        }
        w = next;
    }
    w
}

/// Xiang and Kurkoski (2012): greedy collection under uniform writes, large zones.
fn greedy(a: f64) -> f64 {
    a / (a + lambert_w0(-a * libm::exp(-a)))
}

/// Van Houdt (2013): the victim has the fewest valid blocks of `d` zones that are drawn;
/// zones of `b` blocks, in the limit of many of them. The shares of zones with 0 to b
/// valid blocks are followed in time until they are steady. (Host and collector have a
/// zone each here: with uniform writes that makes no difference to the model.)
fn d_choices(a: f64, d: i32, b: usize) -> f64 {
    let mean = b as f64 / a;
    // All zones are nearly alike at first, with the mean that never changes.
    let mut shares = vec![0.0; b + 1];
    let below = mean as usize;
    shares[below] = 1.0 - (mean - below as f64);
    shares[below + 1] = mean - below as f64;
    let mut amplification = 0.0_f64;
    for step in 0..4_000_000 {
        // P(the fewest of d is j) from the shares of at least j.
        let mut at_least = 0.0;
        let mut chosen = vec![0.0; b + 1];
        for j in (0..=b).rev() {
            let before = libm::pow(at_least, d.into());
            at_least += shares[j];
            chosen[j] = libm::pow(f64::min(at_least, 1.0), d.into()) - before;
        }
        let moved: f64 = chosen.iter().zip(0..).map(|(p, j)| p * f64::from(j)).sum();
        let gained = b as f64 - moved;
        let slice = 0.2 / (gained * a);
        for j in 0..=b {
            let above = shares.get(j + 1).copied().unwrap_or(0.0) * (j + 1) as f64;
            let lost = gained / mean * (above - shares[j] * j as f64);
            let full = f64::from(u8::from(j == b));
            shares[j] += slice * (lost + full - chosen[j]);
        }
        let now = b as f64 / gained;
        if step % 4096 == 4095 {
            if (now - amplification).abs() < 1e-5 {
                return now;
            }
            amplification = now;
        }
    }
    unreachable!("it becomes steady with few choices")
}

/// Says how far apart they are, and that it is not too far.
fn compare(what: &str, steady: &Steady, expected: f64) {
    let found = steady.amplification;
    let error = found / expected - 1.0;
    let a = steady.physical_over_user;
    println!(
        "{what}: a = {a:.4}, {found:.3} found, {expected:.3} expected, {:+.1} %",
        100.0 * error
    );
    assert!(
        error.abs() < 0.03,
        "{what}: {found:.3} found, {expected:.3} expected at a = {a:.4}"
    );
}

#[test]
fn greedy_is_as_analysis_says() {
    for spare in [0.07, 0.15, 0.28] {
        let steady = run(Policy::Greedy, spare, 300, 512, 1);
        let expected = greedy(steady.physical_over_user);
        compare(&format!("greedy, spare {spare}"), &steady, expected);
    }
}

#[test]
fn first_in_first_out_is_as_analysis_says() {
    // The same formula, at any size of zones (Desnoyers 2012, "LRU").
    for spare in [0.07, 0.28] {
        let steady = run(Policy::Fifo, spare, 300, 256, 2);
        let expected = greedy(steady.physical_over_user);
        compare(&format!("fifo, spare {spare}"), &steady, expected);
    }
}

#[test]
fn choices_are_as_analysis_says() {
    for (d, spare) in [(2, 0.15), (3, 0.15), (10, 0.28)] {
        let steady = run(Policy::DChoices { d }, spare, 300, 128, 3);
        let expected = d_choices(steady.physical_over_user, d as i32, 127);
        compare(&format!("{d} choices, spare {spare}"), &steady, expected);
    }
}

#[test]
fn finite_zones_are_better_than_the_limit() {
    // Bux and Iliadis (2010): with few blocks to a zone, the emptiest zone has fewer
    // valid blocks than in the limit. (With zones much smaller still, the writes under
    // way count.)
    let steady = run(Policy::Greedy, 0.15, 300, 128, 4);
    let limit = greedy(steady.physical_over_user);
    assert!(
        steady.amplification < limit,
        "{} < {limit}",
        steady.amplification
    );
}
