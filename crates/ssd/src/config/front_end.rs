//! What the controller takes for commands.

use zonelab_device::Nanos;

/// Command processing before the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontEndConfig {
    /// Firmware cores that process commands; 0: processing is free.
    pub cores: u32,
    /// Core time of a read.
    pub read_ns: Nanos,
    /// Core time of a write.
    pub write_ns: Nanos,
    /// Core time of a zone append.
    pub append_ns: Nanos,
    /// Core time of zone management send, receive, and flush.
    pub management_ns: Nanos,
    /// Host link in bytes per second and direction; `None`: not modelled.
    pub link_bytes_per_s: Option<u64>,
    /// Largest transfer of one command in bytes (MDTS); `None`: unlimited.
    pub max_transfer_bytes: Option<u32>,
    /// Largest zone append in bytes (ZASL); `None`: as `max_transfer_bytes`.
    pub max_append_bytes: Option<u32>,
    /// Data of commands in bytes that the drive works on at a time; `None`: unlimited. Behind
    /// them, commands of all kinds wait in order of arrival.
    pub max_in_flight_bytes: Option<u32>,
    /// Appends of one zone that the drive works on at a time, at least 1; `None`: any number.
    /// Others of that zone wait aside, in order of arrival with what changes the zone behind them,
    /// and hold back no other command but by the data of theirs that counts as worked on.
    pub appends_per_zone: Option<u32>,
    /// What commands cost besides; all zero unless the drive is modelled so closely.
    pub costs: CommandCosts,
}

/// What commands cost besides the core time of their kind.
///
/// All but the latencies are core time. What depends on the size of a transfer,
/// and opening a zone by writing to it, is charged when a command is accepted:
/// one that is refused does not cost it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCosts {
    /// Core time per KiB of a read.
    pub read_per_kib_ns: Nanos,
    /// Core time per KiB of a write.
    pub write_per_kib_ns: Nanos,
    /// Core time per KiB of an append.
    pub append_per_kib_ns: Nanos,
    /// Unit in bytes of which writes and appends are a whole number, or cost
    /// [`Self::part_of_unit_ns`] more.
    pub unit_bytes: Option<u32>,
    /// Price of a write or append that is not whole units.
    pub part_of_unit_ns: Nanos,
    /// A write or append costs this much more with logical blocks of 512 bytes.
    pub small_blocks_ns: Nanos,
    /// An explicit open; `None`: as other management.
    pub open_ns: Option<Nanos>,
    /// A close; `None`: as other management.
    pub close_ns: Option<Nanos>,
    /// A write or append that opens its zone costs this much more.
    pub implicit_open_ns: Nanos,
    /// Time of a read on the way that occupies nothing.
    pub read_latency_ns: Nanos,
    /// Time of a write on the way that occupies nothing.
    pub write_latency_ns: Nanos,
    /// Time of an append on the way that occupies nothing.
    pub append_latency_ns: Nanos,
    /// Time of all other commands on the way that occupies nothing.
    pub management_latency_ns: Nanos,
    /// Time on the way from the core to the host of what reads, writes and
    /// appends answer.
    pub completion_latency_ns: Nanos,
    /// Core time of a read when its flash work is done, before the host is told.
    pub read_completion_ns: Nanos,
    /// Core time of a write when its flash or buffer work is done, before the host is told.
    pub write_completion_ns: Nanos,
    /// Core time of an append when its flash or buffer work is done, before the host is told.
    pub append_completion_ns: Nanos,
    /// Core times are up to this share more or less, evenly distributed, in
    /// parts per million; at most 1,000,000.
    pub variation_ppm: u32,
}

impl FrontEndConfig {
    /// What a write of the drive's own that moves `bytes` takes a core: as long as one of the
    /// host with its completion, whatever the format of the host's blocks.
    pub(crate) fn own_write_ns(&self, bytes: u64) -> Nanos {
        let costs = &self.costs;
        let of_bytes = Nanos(costs.write_per_kib_ns.0.saturating_mul(bytes) / 1_024);
        let is_part = |unit: u32| !bytes.is_multiple_of(u64::from(unit));
        let of_part = match costs.unit_bytes.is_some_and(is_part) {
            true => costs.part_of_unit_ns,
            false => Nanos::ZERO,
        };
        [costs.write_completion_ns, of_bytes, of_part]
            .into_iter()
            .fold(self.write_ns, Nanos::saturating_add)
    }
}

impl CommandCosts {
    /// Whether anything is charged when a command is accepted.
    pub(crate) fn charges(&self) -> bool {
        [
            self.read_per_kib_ns,
            self.write_per_kib_ns,
            self.append_per_kib_ns,
            self.part_of_unit_ns,
            self.small_blocks_ns,
            self.implicit_open_ns,
        ]
        .iter()
        .any(|time| *time > Nanos::ZERO)
    }

    /// Times on the way, by their key in `front_end.latency`.
    pub(crate) fn latencies(&self) -> [(&'static str, Nanos); 5] {
        [
            ("front_end.latency.read", self.read_latency_ns),
            ("front_end.latency.write", self.write_latency_ns),
            ("front_end.latency.append", self.append_latency_ns),
            ("front_end.latency.management", self.management_latency_ns),
            ("front_end.latency.completion", self.completion_latency_ns),
        ]
    }
}
