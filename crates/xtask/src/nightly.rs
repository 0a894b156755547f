//! `cargo xtask nightly`: the whole form of everything whose small form continuous integration
//! runs, job after job, with one page of results. What passed at a commit is not run again
//! there, so that a night that was interrupted goes on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::steps::{self, Policy, Step};
use crate::tiers::{FULL, is_ci};
use crate::{USAGE, chaos, fuzz, guest, made, relations, root, tools, verdicts};

/// A part of a night.
struct Job {
    name: &'static str,
    /// What it does, for the page.
    what: &'static str,
    /// Hours that it takes on two quiet cores, about.
    hours: f64,
    run: fn(&Night) -> Result<u8>,
}

/// What a night is told.
#[derive(Debug, PartialEq)]
struct Night {
    /// Every job, also those that passed at this commit.
    again: bool,
    /// The number that seeds are made of.
    seed: u64,
    /// The only jobs to run; none: all.
    only: Vec<String>,
}

const JOBS: [Job; 8] = [
    Job {
        name: "deny",
        what: "licences, advisories, bans and sources of what we depend on",
        hours: 0.1,
        run: |_| tools::deny(&[]),
    },
    Job {
        name: "tests",
        what: "every test with ten times the cases, on new seeds",
        hours: 2.0,
        run: |night| steps::run(vec![tests(night.seed)], Policy::STRICT),
    },
    Job {
        name: "verdicts",
        what: "all published results, whole, and what the documents say of them",
        hours: 0.5,
        run: |_| steps::run(verdicts::steps(), Policy::STRICT),
    },
    Job {
        name: "guests",
        what: "every case of the guests with both kernels",
        hours: 0.6,
        run: |_| steps::run(guest::long(is_ci()), Policy::STRICT),
    },
    Job {
        name: "chaos",
        what: "an hour of hosts, hostile peers, kills and losses of power, all at once; 300 kills of \
               the layer under load",
        hours: 1.0,
        run: |_| steps::run(chaos::long(), Policy::STRICT),
    },
    Job {
        name: "fits",
        what: "drives that are drawn, measured from outside and fitted",
        hours: 1.5,
        run: |night| steps::run(vec![fits(night.seed)], Policy::STRICT),
    },
    Job {
        name: "relations",
        what: "relations that need no oracle, over 50,000 random drives, on new seeds",
        hours: 1.0,
        run: |night| relations::night(night.seed),
    },
    Job {
        name: "fuzz",
        what: "every fuzz target for two minutes, on new seeds",
        hours: 1.0,
        run: |night| fuzz_all(night.seed),
    },
];

/// Variables that lengthen randomised tests, with ten times what they have of themselves.
const LONGER: [(&str, &str); 4] = [
    ("PROPTEST_CASES", "2560"),
    ("ZONELAB_KILL_HISTORIES", "240"),
    ("ZONELAB_LIMIT_RUNS", "10000"),
    ("ZONELAB_POWER_CUTS", "100000"),
];
/// Variables that hold the first seed of randomised tests.
const SEEDS: [&str; 9] = [
    "PROPTEST_RNG_SEED",
    "ZONELAB_FTL_SEED",
    "ZONELAB_KILL_SEED",
    "ZONELAB_KV_SEED",
    "ZONELAB_LIMIT_SEED",
    "ZONELAB_POWER_CUT_SEED",
    "ZONELAB_FIO_SEED",
    "ZONELAB_HOSTILE_SEED",
    "ZONELAB_RELATIONS_SEED",
];
/// Seconds that each fuzz target gets.
const FUZZ_SECONDS: u32 = 120;
/// Between the first seeds of two nights: no target gets through so many in one.
const STRIDE: u64 = 1 << 20;
/// Drives that are fitted.
const FITS: u64 = 12;

fn tests(seed: u64) -> Step {
    let words = ["test", "--workspace", "--no-fail-fast", "--features", FULL];
    let mut tests = Step::cargo("every test, with more cases", &words);
    tests.command.envs(LONGER);
    for name in SEEDS {
        tests.command.env(name, seed.to_string());
    }
    tests
}

fn fits(seed: u64) -> Step {
    let (drives, seed) = (FITS.to_string(), seed.to_string());
    let words = ["run", "--release", "-p", "zonelab-search", "--example"];
    let program = ["fit_recovery", "--", &drives, &seed];
    Step::cargo("drives that are fitted", &[&words[..], &program].concat())
}

fn fuzz_all(seed: u64) -> Result<u8> {
    let (seconds, seed) = (
        FUZZ_SECONDS.to_string(),
        seed.wrapping_mul(STRIDE).to_string(),
    );
    let args = ["all", "--seconds", &seconds, "--seed", &seed];
    fuzz::chore(&args.map(str::to_owned))
}

