//! Registers of a controller: disable, enable, shut down (base specification 2.0,
//! sections 3.5 and 3.6).

use zonelab_device::Nanos;
use zonelab_nvme::property::{
    AdminQueueAttributes, Capabilities, CommandSetSelected, Configuration, ControllerStatus,
    Property, ReadyTimeouts, ShutdownNotification, ShutdownStatus,
};

use super::bus::{Function, Registers};
use super::doorbell::Stride;
use super::error::PcieError;
use super::options::Access;
use crate::error::DriverError;

/// Unit of CAP.TO and CRTO.
const READY_UNIT_MS: u64 = 500;

/// Longest time that is waited, in that unit: the largest CAP.TO, two minutes. CRTO could
/// say nine hours, which is an error of the controller rather than a wish.
const MAX_READY_UNITS: u64 = 255;

/// How long to wait before CSTS is read again.
const LOOK_EVERY: Nanos = Nanos::from_ms(1);

/// Where a register is in the BAR: properties have the same offsets.
const fn offset(property: Property) -> u64 {
    property.0 as u64
}

/// What a function has of a controller before anything is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Bringup<F> {
    pub(crate) function: F,
    pub(crate) cap: Capabilities,
    /// How long the controller may take to become ready, and to stop.
    within: Nanos,
    access: Access,
}

impl<F: Function> Bringup<F> {
    /// Reads what the controller can do.
    ///
    /// # Errors
    /// It is gone, or this driver cannot work with it.
    pub(crate) fn new(function: F, access: Access) -> Result<Self, DriverError> {
        let bits = function.read64(offset(Property::CAP));
        if bits == u64::MAX {
            return Err(PcieError::Gone.into());
        }
        let cap = Capabilities::from_bits(bits);
        let bringup = Self {
            within: ready_timeout(&function, cap),
            function,
            cap,
            access,
        };
        bringup.check()?;
        Ok(bringup)
    }

    fn check(&self) -> Result<(), DriverError> {
        let unusable = |field, value: u64, needs| DriverError::Unusable {
            field,
            value,
            needs,
        };
        let cap = self.cap;
        if cap.mpsmin() > 0 {
            let value = cap.mpsmin().into();
            return Err(unusable(
                "CAP.MPSMIN",
                value,
                "0: memory pages of 4096 bytes",
            ));
        }
        if cap.mqes_z() == 0 {
            return Err(unusable("CAP.MQES", 0, "at least 1: queues of two entries"));
        }
        if !cap.css_io() && !cap.css_nvm() {
            let value = u64::from(cap.css_admin_only()) << 7;
            return Err(unusable("CAP.CSS", value, "an I/O command set: bit 0 or 6"));
        }
        let needed = self.stride().bar_bytes(1);
        if self.function.bar_bytes() < needed {
            let value = self.function.bar_bytes();
            return Err(unusable(
                "a BAR 0 of bytes:",
                value,
                "the doorbells of queue 1",
            ));
        }
        Ok(())
    }

    /// Distance of its doorbells.
    pub(crate) fn stride(&self) -> Stride {
        Stride::from_dstrd(self.cap.dstrd())
    }

    /// The highest queue whose doorbells are in the BAR; at most 65535.
    pub(crate) fn last_queue(&self) -> u16 {
        let is_inside = |qid: &u16| self.stride().bar_bytes(*qid) <= self.function.bar_bytes();
        let bytes_each = self.stride().bar_bytes(1) - self.stride().bar_bytes(0);
        let first = self.stride().bar_bytes(0);
        let last = self.function.bar_bytes().saturating_sub(first) / bytes_each;
        let last = u16::try_from(last).unwrap_or(u16::MAX);
        debug_assert!(is_inside(&last));
        last
    }

