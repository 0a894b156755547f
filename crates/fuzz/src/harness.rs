//! Runs targets over seeds and files, and says how to replay a failure.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use zonelab_host::{Clock, RealClock};

use crate::Target;

/// An input that takes longer than this is a failure: something does not end.
pub const HANG: Duration = Duration::from_secs(60);

/// While set, targets do not explain their failures: there will be many, and
/// none is the last.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether a target that fails should keep it to itself.
#[must_use]
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// [`seeded`] made it from this seed.
    Seed(u64),
    /// It is the content of this file.
    File(PathBuf),
}

/// An input on which a target failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the target.
    pub target: &'static str,
    /// Where the input comes from.
    pub origin: Origin,
    /// Its length.
    pub bytes: usize,
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            origin,
            bytes,
            message,
        } = self;
        let (from, replay) = match origin {
            Origin::Seed(seed) => (format!("seed {seed}"), format!("--seed {seed} --runs 1")),
            Origin::File(path) => {
                let path = path.display();
                (path.to_string(), format!("--input {path}"))
            }
        };
        writeln!(f, "fuzz target {target} failed: {message}")?;
        writeln!(f, "  input:    {from} ({bytes} bytes)")?;
        writeln!(f, "  replay:   cargo xtask fuzz {target} {replay}")?;
        write!(
            f,
            "  minimise: cargo xtask fuzz {target} {replay} --minimise FILE"
        )
    }
}

impl std::error::Error for Failure {}

/// The input that `seed` stands for: random bytes, most inputs much shorter
/// than the longest, and some of few different bytes.
#[must_use]
pub fn seeded(target: &Target, seed: u64) -> Vec<u8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: usize| {
        let n = u64::try_from(n.max(1)).expect("a length fits in 64 bits");
        usize::try_from(rng.next_u64() % n).expect("it is below a length")
    };
    let halvings = below(7);
    let bytes = below((target.max_bytes >> halvings) + 1);
    let palette = if below(8) == 0 { 1 + below(4) } else { 256 };
    let mut data = vec![0; bytes];
    rng.fill_bytes(&mut data);
    if palette < 256 {
        let few = data.clone();
        for (byte, at) in data.iter_mut().zip(&few) {
            *byte = few[usize::from(*at) % palette.min(few.len())];
        }
    }
    data
}

/// Runs `target` on `data`.
///
/// # Errors
/// What the panic said.
pub fn attempt(target: &Target, data: &[u8]) -> Result<(), String> {
    // A target keeps nothing from one run to the next that a panic could break.
    catch_unwind(AssertUnwindSafe(|| (target.run)(data))).map_err(|panic| message(&*panic))
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Files of `directory` in the order of their names; none if it does not exist.
///
/// # Errors
/// It exists and cannot be read.
pub fn corpus(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The corpus directory of a target.
#[must_use]
pub fn corpus_directory(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name)
}

/// Runs `target` on the content of each of `files`; returns their number.
///
/// # Errors
/// The first input that fails, or a file that cannot be read.
pub fn run_files(target: &'static Target, files: &[PathBuf]) -> anyhow::Result<u64> {
    let mut inputs = Vec::new();
    for path in files {
        let data = std::fs::read(path)
            .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?;
        inputs.push((Origin::File(path.clone()), data));
    }
    Ok(run_all(target, inputs.into_iter(), HANG)?)
}

/// How many seeded inputs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first seed; the others follow it.
    pub first: u64,
    /// Most inputs; `None`: any number.
    pub runs: Option<u64>,
    /// Start no input after this time; `None`: no limit.
    pub seconds: Option<u64>,
}