/// Runs what has not passed at this commit, and prints the page. Fails if any job does; the
/// others are run all the same.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let Some(night) = parse(args) else {
        let jobs: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
        eprintln!(
            "cargo xtask nightly: takes --seed N (say, the number of the night), --again, which \
             runs what\nhas passed at this commit, too, and names of jobs, of which only those are \
             run: {}",
            jobs.join(", ")
        );
        return Ok(USAGE);
    };
    let directory = made().join("nightly");
    fs::create_dir_all(&directory).context("cannot make the directory of the page")?;
    let commit = commit()?;
    let kept = directory.join("passed.tsv");
    let mut done: Vec<Done> = match night.again {
        true => Vec::new(),
        false => read(&kept, &commit),
    };
    let is_wanted = |job: &&Job| night.only.is_empty() || night.only.iter().any(|n| n == job.name);
    for job in JOBS.iter().filter(is_wanted) {
        if done.iter().any(|one| one.job == job.name && one.code == 0) {
            println!("nightly: {} has passed at this commit", job.name);
            continue;
        }
        println!(
            "nightly: {}: {} ({} h, about)",
            job.name, job.what, job.hours
        );
        let (code, time) = steps::timed(|| (job.run)(&night));
        let one = Done {
            job: job.name.to_owned(),
            minutes: time.as_secs_f64() / 60.0,
            seed: night.seed,
            code: code?,
        };
        done.retain(|other| other.job != job.name);
        done.push(one);
        let lines: Vec<String> = done.iter().map(Done::line).collect();
        fs::write(&kept, format!("{commit}\n{}", lines.concat())).context("cannot keep it")?;
        fs::write(directory.join("nightly.md"), page(&commit, &done)).context("no page")?;
    }
    println!("\n{}", page(&commit, &done));
    Ok(done
        .iter()
        .map(|one| one.code)
        .find(|code| *code != 0)
        .unwrap_or(0))
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
struct Done {
    job: String,
    minutes: f64,
    seed: u64,
    code: u8,
}

impl Done {
    fn line(&self) -> String {
        format!(
            "{}\t{:.1}\t{}\t{}\n",
            self.job, self.minutes, self.seed, self.code
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        Some(Self {
            job: next()?.to_owned(),
            minutes: next()?.parse().ok()?,
            seed: next()?.parse().ok()?,
            code: next()?.parse().ok()?,
        })
    }
}

/// What was done at `commit`; nothing if the last night was at another one.
fn read(kept: &PathBuf, commit: &str) -> Vec<Done> {
    let text = fs::read_to_string(kept).unwrap_or_default();
    let mut lines = text.lines();
    match lines.next() {
        Some(of) if of == commit => lines.filter_map(Done::parse).collect(),
        _ => Vec::new(),
    }
}

/// The commit, with a mark if there are changes that it has not.
fn commit() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12"]);
    let output = git
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    ensure!(output.status.success(), "git does not know the commit");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The page: a line for each job, whether it was run or not.
fn page(commit: &str, done: &[Done]) -> String {
    let mut text = format!(
        "# The whole form of everything, at {commit}\n\n| job | what | minutes | seed | result |\n\
         | --- | --- | --- | --- | --- |\n"
    );
    for job in &JOBS {
        let one = done.iter().find(|one| one.job == job.name);
        let ended = one.map_or_else(
            || "- | - | not run".to_owned(),
            |one| {
                let result = match one.code {
                    0 => "passed".to_owned(),
                    code => format!("**failed**, exit code {code}"),
                };
                format!("{:.1} | {} | {result}", one.minutes, one.seed)
            },
        );
        text.push_str(&format!("| {} | {} | {ended} |\n", job.name, job.what));
    }
    text
}

fn parse(args: &[String]) -> Option<Night> {
    let mut night = Night {
        again: false,
        seed: 1,
        only: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--again" => night.again = true,
            "--seed" => night.seed = args.next()?.parse().ok()?,
            name if JOBS.iter().any(|job| job.name == name) => night.only.push(name.to_owned()),
            _ => return None,
        }
    }
    Some(night)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let parse = |text: &str| {
            let words = text.split_whitespace().map(str::to_owned);
            parse(&words.collect::<Vec<_>>())
        };
        let night = parse("--seed 9 fuzz --again deny").expect("these are options");
        assert_eq!((night.seed, night.again), (9, true));
        assert_eq!(night.only, ["fuzz", "deny"]);
        for wrong in ["--seed", "--seed x", "7", "--hours 8"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_page_has_every_job_and_what_is_kept_is_read_at_the_same_commit() {
        let done = Done {
            job: "chaos".to_owned(),
            minutes: 61.5,
            seed: 7,
            code: 101,
        };
        assert_eq!(Done::parse(done.line().trim_end()), Some(done.clone()));
        let page = page("abc", &[done]);
        let line = |name: &str| {
            let start = format!("| {name} |");
            page.lines()
                .find(|line| line.starts_with(&start))
                .expect("a line for each job")
        };
        assert!(
            line("chaos").ends_with("| 61.5 | 7 | **failed**, exit code 101 |"),
            "{page}"
        );
        for job in &JOBS {
            assert!(line(job.name).contains(job.what));
        }
        assert!(line("fuzz").ends_with("not run |"), "{page}");
        assert_eq!(read(&PathBuf::from("/nowhere"), "abc"), []);
    }

    #[test]
    fn a_night_draws_seeds_of_its_own() {
        let step = tests(5);
        let envs: Vec<_> = step.command.get_envs().collect();
        assert!(SEEDS.iter().all(|name| {
            let wanted = (name.as_ref(), Some("5".as_ref()));
            envs.contains(&wanted)
        }));
    }
}