    /// Reads CSTS.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn status(&self) -> Result<ControllerStatus, PcieError> {
        match self.function.read32(offset(Property::CSTS)) {
            u32::MAX => {
                // Nothing is left that could access memory.
                self.access.set(false);
                Err(PcieError::Gone)
            }
            bits => Ok(ControllerStatus::from_bits(bits)),
        }
    }

    /// Reads CSTS until `holds`.
    fn wait(
        &self,
        state: &'static str,
        within: Nanos,
        holds: impl Fn(ControllerStatus) -> bool,
    ) -> Result<ControllerStatus, DriverError> {
        let end = self.function.now().saturating_add(within);
        loop {
            let csts = self.status()?;
            if holds(csts) {
                return Ok(csts);
            }
            if self.function.now() >= end {
                return Err(DriverError::NotReady { state, within });
            }
            self.function.pause(LOOK_EVERY);
        }
    }

    fn configuration(&self) -> Configuration {
        Configuration::from_bits(self.function.read32(offset(Property::CC)))
    }

    fn configure(&self, cc: Configuration) {
        self.function.write32(offset(Property::CC), cc.bits());
    }

    /// Disables the controller: after this it accesses no memory.
    ///
    /// EN changes only when RDY agrees with it (section 3.1.3.5): one that is being
    /// enabled is let come to that end first, unless it reports a fatal error.
    ///
    /// # Errors
    /// It does not stop in time, or is gone. Nothing may be freed then that it knows of,
    /// unless it is gone.
    pub(crate) fn disable(&self) -> Result<(), DriverError> {
        self.status()?;
        let cc = self.configuration();
        if cc.en() {
            let settled = |csts: ControllerStatus| csts.rdy() || csts.cfs();
            // One that never gets ready can still be told to stop.
            match self.wait("ready", self.within, settled) {
                Ok(_) | Err(DriverError::NotReady { .. }) => {}
                Err(error) => return Err(error),
            }
            let none = ShutdownNotification::NONE;
            self.configure(cc.with_en(false).with_shn(none));
        }
        self.wait("disabled", self.within, |csts| !csts.rdy())?;
        self.access.set(false);
        Ok(())
    }

    /// Enables the controller, which is disabled, with the admin queue at `rings` of
    /// `entries` entries each.
    ///
    /// # Errors
    /// It does not become ready in time, reports a fatal error, or is gone.
    pub(crate) fn enable(
        &self,
        (submission, completion): (u64, u64),
        entries: u32,
    ) -> Result<(), DriverError> {
        let entries_z = (entries - 1) as u16;
        let aqa = AdminQueueAttributes::default()
            .with_asqs_z(entries_z)
            .with_acqs_z(entries_z);
        self.function.write32(offset(Property::AQA), aqa.bits());
        self.function.write64(offset(Property::ASQ), submission);
        self.function.write64(offset(Property::ACQ), completion);
        let css = match self.cap.css_io() {
            true => CommandSetSelected::ALL,
            false => CommandSetSelected::NVM,
        };
        let cc = Configuration::default()
            .with_css(css)
            .with_iosqes(6)
            .with_iocqes(4)
            .with_en(true);
        self.access.set(true);
        self.configure(cc);
        let csts = self.wait("ready", self.within, |csts| csts.rdy() || csts.cfs())?;
        match csts.cfs() {
            true => Err(DriverError::ControllerFatal),
            false => Ok(()),
        }
    }

    /// Tells the controller that it will be switched off, and waits until it is ready
    /// for that.
    ///
    /// # Errors
    /// It takes too long, or is gone.
    pub(crate) fn shut_down(&self, within: Nanos) -> Result<(), DriverError> {
        self.status()?;
        let cc = self.configuration();
        self.configure(cc.with_shn(ShutdownNotification::NORMAL));
        let is_over = |csts: ControllerStatus| csts.shst() == ShutdownStatus::COMPLETE;
        self.wait("shut down", within, is_over).map(drop)
    }
}

/// How long the controller may take: CAP.TO, or CRTO where there is one, whichever is
/// longer. Some controllers have a CRTO of 0, and some a CAP.TO of 0.
fn ready_timeout(function: &impl Registers, cap: Capabilities) -> Nanos {
    let to = u64::from(cap.to());
    let crto = match cap.crwms() || cap.crims() {
        true => {
            let bits = function.read32(offset(Property::CRTO));
            u64::from(ReadyTimeouts::from_bits(bits).crwmt())
        }
        false => 0,
    };
    Nanos::from_ms(READY_UNIT_MS * to.max(crto).clamp(1, MAX_READY_UNITS))
}
