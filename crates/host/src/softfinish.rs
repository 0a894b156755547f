//! Softfinish: a host that finishes a zone by writing the rest of it.
//!
//! A Finish Zone command leaves it to the drive how fast a zone is filled, and
//! nothing on the host can hold it back. Writes from the host have a size and
//! pauses that the host chooses, and go through its I/O scheduler like any
//! others. They cost a round trip each, and bring every byte over the link
//! (ConfZNS++ (SYSTOR'24), sections 3.1 and 5.1).
//!
//! [`SoftFinish`] says how, [`ZoneFinisher`] does it to one zone: a state
//! machine that neither submits nor waits, for workloads, file systems and
//! translation layers alike. One write is in flight at a time. To stop, do not
//! ask for the next write; to go on, ask again.
//!
//! ```
//! use zonelab_device::{Lba, NamespaceId, Nanos};
//! use zonelab_host::softfinish::{NoData, SoftFinish, Step, Zone, ZoneFinisher};
//! use zonelab_nvme::Status;
//!
//! # fn main() -> Result<(), zonelab_host::softfinish::SoftFinishError> {
//! let how = SoftFinish::new(2, Nanos::from_us(50), 256)?;
//! let zone = Zone {
//!     namespace: NamespaceId::FIRST,
//!     zslba: Lba(1024),
//!     write_pointer: Lba(1027), // 3 of 8 blocks are written
//!     capacity_lbas: 8,
//!     lba_bytes: 4096,
//! };
//! let mut finisher = ZoneFinisher::new(zone, how, NoData);
//! let mut now = Nanos::ZERO;
//! let progress = loop {
//!     match finisher.step(now) {
//!         // Submitted and waited for; here it takes 11 us.
//!         Step::Write { data, .. } => {
//!             now += Nanos::from_us(11);
//!             finisher.completed(now, Status::SUCCESS, data);
//!         }
//!         Step::PauseUntil(at) => now = at,
//!         Step::InFlight => unreachable!("it has completed"),
//!         Step::Done(progress) => break progress,
//!         Step::Failed { status, .. } => panic!("{status}"),
//!     }
//! };
//! // Writes of 2, 2 and 1 blocks, and two pauses between them.
//! assert_eq!((progress.writes, progress.link_bytes), (3, 5 * 4096));
//! assert_eq!(progress.time, Nanos::from_us(3 * 11 + 2 * 50));
//! # Ok(())
//! # }
//! ```

use core::num::NonZeroU32;

use zonelab_device::{Buf, Command, DeviceInfo, Lba, NamespaceId, Nanos, Op};
use zonelab_nvme::Status;

/// How a host finishes zones: size of its writes and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftFinish {
    granularity_lbas: NonZeroU32,
    pause: Nanos,
}

/// A setting of a softfinish that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoftFinishError {
    /// The device does not take writes of this size.
    #[error("a softfinish by writes of {lbas} logical blocks: valid are 1 to {max}")]
    Granularity {
        /// Logical blocks asked for.
        lbas: u32,
        /// Most that one command of the device moves.
        max: u32,
    },
    /// The pause is too long.
    #[error(
        "a softfinish with pauses of {pause}: valid are 0 to {}",
        SoftFinish::PAUSE_MAX
    )]
    Pause {
        /// Pause asked for.
        pause: Nanos,
    },
}

impl SoftFinish {
    /// The longest pause.
    pub const PAUSE_MAX: Nanos = Nanos::from_secs(60);

    /// Writes of `granularity_lbas` logical blocks, of which the device moves
    /// at most `max_lbas` with one command ([`max_transfer_lbas`]), with
    /// `pause` from the completion of each to the submission of the next.
    ///
    /// # Errors
    /// The granularity is not within 1 to `max_lbas`, or the pause is longer
    /// than [`Self::PAUSE_MAX`].
    pub fn new(
        granularity_lbas: u32,
        pause: Nanos,
        max_lbas: u32,
    ) -> Result<Self, SoftFinishError> {
        let granularity_lbas = NonZeroU32::new(granularity_lbas)
            .filter(|lbas| lbas.get() <= max_lbas)
            .ok_or(SoftFinishError::Granularity {
                lbas: granularity_lbas,
                max: max_lbas,
            })?;
        if pause > Self::PAUSE_MAX {
            return Err(SoftFinishError::Pause { pause });
        }
        Ok(Self {
            granularity_lbas,
            pause,
        })
    }

    /// Logical blocks of one write; the last one of a zone may be shorter.
    #[must_use]
    pub const fn granularity_lbas(self) -> u32 {
        self.granularity_lbas.get()
    }

