//! The server as its system sees it, and a host that uses it meanwhile.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::wire::{HOST, Host, KEY};

/// How long something may take that has to happen at some time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while !holds() {
        assert!(waited < PATIENCE, "it never happened: {what}");
        std::thread::sleep(step);
        waited += step;
    }
}

/// `zonelab serve`.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) nqn: String,
    stderr: PathBuf,
    keys: PathBuf,
}

impl Server {
    /// Serves a drive without its times; `has_keys`: only to hosts with the key.
    pub(crate) fn start(has_keys: bool, args: &[&str]) -> Self {
        let started = Self::start_within(None, has_keys, args);
        started.unwrap_or_else(|(status, said)| panic!("{status}: {said}"))
    }

    /// The same, with so much address space in KiB if there is a number.
    ///
    /// # Errors
    /// It ends at once: its status, and what it said.
    pub(crate) fn start_within(
        kib: Option<u32>,
        has_keys: bool,
        args: &[&str],
    ) -> Result<Self, (ExitStatus, String)> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zonelab-hostile-{}-{count}", std::process::id());
        let stderr = std::env::temp_dir().join(format!("{name}.log"));
        let keys = std::env::temp_dir().join(format!("{name}.keys"));
        std::fs::write(&keys, format!("{HOST} {KEY}\n")).unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
        // Another build can be put in its place, to see what it makes of this.
        let own = || env!("CARGO_BIN_EXE_zonelab").into();
        let program = std::env::var_os("ZONELAB_UNDER_TEST").unwrap_or_else(own);
        let mut command = match kib {
            None => Command::new(program),
            Some(kib) => {
                let mut command = Command::new("sh");
                let limited = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
                command.arg("-c").arg(limited).arg(program);
                // As most have it: nobody has said how the memory of threads is set aside.
                command.env_remove("MALLOC_ARENA_MAX");
                command
            }
        };
        let fixed = "serve small-zones --listen 127.0.0.1:0 --json --no-timing --spin 0us";
        command.args(fixed.split(' ')).args(args);
        if has_keys {
            command.arg("--host-key").arg(&keys);
        }
        command.stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let Ok(said) = serde_json::from_str::<serde_json::Value>(&line) else {
            let text = std::fs::read_to_string(&stderr).unwrap();
            return Err((child.wait().unwrap(), text));
        };
        let port = u16::try_from(said["port"].as_u64().unwrap()).unwrap();
        Ok(Self {
            child,
            address: ([127, 0, 0, 1], port).into(),
            nqn: said["nqn"].as_str().unwrap().to_owned(),
            stderr,
            keys,
        })
    }

    pub(crate) fn host(&self) -> Host {
        Host::connect([0, 1], self.address, &self.nqn, 128).unwrap()
    }

    /// A host of another name, without a key.
    pub(crate) fn try_host(&self, hostnqn: &str) -> std::io::Result<Host> {
        Host::connect_as(hostnqn, [0, 2], self.address, &self.nqn, 128)
    }

    pub(crate) fn host_called(&self, hostnqn: &str) -> Host {
        self.try_host(hostnqn).unwrap()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    /// Descriptors that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(path).unwrap().count()
    }

    /// A figure of /proc/PID/status, in KiB.
    pub(crate) fn memory_kib(&self, key: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }

    /// Processor time that it used, in ticks of which a second has 100.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = self.proc("stat");
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        let mut file = std::fs::File::open(&self.stderr).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    /// True as long as it is there.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.stderr);
        let _ = std::fs::remove_file(&self.keys);
    }
}

/// A host that reads blocks, one after the other, in a thread of its own.
pub(crate) struct Victim {
    reads: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Victim {
    pub(crate) fn start(server: &Server) -> Self {
        let mut host = server.host();
        let (reads, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (count, flag) = (Arc::clone(&reads), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                host.read()?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Self {
            reads,
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Ends it; every read of it has to have succeeded.
    pub(crate) fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// Something that several threads do over and over, until it is ended.
pub(crate) struct Attack {
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    /// `what` gets the number of its thread, and says how much it did.
    pub(crate) fn start(threads: u8, what: impl Fn(u8) -> u64 + Clone + Send + 'static) -> Self {
        let (done, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let threads = (0..threads).map(|number| {
            let (count, flag, what) = (Arc::clone(&done), Arc::clone(&stop), what.clone());
            std::thread::spawn(move || {
                while !flag.load(Ordering::Relaxed) {
                    count.fetch_add(what(number), Ordering::Relaxed);
                }
            })
        });
        let threads = threads.collect();
        Self {
            done,
            stop,
            threads,
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}
