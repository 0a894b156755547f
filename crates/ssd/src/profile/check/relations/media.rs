//! Rules about the flash, its channels, and the processing of commands.

use zonelab_config::units::fmt_duration;
use zonelab_device::Nanos;

use super::{Rules, limits, size};
use crate::config::{
    BufferRelease, ChannelArbitration, DiePolicy, DriveConfig, PageRegister, Suspend,
};

impl Rules<'_> {
    pub(super) fn arbitration(&mut self) {
        let media = &self.config.media;
        if media.arbitration == ChannelArbitration::Ready {
            return;
        }
        let what = "\"arrival\" needs dies that serve in order of arrival too";
        if media.policy != DiePolicy::Fifo {
            let valid = "use channel_arbitration = \"ready\" or die_queue = \"fifo\"";
            self.refuse("media.channel_arbitration", what, valid);
        }
        if media.suspend.program || media.suspend.erase {
            let valid = "use channel_arbitration = \"ready\" or suspend nothing";
            self.refuse("media.channel_arbitration", what, valid);
        }
        self.needs_ready_channels();
    }

    /// What is decided when a transfer ends cannot have its place reserved.
    pub(super) fn needs_ready_channels(&mut self) {
        let media = &self.config.media;
        let buffer = self.config.write_buffer;
        let needs = [
            (
                "media.page_register",
                media.page_register == PageRegister::Cache,
            ),
            (
                "media.transfer_unit",
                media.details.transfer_unit_bytes.is_some(),
            ),
            (
                "write_buffer.release",
                buffer.is_some_and(|buffer| buffer.release == BufferRelease::Transfer),
            ),
        ];
        for (key, _) in needs.into_iter().filter(|(_, asked)| *asked) {
            let what = "it depends on the order of transfers, which \"arrival\" fixes";
            self.refuse(key, what, "use media.channel_arbitration = \"ready\"");
        }
    }

    pub(super) fn media_details(&mut self) {
        let DriveConfig {
            geometry, media, ..
        } = self.config;
        let details = media.details;
        if let Some(bytes) = details.transfer_unit_bytes
            && !(512..=geometry.page_bytes).contains(&bytes)
        {
            let what = format!("{} is no part of a page", size(bytes));
            let valid = format!("512B to geometry.page_size = {}", size(geometry.page_bytes));
            self.refuse("media.transfer_unit", what, valid);
        }
        let Some(parts) = details.read_parts else {
            return;
        };
        if media.read_ns != parts.mean() {
            let what = "the read time of a page in parts is their mean";
            self.refuse("media.read", what, fmt_duration(parts.mean().0));
        }
        let blocks = geometry.page_bytes / self.config.lba_bytes;
        let count = parts.times().len() as u32;
        if !blocks.is_multiple_of(count) {
            let what = format!("a page of {blocks} logical blocks has no {count} equal parts");
            let valid = "as many times as divide the page, or one";
            self.refuse("media.read", what, valid);
        }
    }

    pub(super) fn suspend(&mut self) {
        let suspend = self.config.media.suspend;
        let suspends = suspend.program || suspend.erase;
        // One way to say it, so that a configuration and its file agree.
        if !suspends && suspend != Suspend::NONE {
            let what = "nothing is suspended, so nothing else can be said about it";
            let valid = "use program = true or erase = true, or Suspend::NONE";
            self.refuse("media.suspend", what, valid);
        }
    }

    /// The model adds up the transfers of a multi-plane operation, and scales
    /// that of a part of a page, in 32 bits of nanoseconds.
    pub(super) fn transfer_time(&mut self) {
        let DriveConfig {
            geometry,
            media,
            lba_bytes,
            ..
        } = self.config;
        let factor = geometry.planes.max(geometry.page_bytes / lba_bytes);
        let most = u64::from(u32::MAX / factor);
        if media.transfer_ns.0 > most {
            let what = format!("{} is too long", fmt_duration(media.transfer_ns.0));
            self.refuse(
                "media.transfer",
                what,
                format!("at most {}", fmt_duration(most)),
            );
        }
    }

    pub(super) fn core_costs(&mut self) {
        let costs = self.config.front_end.costs;
        let part = costs.part_of_unit_ns > Nanos::ZERO;
        let page = costs.unit_bytes.is_some_and(|unit| unit > 0);
        if part != page || costs.unit_bytes == Some(0) {
            let what = "a unit and the price of a part of it go together";
            let valid = "state front_end.costs.unit and part_of_unit, or neither";
            self.refuse("front_end.costs.unit", what, valid);
        }
    }

    pub(super) fn transfer_limits(&mut self) {
        let front = &self.config.front_end;
        for (key, bytes) in [
            ("front_end.max_transfer", front.max_transfer_bytes),
            ("front_end.max_append", front.max_append_bytes),
        ] {
            if let Some(bytes) = bytes
                && (!bytes.is_power_of_two() || bytes < limits::TRANSFER_BYTES_MIN)
            {
                let what = format!("{} is not 4KiB times a power of two", size(bytes));
                let below = 1 << bytes.max(limits::TRANSFER_BYTES_MIN).ilog2();
                let valid = match u32::checked_mul(below, 2) {
                    Some(above) if bytes > below => {
                        format!("use {} or {}", size(below), size(above))
                    }
                    _ => format!("use {}", size(below)),
                };
                self.refuse(key, what, valid);
            }
        }
        if let (Some(transfer), Some(append)) = (front.max_transfer_bytes, front.max_append_bytes)
            && append > transfer
        {
            let what = format!("{} is more than any transfer", size(append));
            let valid = format!("at most front_end.max_transfer = {}", size(transfer));
            self.refuse("front_end.max_append", what, valid);
        }
        if let Some(bytes) = front.max_in_flight_bytes
            && bytes < limits::TRANSFER_BYTES_MIN
        {
            let what = format!("{} is not room for one page of a host", size(bytes));
            let valid = format!("at least {}", size(limits::TRANSFER_BYTES_MIN));
            self.refuse("front_end.max_in_flight", what, valid);
        }
    }
}
