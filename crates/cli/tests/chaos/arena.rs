//! A server, and what happens to it: it is killed, and its drive loses power.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use serde_json::json;
use zonelab_device::Nanos;

use super::counts::count;
use super::dice::Dice;
use super::events::Events;
use super::server::{self, Footprint, Kind, Server};
use super::stage::{Beat, PATIENCE, Phase, Stage};

/// Between two events of a server, in milliseconds.
const EVENT_MS: [u64; 2] = [300, 2_500];
/// How long the power of a drive is off at most, in microseconds.
const OFF_US: u64 = 150_000;
/// Memory that a server may have at rest beyond what it had before anybody connected. It keeps
/// twice 64 MiB of buffers to use again (docs/serve.md, Peers), and a map of what was written.
const RESIDENT_KIB: u64 = 192 << 10;

pub(crate) struct Arena {
    pub(crate) kind: Kind,
    pub(crate) events: Events,
    /// Its store, its control socket and what it logs.
    directory: PathBuf,
    server: Mutex<Option<Server>>,
    /// Where the server listens, if it does.
    upstream: Mutex<Option<SocketAddr>>,
    proxy: OnceLock<SocketAddr>,
    nqn: OnceLock<String>,
}

/// What happens to a server.
#[derive(Clone, Copy, Debug)]
enum Event {
    Kill,
    Restart,
    Cut,
    ResetControllers,
}

impl Event {
    fn draw(dice: &mut Dice, has_kills: bool) -> Self {
        match dice.below(100) {
            0..25 if has_kills => Self::Kill,
            25..30 if has_kills => Self::Restart,
            0..75 => Self::Cut,
            _ => Self::ResetControllers,
        }
    }
}

