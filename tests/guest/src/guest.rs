//! A guest that runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::bytes::Bytes;
use crate::channel::Channel;
use crate::console::Console;
use crate::monitor::Monitor;
use crate::qemu::{self, Chassis, Machine};
use crate::{Disk, Image, image};

/// How long a guest may take to boot: thirty times what it takes where it has a core.
const BOOT: Duration = Duration::from_secs(600);
/// How long a script may take, unless the caller says otherwise. Most take less than a
/// second; it is longer than the kernel waits before it complains of a task that hangs.
const LIMIT: Duration = Duration::from_secs(240);
/// Looks at whether QEMU has traced something, five a second.
const TRACE_LOOKS: u32 = 1200;
/// Exit code of `timeout` if it ended the script.
const TIMED_OUT: i32 = 124;

/// What a script did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit code.
    pub code: i32,
    /// What it printed on both of its streams.
    pub text: String,
}

/// A script that runs in the guest beside others.
#[derive(Debug)]
pub struct Job {
    id: u32,
}

/// A machine with a kernel, which ends with this value.
pub struct Guest {
    // The order of the fields is the order of their end: the connection goes
    // first, so that the guest sees it.
    channel: Channel,
    monitor: Monitor,
    machine: Machine,
    console: Console,
    limit: Duration,
    last_job: u32,
    is_broken: bool,
    is_spent: bool,
    /// Times that QEMU was asked to trace.
    traces: u32,
}

impl Guest {
    /// Boots a guest whose NVMe drive has the namespaces `disks`. It ends at
    /// the latest with the thread that calls this.
    ///
    /// # Errors
    ///
    /// QEMU is not there, or the guest does not come up; with its console.
    pub fn boot(image: &Image, disks: &[Disk]) -> Result<Self> {
        Self::boot_in(image, Chassis::Plain, disks)
    }

    /// The same in another chassis.
    ///
    /// # Errors
    ///
    /// As for [`Self::boot`].
    pub fn boot_in(image: &Image, chassis: Chassis, disks: &[Disk]) -> Result<Self> {
        let directory = qemu::new_directory(&image::directory().join("run"));
        let (mut machine, agent, monitor) = Machine::start(image, chassis, disks, directory)?;
        let console = Console::new(machine.console());
        let channel = Channel::open(agent, BOOT);
        let channel = channel.with_context(|| console.tail().unwrap_or_default())?;
        let monitor = Monitor::open(monitor)?;
        machine.keep(false);
        Ok(Self {
            channel,
            monitor,
            machine,
            console,
            limit: LIMIT,
            last_job: 0,
            is_broken: false,
            is_spent: false,
            traces: 0,
        })
    }

    /// Runs a script of the shell for at most four minutes.
    ///
    /// # Errors
    ///
    /// It took longer, or the guest is gone. That it failed is no error.
    pub fn run(&mut self, script: &str) -> Result<Output> {
        self.run_for(self.limit, script)
    }

    /// Runs a script for at most `limit`, in whole seconds.
    ///
    /// # Errors
    ///
    /// As for [`Self::run`].
    pub fn run_for(&mut self, limit: Duration, script: &str) -> Result<Output> {
        ensure!(!self.is_broken, "the guest is gone");
        let answer = self.channel.run(script, limit).map_err(|error| {
            self.is_broken = true;
            let console = self.console.tail().unwrap_or_default();
            error.context(format!(
                "while the guest ran `{script}`; its console:\n{console}"
            ))
        })?;
        if answer.code == TIMED_OUT {
            // The guest has told what it waits for (`image/init.sh`).
            let console = self.console.tail()?;
            let text = answer.text;
            bail!("`{script}` took longer than {limit:?}:\n{text}\nconsole:\n{console}");
        }
        Ok(Output {
            code: answer.code,
            text: answer.text,
        })
    }

    /// Runs a script that has to succeed, and gives what it printed.
    ///
    /// # Errors
    ///
    /// It failed, or as for [`Self::run`].
    pub fn ok(&mut self, script: &str) -> Result<String> {
        self.ok_for(self.limit, script)
    }

    /// The same, for at most `limit`.
    ///
    /// # Errors
    ///
    /// As for [`Self::ok`].
    pub fn ok_for(&mut self, limit: Duration, script: &str) -> Result<String> {
        let output = self.run_for(limit, script)?;
        ensure!(
            output.code == 0,
            "`{script}` failed with {}:\n{}\nconsole:\n{}",
            output.code,
            output.text,
            self.console.tail()?
        );
        Ok(output.text)
    }

    /// Runs a script that has to fail, and gives what it printed.
    ///
    /// # Errors
    ///
    /// It succeeded, or as for [`Self::run`].
    pub fn fails(&mut self, script: &str) -> Result<String> {
        let output = self.run(script)?;
        ensure!(
            output.code != 0,
            "`{script}` did not fail:\n{}",
            output.text
        );
        Ok(output.text)
    }

