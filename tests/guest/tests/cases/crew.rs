//! Guests side by side: each has a thread, which takes one case after the other.
//!
//! A guest waits for a sixth of its time, for what a case sleeps or for the drive that is
//! served, so that there is one more than cores, at most [`MOST`]; with `--test-threads` as many
//! as that says. A thread stays with its kernel and chassis, since
//! another takes a boot, until no case for these waits.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use libtest_mimic::{Arguments, Conclusion, Failed, Trial};
use zonelab_guest_tests::{Chassis, Disk, Guest, Image, Kernel, Queues, image};

/// Guests at a time, unless the command line says how many. Each takes a gigabyte.
const MOST: usize = 3;

/// Cases that are named at the end with their times, the longest first.
const NAMED: usize = 12;

/// What a case does with a guest.
type Body = Box<dyn FnOnce(&mut Guest, &Image) -> Result<()> + Send>;
/// What the runner of tests is told of a case.
type Verdict = Result<(), Failed>;

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) kernel: Kernel,
    pub(crate) chassis: Chassis,
}

/// A case, and who waits for what comes of it.
struct Case {
    name: String,
    body: Body,
    verdict: Sender<Verdict>,
}

/// All cases, in the order in which they are told of.
#[derive(Default)]
pub(crate) struct Plan {
    cases: Vec<(Kind, String, Body)>,
}

impl Plan {
    /// Adds a case.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        name: &str,
        body: impl FnOnce(&mut Guest, &Image) -> Result<()> + Send + 'static,
    ) {
        let name = format!("{}::{name}", kind.kernel.name());
        self.cases.push((kind, name, Box::new(body)));
    }

    /// Runs those that the command line asks for.
    pub(crate) fn run(self, mut arguments: Arguments) -> Conclusion {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let guests = arguments
            .test_threads
            .unwrap_or((cores + 1).min(MOST))
            .max(1);
        let mut queues = Queues::default();
        let mut trials = Vec::new();
        for (kind, name, body) in self.cases {
            let (verdict, told) = channel();
            let trial = Trial::test(name.clone(), move || {
                let verdict = told.recv();
                verdict.unwrap_or_else(|_| Err("no guest took the case".into()))
            });
            if !arguments.is_filtered_out(&trial) && !arguments.is_ignored(&trial) {
                queues.push(
                    kind,
                    Case {
                        name,
                        body,
                        verdict,
                    },
                );
            }
            trials.push(trial);
        }
        // The runner only waits: with a thread for each case it says of each what came of
        // it as soon as that is known. With one guest that is in order.
        arguments.test_threads = Some(if guests == 1 { 1 } else { trials.len().max(1) });
        let queues = Mutex::new(queues);
        thread::scope(|scope| {
            let guests = if arguments.list { 0 } else { guests };
            let crew: Vec<_> = (0..guests).map(|_| scope.spawn(|| work(&queues))).collect();
            let conclusion = libtest_mimic::run(&arguments, trials);
            let times = crew.into_iter().filter_map(|one| one.join().ok());
            say_longest(times.flatten().collect());
            conclusion
        })
    }
}

/// Takes cases until there are no more, and gives the time that each took, with what it
/// waited for a guest to boot. The guests end with it.
#[expect(
    clippy::disallowed_methods,
    reason = "these times are real, and only shown"
)]
fn work(queues: &Mutex<Queues<Kind, Case>>) -> Vec<(Duration, String)> {
    let mut times = Vec::new();
    let mut machine: Option<Machine> = None;
    loop {
        let current = machine.as_ref().map(|machine| machine.kind);
        let mut waiting = queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kind, case)) = waiting.take(current) else {
            return times;
        };
        drop(waiting);
        let machine = match &mut machine {
            Some(machine) if machine.kind == kind => machine,
            // The old one goes first: there is memory for so many.
            other => {
                *other = None;
                other.insert(Machine { kind, guest: None })
            }
        };
        let began = Instant::now();
        let verdict = machine.verdict(case.body);
        times.push((began.elapsed(), case.name));
        // If the runner is gone, nobody wants to know.
        let _ = case.verdict.send(verdict);
    }
}

/// Says which cases took longest, and what all took.
fn say_longest(mut times: Vec<(Duration, String)>) {
    times.sort_by(|a, b| b.cmp(a));
    let all: Duration = times.iter().map(|(time, _)| time).sum();
    let longest = times.iter().take(NAMED);
    let longest: Vec<String> = longest
        .map(|(time, name)| format!("{name} {:.0} s", time.as_secs_f64()))
        .collect();
    eprintln!(
        "all cases {:.0} s; the longest: {}",
        all.as_secs_f64(),
        longest.join(", ")
    );
}

/// A kernel in a chassis, and the guest that runs it once a case needs one.
struct Machine {
    kind: Kind,
    guest: Option<Guest>,
}

impl Machine {
    /// What comes of a case, which may panic.
    fn verdict(&mut self, body: Body) -> Verdict {
        let result = catch_unwind(AssertUnwindSafe(|| self.run(body)));
        let result = result.unwrap_or_else(|panic| {
            // It left a guest of which nothing is known.
            self.guest = None;
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(anyhow!("it panicked: {}", text.unwrap_or("no text")))
        });
        result.map_err(|error| format!("{error:#}").into())
    }

    fn run(&mut self, body: Body) -> Result<()> {
        let image = Image::open(&image::directory(), self.kind.kernel)?;
        let guest = match &mut self.guest {
            Some(guest) => guest,
            empty => {
                let guest = Guest::boot_in(&image, self.kind.chassis, &Disk::NAMESPACES)?;
                empty.insert(guest)
            }
        };
        // No case finds what an earlier one left.
        guest.ok("rm -rf /scratch/*")?;
        let result = body(guest, &image);
        let complaints = guest.complaints()?;
        if result.is_ok() && complaints.is_empty() {
            if guest.is_spent() {
                self.guest = None;
            }
            return Ok(());
        }
        let note = format!("the whole console is in {}", guest.keep().display());
        // What failed half-way has mounts and jobs left.
        self.guest = None;
        ensure!(
            complaints.is_empty(),
            "the kernel complains; {note}\n{}\n{result:?}",
            complaints.join("\n\n")
        );
        result.map_err(|error| error.context(note))
    }
}
