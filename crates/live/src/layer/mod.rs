//! The translation layer on a served drive: hosts get a conventional namespace.
//!
//! | module | what |
//! | --- | --- |
//! | `mail` | the drive as the layer sees it |
//! | `mounted` | the layer at work |
//! | `log` | what hosts write, for tools that replay it |
//!
//! It is the layer of [`zonelab_ftl`], with its queue pairs and its upkeep in the time of
//! the drive. What it costs a host in processor time is not modelled: what is modelled is
//! the drive.

mod log;
mod mail;
mod mounted;

use std::collections::VecDeque;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, NamespaceId, Nanos, Op, QueueId, Rejected, Tag, ZoneId,
};
use zonelab_ftl::{FormatSettings, FtlError, FtlMount, FtlSettings, Metrics, Start};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::DriveModel;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_target::controller::{Layer, Subsystem};

use log::Log;
pub use log::Place;
use mail::{Below, Mail};
use mounted::{Asked, Mounted};

/// Queues of the layer, unless it is told otherwise and if the drive allows as many: each
/// writes a zone of its own.
const QUEUES: u32 = 4;
/// What the layer itself asks for, and no host.
const OWN: Tag = Tag(u32::MAX);

/// How to begin, and what to be.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSettings {
    /// Of each mount.
    pub mount: FtlSettings,
    /// Of a format, if there is one.
    pub format: FormatSettings,
    /// Format, whatever is on the drive. If not, only a drive whose zones are all empty is
    /// formatted.
    pub formats: bool,
    /// Queues of the layer, onto which those of hosts are spread; `None`: four, or as many
    /// as the drive allows.
    pub queues: Option<u32>,
}

/// How the layer stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerState {
    /// Size of the conventional namespace in blocks.
    pub size_lbas: u64,
    /// Bytes of a block.
    pub lba_bytes: u32,
    /// Mounts since the server started: one, and one after each loss of power.
    pub mounts: u64,
    /// It takes commands: it is mounted, and can write.
    pub is_well: bool,
    /// Why it cannot write any more, or was not mounted.
    pub failure: Option<String>,
    /// The drive has no room for what the layer has to write: writes fail until it has.
    pub is_starved: bool,
    /// Zones for data.
    pub data_zones: u32,
    /// What it did since the mount.
    pub metrics: Metrics,
}

/// What the layer is doing.
enum Stage {
    /// It is being mounted; commands of hosts wait.
    Mounting {
        mount: Box<FtlMount<Below>>,
        waiting: VecDeque<Asked>,
    },
    Mounted(Box<Mounted>),
    /// It could not be mounted. Where the drive had no room for that, it is tried again.
    Failed {
        error: FtlError,
        again: Option<Nanos>,
    },
}

/// How long the drive is left alone that had no room for a mount.
const RETRY_AFTER: Nanos = Nanos::from_ms(500);

/// A drive that is served, with a translation layer or without.
pub type Served = Subsystem<FtlLayer>;

/// The translation layer on a served drive.
pub struct FtlLayer {
    settings: LayerSettings,
    /// What the drive is.
    below: Rc<DeviceInfo>,
    /// What hosts see.
    info: DeviceInfo,
    mail: Mail,
    stage: Stage,
    now: Nanos,
    /// Losses of power that it knows of.
    power_cycles: u64,
    mounts: u64,
    /// Whether a host waits for the command of this tag.
    held: Vec<bool>,
    /// Commands of hosts that end because nothing is mounted.
    refused: Vec<Asked>,
    /// What was said last of [`LayerState::is_starved`].
    is_starved: bool,
    /// What was said of [`LayerState::failure`].
    has_failed: bool,
    /// `None`: nobody wants to know what is written.
    log: Option<Log>,
    /// Scratch for completions of the drive.
    arrived: Vec<Completion>,
}