    /// Time from the completion of a write to the submission of the next.
    #[must_use]
    pub const fn pause(self) -> Nanos {
        self.pause
    }

    /// The same on a host whose sleeps last `slack` longer than asked for
    /// ([`asleep`]).
    #[must_use]
    pub const fn oversleeping(self, slack: Nanos) -> Self {
        Self {
            pause: asleep(self.pause, slack),
            ..self
        }
    }
}

/// How long a thread sleeps that asks for `span`, where sleeps last `slack`
/// longer: the timer slack of the kernel (50 us by default in Linux), and
/// waking up. Who asks for no time does not sleep at all.
#[must_use]
pub const fn asleep(span: Nanos, slack: Nanos) -> Nanos {
    if span.0 == 0 {
        return span;
    }
    span.saturating_add(slack)
}

/// Most logical blocks that one command moves, of a device that transfers at
/// most `max_transfer_bytes` ([`DeviceInfo::max_transfer_bytes`]).
#[must_use]
pub const fn max_transfer_lbas(max_transfer_bytes: u32, lba_bytes: u32) -> u32 {
    match max_transfer_bytes.checked_div(lba_bytes) {
        Some(lbas) => lbas,
        None => 0,
    }
}

/// A zone to be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its first block (ZSLBA).
    pub zslba: Lba,
    /// The block that is written next. At the end of the capacity or beyond it
    /// the zone is full: reports state no valid write pointer of a full zone.
    pub write_pointer: Lba,
    /// Blocks that can be written (ZCAP).
    pub capacity_lbas: u64,
    /// Size of a logical block in bytes.
    pub lba_bytes: u32,
}

impl Zone {
    /// Zone `index` of a namespace of which `written_lbas` blocks are written;
    /// `None` if the device has no such zone.
    #[must_use]
    pub fn of(
        info: &DeviceInfo,
        namespace: NamespaceId,
        index: u32,
        written_lbas: u64,
    ) -> Option<Self> {
        let of = info.namespace(namespace)?;
        let zoned = of.zoned.filter(|zoned| index < zoned.zones)?;
        let zslba = u64::from(index) * zoned.zone_size_lbas;
        Some(Self {
            namespace,
            zslba: Lba(zslba),
            write_pointer: Lba(zslba.saturating_add(written_lbas)),
            capacity_lbas: zoned.zone_capacity_lbas,
            lba_bytes: of.lba_bytes,
        })
    }
}

/// Where the data of a softfinish comes from.
///
/// Zeros are as good as anything where nobody reads them ([`NoData`],
/// [`Zeros`]). Otherwise the rest of a zone can hold what an application would
/// like to have at hand, such as a read cache (ConfZNS++, discussion): any
/// closure from offset and length to a [`Buf`].
pub trait FillData {
    /// The data of `lbas` logical blocks from `offset_lbas` on, counted from
    /// the start of the zone: a buffer of exactly that size, else the device
    /// refuses the write. `used` is the buffer of the write before, if it came
    /// back, to be used again. Blocks are asked for in order; those of a write
    /// that was given back ([`ZoneFinisher::refused`]) are asked for again.
    fn data(&mut self, offset_lbas: u64, lbas: u32, used: Option<Buf>) -> Option<Buf>;
}

/// No buffer at all: the emulated drive takes it for zeros, and does not move
/// or keep any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoData;

impl FillData for NoData {
    #[inline]
    fn data(&mut self, _offset_lbas: u64, _lbas: u32, _used: Option<Buf>) -> Option<Buf> {
        None
    }
}

/// Buffers of zeros, for devices that do not do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeros {
    /// Size of a logical block in bytes.
    pub lba_bytes: u32,
}

impl FillData for Zeros {
    fn data(&mut self, _offset_lbas: u64, lbas: u32, used: Option<Buf>) -> Option<Buf> {
        // A command moves less than 4 GiB: see `max_transfer_lbas`.
        let len = lbas as usize * self.lba_bytes as usize;
        let again = used.filter(|buf| buf.len() == len);
        Some(again.unwrap_or_else(|| Buf::zeroed(len)))
    }
}

impl<F: FnMut(u64, u32) -> Buf> FillData for F {
    fn data(&mut self, offset_lbas: u64, lbas: u32, _used: Option<Buf>) -> Option<Buf> {
        Some(self(offset_lbas, lbas))
    }
}

