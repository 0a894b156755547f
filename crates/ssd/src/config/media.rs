//! How long flash and channels take, and in which order a die serves.

use zonelab_device::Nanos;

/// Flash and bus timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaConfig {
    /// Time from command to page register (tR); where parts of a page differ
    /// ([`MediaDetails::read_parts`]), their mean.
    pub read_ns: Nanos,
    /// Time from page register to cells (tPROG).
    pub program_ns: Nanos,
    /// Time to erase a block (tBERS).
    pub erase_ns: Nanos,
    /// Channel time of one whole page.
    pub transfer_ns: Nanos,
    /// Whether part of a page takes its share of `transfer_ns` or all of it.
    pub partial_transfer: bool,
    /// Whether a transfer overlaps the array time of its neighbours.
    pub page_register: PageRegister,
    /// What the planes of one die may do at the same time.
    pub planes: PlaneMode,
    /// Who is next on a die.
    pub policy: DiePolicy,
    /// Who is next on a channel.
    pub arbitration: ChannelArbitration,
    /// Interrupting programs and erases for reads.
    pub suspend: Suspend,
    /// What few models have; nothing of it by default.
    pub details: MediaDetails,
}

/// Details of flash timing that only a closely modelled drive has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaDetails {
    /// A page consists of parts that are read one by one, each in its own time.
    pub read_parts: Option<ReadParts>,
    /// A transfer gives way to others on its channel after so many bytes;
    /// `None`: it does not. Needs [`ChannelArbitration::Ready`].
    pub transfer_unit_bytes: Option<u32>,
    /// Programs take up to this share of [`MediaConfig::program_ns`] more or
    /// less, evenly distributed, in parts per million; at most 1,000,000.
    pub program_variation_ppm: u32,
}

impl MediaDetails {
    /// None of them.
    pub const NONE: Self = Self {
        read_parts: None,
        transfer_unit_bytes: None,
        program_variation_ppm: 0,
    };
}

/// Read times of the equal parts of a page, in order of address: the pages of a
/// word line that are programmed together, of which each needs other reference
/// voltages (lower, middle and upper page of TLC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadParts {
    times: [Nanos; Self::MAX],
    count: u8,
}

impl ReadParts {
    /// As many parts as cells of this world have bits.
    pub const MAX: usize = 5;

    /// From one time for each part; `None` unless there are 2 to [`Self::MAX`].
    #[must_use]
    pub fn new(parts: &[Nanos]) -> Option<Self> {
        let count = u8::try_from(parts.len()).ok().filter(|count| *count >= 2)?;
        let mut times = [Nanos::ZERO; Self::MAX];
        times.get_mut(..parts.len())?.copy_from_slice(parts);
        Some(Self { times, count })
    }

    /// The time of each part.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.times[..usize::from(self.count)]
    }

    /// Their mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        let sum: u64 = self.times().iter().map(|time| time.0).sum();
        Nanos(sum / u64::from(self.count))
    }
}

/// Whether the transfer of one page overlaps the array time of another on the
/// same plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRegister {
    /// It does: pages wait in registers (ConfZNS++: a plane is held for the
    /// array time alone).
    Overlap,
    /// It does not: the plane is held from the start of the transfer to the
    /// end of the program, or from the start of the read to the end of the
    /// transfer (NVMeVirt).
    Hold,
    /// A cache register beside the page register: the page of the next program
    /// arrives while the plane works, and no further one; a read holds the
    /// plane until its page has left. Needs [`ChannelArbitration::Ready`].
    Cache,
}

/// What the planes of one die may do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneMode {
    /// Each plane works on its own (FEMU, ConfZNS++).
    Independent,
    /// The die does one thing at a time; consecutive pages of one command that
    /// fall on different planes of the die are one operation.
    MultiPlane,
    /// The die does one thing at a time, one page each.
    Single,
}

/// Who is next on a die (or plane, if planes are independent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiePolicy {
    /// In order of arrival.
    Fifo,
    /// Reads before programs and erases; those stay in their order.
    ReadFirst,
    /// Up to `reads` reads, then one program or erase, if both wait.
    Weighted {
        /// Reads per program or erase, at least 1.
        reads: u32,
    },
}

/// Who is next on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelArbitration {
    /// In order of arrival at the drive: a transfer waits for those of earlier
    /// commands even if their data is not ready yet (the reservation of FEMU,
    /// ConfZNS++). Needs [`DiePolicy::Fifo`] and no suspend.
    Arrival,
    /// In the order in which transfers become ready.
    Ready,
}

/// Program and erase suspend: a read that arrives at a busy die interrupts
/// what runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Programs can be suspended.
    pub program: bool,
    /// Erases can be suspended.
    pub erase: bool,
    /// Time to stop, and again to resume.
    pub overhead_ns: Nanos,
    /// How often one operation may be suspended before it runs to its end.
    pub max_per_operation: u32,
    /// It can only stop at multiples of this in its array time, and after it
    /// was resumed at the next one, if reads wait then: between the pulses of a
    /// program. Zero: anywhere, for reads that arrive while it runs.
    pub interval_ns: Nanos,
}

impl Suspend {
    /// Nothing is suspended.
    pub const NONE: Self = Self {
        program: false,
        erase: false,
        overhead_ns: Nanos::ZERO,
        max_per_operation: 0,
        interval_ns: Nanos::ZERO,
    };
}