impl std::fmt::Debug for FtlLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FtlLayer")
            .field("settings", &self.settings)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl FtlLayer {
    /// Mounts what is on the drive, in the drive's time; formats it before if the settings
    /// say so, or if all its zones are empty.
    ///
    /// # Errors
    /// What is on the drive cannot be mounted, or a setting is out of its range.
    pub fn start(drive: &mut FaultyDrive, settings: LayerSettings) -> Result<Self, FtlError> {
        let formats = settings.formats || is_blank(drive, settings.mount.nsid);
        let start = match formats {
            true => Start::Format(settings.format.clone()),
            false => Start::Mount,
        };
        let below = Rc::new(drive.drive().info().clone());
        let mail = Mail::default();
        let mut layer = Self {
            stage: mounting(&mail, &below, start, &settings.mount),
            settings,
            info: DeviceInfo::clone(&below),
            below,
            mail,
            now: drive.drive().now(),
            power_cycles: drive.power_cycles(),
            mounts: 0,
            held: Vec::new(),
            refused: Vec::new(),
            is_starved: false,
            has_failed: false,
            log: None,
            arrived: Vec::new(),
        };
        while matches!(layer.stage, Stage::Mounting { .. }) {
            let Some(at) = layer.next(drive) else {
                return Err(FtlError::Stuck);
            };
            layer.advance(drive, at, &mut Vec::new());
            if layer.is_cut(drive) {
                layer.power_lost(drive, &mut Vec::new());
            }
        }
        match layer.stage {
            Stage::Failed { error, .. } => Err(error),
            _ => Ok(layer),
        }
    }

    /// The namespace of the drive that the layer is on.
    #[must_use]
    pub const fn nsid(&self) -> NamespaceId {
        self.settings.mount.nsid
    }

    /// From now on, what hosts write is logged in the format of dm-log-writes: from the start
    /// of `to`, in the order in which commands end. If it cannot be written any more, that is
    /// said once, and the layer goes on.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn log_to(&mut self, to: Box<dyn Place>) -> std::io::Result<()> {
        let shown = self.info.namespace(NamespaceId::FIRST);
        let block_bytes = shown.map_or(4096, |of| of.lba_bytes);
        self.log = Some(Log::new(to, block_bytes)?);
        Ok(())
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> LayerState {
        let shown = self.info.namespace(NamespaceId::FIRST);
        let (failure, mounted) = match &self.stage {
            Stage::Mounting { .. } => (None, None),
            Stage::Mounted(mounted) => (mounted.failure(), Some(mounted)),
            Stage::Failed { error, .. } => (Some(error.clone()), None),
        };
        LayerState {
            size_lbas: shown.map_or(0, |of| of.size_lbas),
            lba_bytes: shown.map_or(0, |of| of.lba_bytes),
            mounts: self.mounts,
            is_well: mounted.is_some() && failure.is_none(),
            failure: failure.map(|error| error.to_string()),
            is_starved: match &self.stage {
                Stage::Mounted(mounted) => mounted.is_starved(),
                Stage::Mounting { .. } => false,
                Stage::Failed { again, .. } => again.is_some(),
            },
            data_zones: mounted.map_or(0, |of| of.data_zones()),
            metrics: mounted.map_or_else(Metrics::default, |of| of.metrics()),
        }
    }

    /// When something happens next, here or in the drive.
    fn next(&self, drive: &FaultyDrive) -> Option<Nanos> {
        [self.next_event(), drive.next_event()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the drive has lost power, and the layer has not been told.
    const fn is_cut(&self, drive: &FaultyDrive) -> bool {
        drive.power_cycles() != self.power_cycles
    }

    /// Does what is due now.
    fn step(&mut self, done: &mut Vec<Completion>) {
        let before = done.len();
        let at = self.now;
        done.extend(self.refused.drain(..).map(|asked| asked.end(at)));
        match &mut self.stage {
            Stage::Mounting { mount, .. } => {
                mount.advance(self.now);
                if mount.is_over() {
                    self.enter();
                }
            }
            Stage::Mounted(mounted) => {
                mounted.advance(self.now, &self.mail, done);
                self.say();
            }
            Stage::Failed { again, .. } => {
                if again.is_some_and(|at| at <= self.now) {
                    self.mount_again();
                }
            }
        }
        for ended in &done[before..] {
            if let Some(log) = &mut self.log {
                log.ended(ended);
            }
            if let Some(held) = self.held.get_mut(ended.tag.0 as usize) {
                *held = false;
            }
        }
    }

    /// Says once that the layer cannot write, and that it can again.
    fn say(&mut self) {
        let Stage::Mounted(mounted) = &self.stage else {
            return;
        };
        let is_starved = mounted.is_starved();
        if is_starved != std::mem::replace(&mut self.is_starved, is_starved) {
            match is_starved {
                true => tracing::warn!("the layer has no room to write: writes fail until it has"),
                false => tracing::warn!("the layer writes again"),
            }
        }
        if let Some(error) = mounted.failure().filter(|_| !self.has_failed) {
            tracing::error!(%error, "the layer can write no more");
            self.has_failed = true;
        }
    }

    /// Mounts what is on the drive, of which nothing is known any more.
    fn mount_again(&mut self) {
        self.mail = self.mail.anew();
        self.stage = mounting(&self.mail, &self.below, Start::Mount, &self.settings.mount);
    }

    /// The mount is over.
    fn enter(&mut self) {
        let failed = Stage::Failed {
            error: FtlError::Stuck,
            again: None,
        };
        let Stage::Mounting { mount, waiting } = std::mem::replace(&mut self.stage, failed) else {
            return;
        };
        let queues = self.settings.queues;
        let mounted = mount
            .finish(self.now)
            .and_then(|device| Mounted::new(device, &self.mail, &self.below, queues));
        match mounted {
            Ok(mut mounted) => {
                self.mounts += 1;
                if std::mem::take(&mut self.is_starved) {
                    tracing::warn!("the layer is mounted again");
                }
                self.has_failed = false;
                if let Some(log) = &mut self.log {
                    log.mark(&format!("mounted {}", self.mounts));
                }
                self.info = mounted.info().clone();
                for asked in waiting {
                    mounted.submit(self.now, asked);
                }
                self.stage = Stage::Mounted(Box::new(mounted));
            }
            Err(error) => {
                // Nothing says so of a drive that is only being started.
                let has_room_later = error.is_no_room() && self.mounts > 0;
                if !(has_room_later && std::mem::replace(&mut self.is_starved, true)) {
                    tracing::error!(%error, "the layer cannot be mounted");
                }
                let again = has_room_later.then(|| self.now + RETRY_AFTER);
                self.stage = Stage::Failed { error, again };
                // Whoever waits is told like whoever comes.
                self.refused.extend(waiting);
            }
        }
    }
}

impl Layer for FtlLayer {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        self.now = self.now.max(now);
        let asked = Asked {
            queue,
            tag,
            command,
            data,
        };
        if tag != OWN {
            let index = tag.0 as usize;
            let len = self.held.len().max(index + 1);
            self.held.resize(len, false);
            self.held[index] = true;
            if let Some(log) = &mut self.log {
                log.began(tag, command.op);
            }
        }
        match &mut self.stage {
            Stage::Mounting { waiting, .. } => waiting.push_back(asked),
            Stage::Mounted(mounted) => mounted.submit(self.now, asked),
            Stage::Failed { .. } => self.refused.push(asked),
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.mail.is_waiting() || !self.refused.is_empty() {
            return Some(self.now);
        }
        let next = match &self.stage {
            Stage::Mounting { mount, .. } => mount.next_event(),
            Stage::Mounted(mounted) => mounted.next_event(),
            Stage::Failed { again, .. } => *again,
        };
        next.map(|at| at.max(self.now))
    }

    fn advance(&mut self, drive: &mut FaultyDrive, to: Nanos, done: &mut Vec<Completion>) {
        // Faults of the drive can have taken it along.
        self.now = self.now.max(drive.drive().now());
        if to < self.now {
            return;
        }
        loop {
            self.mail.post(self.now, drive);
            if self.is_cut(drive) {
                return;
            }
            let Some(at) = self.next(drive).filter(|at| *at <= to) else {
                break;
            };
            self.now = self.now.max(at);
            drive.advance(self.now, &mut self.arrived);
            if self.is_cut(drive) {
                // What had not reached the host by then does not reach it any more.
                self.arrived.clear();
                return;
            }
            self.mail.deliver(&mut self.arrived);
            self.step(done);
        }
        self.now = to;
        drive.advance(to, &mut self.arrived);
        debug_assert!(
            self.arrived.is_empty(),
            "nothing completes without an event"
        );
    }

    fn power_lost(&mut self, drive: &FaultyDrive, done: &mut Vec<Completion>) {
        self.power_cycles = drive.power_cycles();
        if let Some(log) = &mut self.log {
            log.mark(&format!("power lost {}", self.power_cycles));
        }
        self.now = self.now.max(drive.drive().now());
        for (tag, held) in (0..).zip(&mut self.held) {
            if std::mem::take(held) {
                let lost = Asked {
                    queue: QueueId(0),
                    tag: Tag(tag),
                    command: Command::new(Op::Flush),
                    data: None,
                };
                done.push(lost.end(self.now));
            }
        }
        self.refused.clear();
        self.mount_again();
    }

    fn is_read_only(&self) -> bool {
        match &self.stage {
            Stage::Mounting { .. } => false,
            Stage::Mounted(mounted) => mounted.is_starved() || mounted.failure().is_some(),
            Stage::Failed { .. } => true,
        }
    }

    fn switch_off(&mut self, drive: &mut FaultyDrive) {
        if !matches!(self.stage, Stage::Mounted(_)) {
            return;
        }
        let now = self.now.max(drive.drive().now());
        let flush = Command::new(Op::Flush);
        // It is taken: nothing else asks with this tag.
        let _ = self.submit(now, QueueId(0), OWN, flush, None);
        let mut done = Vec::new();
        while let Some(at) = self.next(drive) {
            self.advance(drive, at, &mut done);
            if self.is_cut(drive) || done.iter().any(|ended| ended.tag == OWN) {
                break;
            }
            done.clear();
        }
        if let Some(log) = &mut self.log {
            log.mark("switched off");
        }
    }
}

/// Whether nothing was ever written to the zones of a namespace, as far as they show.
fn is_blank(drive: &FaultyDrive, nsid: NamespaceId) -> bool {
    let drive = drive.drive();
    let zones = drive.config().zones_of(nsid).unwrap_or(0..0);
    let state = |zone| drive.zones().state(ZoneId(zone));
    zones
        .into_iter()
        .all(|zone| state(zone) == ZoneState::EMPTY)
}

fn mounting(mail: &Mail, below: &Rc<DeviceInfo>, start: Start, settings: &FtlSettings) -> Stage {
    let (device, queue) = (mail.device(), mail.open(below));
    Stage::Mounting {
        mount: Box::new(FtlMount::new(device, queue, start, settings.clone())),
        waiting: VecDeque::new(),
    }
}