    /// Starts a script that runs until it ends or [`Self::wait`] gives it up.
    ///
    /// # Errors
    ///
    /// As for [`Self::run`].
    pub fn spawn(&mut self, script: &str) -> Result<Job> {
        self.last_job += 1;
        let id = self.last_job;
        self.ok(&format!(
            "cat > /run/job{id} <<'END OF JOB'\n{script}\nEND OF JOB\n\
             (setsid sh /run/job{id} > /run/job{id}.out 2>&1; echo $? > /run/job{id}.code) &"
        ))?;
        Ok(Job { id })
    }

    /// Waits for a script that was started.
    ///
    /// # Errors
    ///
    /// It did not end within `limit`, or as for [`Self::run`].
    pub fn wait(&mut self, job: &Job, limit: Duration) -> Result<Output> {
        let id = job.id;
        let script =
            format!("until [ -s /run/job{id}.code ]; do sleep 0.2; done; cat /run/job{id}.code");
        let code = self.ok_for(limit, &script)?;
        let text = self.ok(&format!("cat /run/job{id}.out"))?;
        let code = code.trim().parse().context("an exit code is a number")?;
        Ok(Output { code, text })
    }

    /// Makes a port of the guest reachable at the address that this gives, on
    /// the host's loopback.
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn forward(&mut self, guest_port: u16) -> Result<SocketAddr> {
        self.monitor.forward(guest_port)
    }

    /// Writes what crosses the guest's network to a file (pcap) until
    /// [`Self::end_capture`], and tells where that is. It goes with the guest.
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn capture(&mut self) -> Result<PathBuf> {
        let file = self.machine.console().with_file_name("network.pcap");
        let name = file.to_str().context("a path that is text")?;
        self.monitor.capture(name)?;
        Ok(file)
    }

    /// Ends a capture.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn end_capture(&mut self) -> Result<()> {
        self.monitor.end_capture()
    }

    /// Runs `f`, and counts how often QEMU has traced `event` meanwhile.
    ///
    /// # Errors
    ///
    /// There is no such event, or as `f`.
    pub fn count<T>(
        &mut self,
        event: &str,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(usize, T)> {
        let file = self.trace(event)?;
        let done = f(self);
        self.monitor.trace(None)?;
        let log = std::fs::read_to_string(&file)?;
        let count = log.lines().filter(|line| line.contains(event)).count();
        Ok((count, done?))
    }

    /// Runs `f`, and waits until QEMU has traced `event` since it began.
    ///
    /// # Errors
    ///
    /// There is no such event, it does not come within some minutes, or as `f`.
    pub fn await_trace(
        &mut self,
        event: &str,
        f: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let file = self.trace(event)?;
        f(self)?;
        for _ in 0..TRACE_LOOKS {
            if std::fs::read_to_string(&file).is_ok_and(|text| text.contains(event)) {
                return self.monitor.trace(None);
            }
            self.ok("sleep 0.2")?;
        }
        bail!("no {event} happens")
    }

    /// Has QEMU trace `event` to a file.
    fn trace(&mut self, event: &str) -> Result<PathBuf> {
        // One for each time: QEMU goes on in a file that it knows.
        self.traces += 1;
        let name = format!("trace-{}.log", self.traces);
        let file = self.machine.console().with_file_name(name);
        let name = file.to_str().context("a path that is text")?;
        self.monitor.trace(Some((event, name)))?;
        Ok(file)
    }

    /// Removes the NVMe drive that QEMU emulates, as if it were pulled. No case can
    /// use this guest afterwards: see [`Self::spend`].
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn remove_drive(&mut self) -> Result<()> {
        self.monitor.remove(qemu::DRIVE)
    }

    /// Lets the first namespace of the NVMe drive do so many writes a second; 0: as many as
    /// it can.
    ///
    /// # Errors
    ///
    /// QEMU refuses.
    pub fn throttle_drive(&mut self, writes_per_s: u32) -> Result<()> {
        self.monitor.throttle("disk1", writes_per_s)
    }

    /// How many writes the first namespace of the NVMe drive has done, whoever drives it.
    ///
    /// # Errors
    ///
    /// QEMU does not say.
    pub fn drive_writes(&mut self) -> Result<u64> {
        self.writes_of(1)
    }

    /// The same of namespace `id`.
    ///
    /// # Errors
    ///
    /// As for [`Self::drive_writes`].
    pub fn writes_of(&mut self, id: u32) -> Result<u64> {
        self.monitor.writes(&format!("disk{id}"))
    }

    /// What namespace `id` of the NVMe drive holds, as QEMU keeps it on the host.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn bytes_of(&self, id: u32) -> Result<Bytes> {
        Bytes::read(&self.machine.disk(id))
    }

    /// Says that this guest is of no use to the next case.
    pub fn spend(&mut self) {
        self.is_spent = true;
    }

    /// Whether it is of no use to the next case.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Faults of the kernel itself since this was last asked.
    ///
    /// # Errors
    ///
    /// The console cannot be read.
    pub fn complaints(&mut self) -> Result<Vec<String>> {
        self.console.complaints()
    }

    /// Keeps its console when it ends, and tells where.
    pub fn keep(&mut self) -> PathBuf {
        self.machine.keep(true);
        self.machine.console()
    }
}