/// How far a softfinish has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Writes that succeeded.
    pub writes: u64,
    /// Bytes that they brought over the link. (A Finish Zone command brings none.)
    pub link_bytes: u64,
    /// From the submission of the first write to the latest completion, pauses
    /// included.
    pub time: Nanos,
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Submit this, now. Then call [`ZoneFinisher::completed`] when it has
    /// completed, or [`ZoneFinisher::refused`] if the queue did not take it.
    Write {
        /// The write.
        command: Command,
        /// Its data, from [`FillData`].
        data: Option<Buf>,
    },
    /// Wait for the write in flight.
    InFlight,
    /// Ask again then.
    PauseUntil(Nanos),
    /// The zone is full. At once, and without a write, if it was from the start.
    Done(Progress),
    /// A write failed. Nothing more is written: where the write pointer is, a
    /// zone report says; finish on from there with a new [`ZoneFinisher`].
    Failed {
        /// What the device said.
        status: Status,
        /// How far it got before.
        progress: Progress,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    InFlight { lbas: u32 },
    Failed(Status),
}

/// Finishes one zone by writes.
///
/// Nobody else writes to the zone meanwhile. Writes are ascending, each of the
/// granularity but the last, and cover what is unwritten exactly once.
#[derive(Clone, Debug)]
pub struct ZoneFinisher<D> {
    zone: Zone,
    how: SoftFinish,
    data: D,
    /// Blocks written, from the start of the zone.
    written: u64,
    state: State,
    /// Of the first write.
    submitted: Option<Nanos>,
    resume: Nanos,
    progress: Progress,
    used: Option<Buf>,
}

impl<D: FillData> ZoneFinisher<D> {
    /// Begins with nothing in flight.
    #[must_use]
    pub fn new(zone: Zone, how: SoftFinish, data: D) -> Self {
        let written = zone.write_pointer.0.saturating_sub(zone.zslba.0);
        Self {
            written: written.min(zone.capacity_lbas),
            zone,
            how,
            data,
            state: State::Between,
            submitted: None,
            resume: Nanos::ZERO,
            progress: Progress::default(),
            used: None,
        }
    }

    /// What to do at `now`. A write that it gives counts as submitted then.
    #[inline]
    pub fn step(&mut self, now: Nanos) -> Step {
        match self.state {
            State::InFlight { .. } => Step::InFlight,
            State::Failed(status) => Step::Failed {
                status,
                progress: self.progress,
            },
            State::Between if self.left_lbas() == 0 => Step::Done(self.progress),
            State::Between if now < self.resume => Step::PauseUntil(self.resume),
            State::Between => self.write(now),
        }
    }

    #[inline]
    fn write(&mut self, now: Nanos) -> Step {
        let granularity = self.how.granularity_lbas();
        let left = u32::try_from(self.left_lbas()).unwrap_or(u32::MAX);
        let lbas = granularity.min(left);
        let data = self.data.data(self.written, lbas, self.used.take());
        self.state = State::InFlight { lbas };
        self.submitted.get_or_insert(now);
        let op = Op::Write {
            slba: self.write_pointer(),
            nlb: lbas,
        };
        Step::Write {
            command: Command::on(self.zone.namespace, op),
            data,
        }
    }

    /// The write in flight has completed at `at`, with the buffer that came
    /// back. Without a write in flight this does nothing.
    #[inline]
    pub fn completed(&mut self, at: Nanos, status: Status, data: Option<Buf>) {
        let State::InFlight { lbas } = self.state else {
            return;
        };
        self.progress.time = at.saturating_sub(self.submitted.unwrap_or(at));
        if !status.is_success() {
            self.state = State::Failed(status);
            return;
        }
        self.state = State::Between;
        self.used = data;
        self.written += u64::from(lbas);
        self.resume = at.saturating_add(self.how.pause);
        self.progress.writes += 1;
        self.progress.link_bytes += u64::from(lbas) * u64::from(self.zone.lba_bytes);
    }

    /// The queue did not take the write that was last given: it is given again.
    pub fn refused(&mut self, data: Option<Buf>) {
        if matches!(self.state, State::InFlight { .. }) {
            self.state = State::Between;
            self.used = data;
            if self.progress.writes == 0 {
                self.submitted = None;
            }
        }
    }

    /// How far it has got.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// The block that is written next, or is being written.
    #[must_use]
    pub const fn write_pointer(&self) -> Lba {
        Lba(self.zone.zslba.0.saturating_add(self.written))
    }

    /// Blocks whose write has not succeeded yet.
    #[must_use]
    pub const fn left_lbas(&self) -> u64 {
        self.zone.capacity_lbas - self.written
    }

    /// Until when it pauses; in the past if it does not.
    #[must_use]
    pub const fn resume_at(&self) -> Nanos {
        self.resume
    }
}