impl Arena {
    /// Starts a server with a new store.
    pub(crate) fn new(kind: Kind) -> Arc<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(format!("zonelab-chaos-{process}-{number}"));
        std::fs::create_dir_all(&directory).unwrap();
        let arena = Self {
            kind,
            events: Events::default(),
            directory,
            server: Mutex::new(None),
            upstream: Mutex::new(None),
            proxy: OnceLock::new(),
            nqn: OnceLock::new(),
        };
        arena.serve(false);
        Arc::new(arena)
    }

    /// The server, which is gone only for as long as somebody holds this.
    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap()
    }

    fn serve(&self, is_protected: bool) {
        let server = Server::start(&self.directory, self.kind, is_protected);
        let nqn = self.nqn.get_or_init(|| server.nqn.clone());
        assert_eq!(*nqn, server.nqn);
        let address = server.address;
        *self.server() = Some(server);
        *self.upstream.lock().unwrap() = Some(address);
    }

    /// Where the server listens, if it does.
    pub(crate) fn upstream(&self) -> Option<SocketAddr> {
        *self.upstream.lock().unwrap()
    }

    /// Where hosts find it.
    pub(crate) fn proxy(&self) -> SocketAddr {
        *self.proxy.get().expect("hosts are started after the proxy")
    }

    pub(crate) fn set_proxy(&self, address: SocketAddr) {
        self.proxy.set(address).expect("there is one proxy");
    }

    /// What its subsystem is called.
    pub(crate) fn nqn(&self) -> &str {
        self.nqn.get().expect("a server says so when it starts")
    }

    /// What a failure needs: where the store is, and the end of what servers have logged.
    pub(crate) fn evidence(&self) -> String {
        let (name, directory) = (self.kind.name(), self.directory.display());
        let log = server::log(&self.directory);
        format!("the {name} server, whose store is left in {directory}, logged\n{log}")
    }

    /// Lets things happen to the server until all is over.
    pub(crate) fn disturb(&self, stage: &Stage, beat: &Beat) {
        let mut dice = Dice::new(stage.seed, self.kind.name(), 0);
        loop {
            match stage.phase() {
                Phase::End => return,
                Phase::Calm => beat.rest(),
                Phase::Storm { has_kills } => {
                    let span = Nanos::from_ms(dice.within(EVENT_MS[0], EVENT_MS[1]));
                    // Both are drawn whether they are needed or not.
                    let (event, is_protected) =
                        (Event::draw(&mut dice, has_kills), dice.percent(30));
                    let off = Nanos::from_us(dice.below(OFF_US));
                    beat.doing("it waits for the next event");
                    stage.pause(span);
                    if stage.is_storm() {
                        self.happen(event, is_protected, off, (stage, beat));
                    }
                }
            }
        }
    }

    fn happen(&self, event: Event, is_protected: bool, off: Nanos, of: (&Stage, &Beat)) {
        let (stage, beat) = of;
        match event {
            Event::Kill | Event::Restart => {
                beat.doing("the server is ended and started again");
                self.events.begin(false);
                *self.upstream.lock().unwrap() = None;
                let mut server = self.server().take().expect("only here it is taken");
                server.check();
                if matches!(event, Event::Kill) {
                    server.kill();
                    count(&stage.counts.kills);
                } else {
                    server.interrupt();
                    count(&stage.counts.restarts);
                }
                drop(server);
                self.serve(is_protected);
                self.events.end(false);
            }
            Event::Cut => {
                beat.doing("the drive loses power");
                let server = self.server();
                let server = server.as_ref().expect("only here it is taken");
                let is_cut = !server.is_protected;
                self.events.begin(is_cut);
                let request = json!({"schema": 1, "request": "power-cut", "off_ns": off.0});
                let answer = server.control(&request);
                assert!(answer["error"].is_null(), "{request}: {answer}");
                self.events.end(is_cut);
                count(&stage.counts.cuts);
            }
            Event::ResetControllers => {
                beat.doing("controllers give up");
                let server = self.server();
                let server = server.as_ref().expect("only here it is taken");
                let answer = server.control(&json!({"schema": 1, "request": "reset-controllers"}));
                assert!(answer["error"].is_null(), "{answer}");
                count(&stage.counts.controller_resets);
            }
        }
    }

    /// Waits until the server, which nobody uses any more, has no more descriptors than before
    /// anybody came, and no more memory than that and [`RESIDENT_KIB`]. The error says what it has
    /// too much of for too long.
    pub(crate) fn rest(&self, stage: &Stage) -> Result<Footprint, String> {
        let began = stage.clock.now();
        loop {
            let (idle, now) = self.measure();
            let is_back = now.descriptors <= idle.descriptors;
            let most_kib = idle.resident_kib + RESIDENT_KIB;
            if is_back && now.resident_kib <= most_kib {
                return Ok(now);
            }
            if stage.clock.now().saturating_sub(began) > PATIENCE {
                return Err(format!(
                    "the {} server has at rest {} descriptors, of {} before anybody came, and {} KiB \
                     of memory, of at most {most_kib}",
                    self.kind.name(),
                    now.descriptors,
                    idle.descriptors,
                    now.resident_kib
                ));
            }
            stage.pause(Nanos::from_ms(100));
        }
    }

    /// What the server takes: before anybody came, and now.
    fn measure(&self) -> (Footprint, Footprint) {
        let mut server = self.server();
        let server = server.as_mut().expect("nothing happens while it is calm");
        server.check();
        (server.idle, server.footprint())
    }

    /// Ends the server in good order, and looks at what it leaves.
    pub(crate) fn close(&self) {
        if let Some(mut server) = self.server().take() {
            server.check();
            server.interrupt();
        }
        server::check_store(&self.directory, self.kind);
        std::fs::remove_dir_all(&self.directory).unwrap();
    }

    /// Kills the server after a failure, if it is still there. Its store stays.
    pub(crate) fn abandon(&self) {
        let mut server = match self.server.try_lock() {
            Ok(server) => server,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Who holds it hangs. The message about that names it.
            Err(TryLockError::WouldBlock) => return,
        };
        drop(server.take());
    }
}