/// Runs `target` on seeded inputs; returns their number.
///
/// # Errors
/// The first input that fails.
pub fn run_seeds(target: &'static Target, extent: Extent) -> Result<u64, Failure> {
    let clock = RealClock::new();
    let in_time = move || {
        extent
            .seconds
            .is_none_or(|most| clock.now().0 / 1_000_000_000 < most)
    };
    let runs = usize::try_from(extent.runs.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let inputs = (extent.first..=u64::MAX)
        .take(runs)
        .take_while(move |_| in_time())
        .map(move |seed| (Origin::Seed(seed), seeded(target, seed)));
    run_all(target, inputs, HANG)
}

/// Runs `target` on `inputs` until one fails, on a thread of its own so that
/// one that takes longer than `hang` is noticed and named.
fn run_all(
    target: &'static Target,
    inputs: impl Iterator<Item = (Origin, Vec<u8>)> + Send + 'static,
    hang: Duration,
) -> Result<u64, Failure> {
    let (started, starts) = channel();
    let worker = std::thread::spawn(move || {
        let mut runs = 0;
        for (origin, data) in inputs {
            // Nobody listens any more once a hang was reported.
            if started.send((origin.clone(), data.len())).is_err() {
                break;
            }
            attempt(target, &data).map_err(|message| Failure {
                target: target.name,
                origin,
                bytes: data.len(),
                message,
            })?;
            runs += 1;
        }
        Ok(runs)
    });
    let mut current = None;
    loop {
        match starts.recv_timeout(hang) {
            Ok(input) => current = Some(input),
            Err(RecvTimeoutError::Disconnected) => {
                return worker.join().expect("panics of the target are caught");
            }
            Err(RecvTimeoutError::Timeout) => {
                let message = format!("it still runs after {} s", hang.as_secs());
                let (origin, bytes) = current.unwrap_or((Origin::Seed(0), 0));
                return Err(Failure {
                    target: target.name,
                    origin,
                    bytes,
                    message,
                });
            }
        }
    }
}

/// Looks for a shorter and simpler input than `data` on which `target` fails
/// in the same way: with the same message, numbers aside. Tries at most
/// `attempts` inputs.
#[must_use]
pub fn minimise(target: &Target, data: &[u8], attempts: u32) -> Vec<u8> {
    let Err(wanted) = attempt_quietly(target, data) else {
        return data.to_vec();
    };
    let wanted = without_numbers(&wanted);
    let mut left = attempts;
    let mut fails = |data: &[u8]| {
        left = left.saturating_sub(1);
        left > 0
            && attempt_quietly(target, data).is_err_and(|error| without_numbers(&error) == wanted)
    };
    let mut best = data.to_vec();
    loop {
        let before = best.clone();
        remove_pieces(&mut best, &mut fails);
        simplify_bytes(&mut best, &mut fails);
        if best == before {
            return best;
        }
    }
}

/// Removes pieces, large ones first, the end of the input first.
fn remove_pieces(best: &mut Vec<u8>, fails: &mut impl FnMut(&[u8]) -> bool) {
    let mut piece = best.len().div_ceil(2);
    while piece > 0 {
        let mut end = best.len();
        while end > 0 {
            let start = end.saturating_sub(piece);
            let mut shorter = best.clone();
            shorter.drain(start..end);
            if fails(&shorter) {
                *best = shorter;
            }
            end = start;
        }
        piece /= 2;
    }
}

/// Makes each byte zero, or else half of what it is, if that will do.
fn simplify_bytes(best: &mut [u8], fails: &mut impl FnMut(&[u8]) -> bool) {
    for at in 0..best.len() {
        for simpler in [0, best[at] / 2, best[at].saturating_sub(1)] {
            let byte = best[at];
            if simpler < byte {
                best[at] = simpler;
                if fails(best) {
                    break;
                }
                best[at] = byte;
            }
        }
    }
}

fn attempt_quietly(target: &Target, data: &[u8]) -> Result<(), String> {
    QUIET.store(true, Ordering::Relaxed);
    let result = attempt(target, data);
    QUIET.store(false, Ordering::Relaxed);
    result
}

fn without_numbers(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(run: fn(&[u8])) -> &'static Target {
        let target = Target {
            name: "test",
            description: "",
            run,
            max_bytes: 100,
            runs: 1,
        };
        Box::leak(Box::new(target))
    }

    #[test]
    fn the_same_seed_gives_the_same_input_and_others_give_others() {
        let target = target(|_| ());
        let inputs: Vec<_> = (0..200).map(|seed| seeded(target, seed)).collect();
        assert!(
            inputs
                .iter()
                .zip(0..)
                .all(|(input, seed)| *input == seeded(target, seed))
        );
        assert!(inputs.iter().all(|input| input.len() <= target.max_bytes));
        assert!(inputs.iter().any(|input| input.len() > 50));
        let mut different = inputs.clone();
        different.sort();
        different.dedup();
        // Very short inputs may well be equal.
        assert!(
            different.len() > 150,
            "{} different inputs",
            different.len()
        );
    }

    #[test]
    fn a_panic_is_a_failure_that_names_its_seed() {
        let target = target(|data| assert!(data.len() < 60, "{} are too many", data.len()));
        let extent = Extent {
            first: 5,
            runs: None,
            seconds: None,
        };
        let failure = run_seeds(target, extent).unwrap_err();
        let Origin::Seed(seed) = failure.origin else {
            panic!("it was a seed")
        };
        assert_eq!(failure.bytes, seeded(target, seed).len());
        assert_eq!(failure.message, format!("{} are too many", failure.bytes));
        let text = failure.to_string();
        assert!(
            text.contains(&format!("cargo xtask fuzz test --seed {seed} --runs 1")),
            "{text}"
        );
    }

    #[test]
    fn an_input_that_does_not_end_is_a_failure() {
        let target = target(|data| {
            if data == b"stuck" {
                loop {
                    std::thread::park();
                }
            }
        });
        let input = |text: &str| (Origin::File(text.into()), text.as_bytes().to_vec());
        let inputs = vec![input("fine"), input("stuck")].into_iter();
        let failure = run_all(target, inputs, Duration::from_millis(200)).unwrap_err();
        assert_eq!(failure.origin, Origin::File("stuck".into()));
        assert!(failure.message.contains("still runs"), "{failure}");
    }

    #[test]
    fn runs_and_seconds_bound_a_run() {
        let target = target(|_| ());
        let extent = Extent {
            first: 1,
            runs: Some(17),
            seconds: None,
        };
        assert_eq!(run_seeds(target, extent), Ok(17));
        let extent = Extent {
            first: 1,
            runs: None,
            seconds: Some(0),
        };
        assert_eq!(run_seeds(target, extent), Ok(0));
    }

    #[test]
    fn minimising_finds_the_bytes_that_matter() {
        let target = target(|data| {
            assert!(!(data.contains(&200) && data.contains(&7)), "both");
        });
        let data: Vec<u8> = (0..=255).collect();
        assert_eq!(minimise(target, &data, 100_000), [7, 200]);
        // Nothing to do for an input that passes.
        assert_eq!(minimise(target, &[1, 2], 100), [1, 2]);
    }
}
