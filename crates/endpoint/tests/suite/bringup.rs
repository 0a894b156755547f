//! Bring-up and its failures.

use std::cell::Cell;
use std::rc::Rc;

use zonelab_device::Nanos;
use zonelab_driver::DriverError;
use zonelab_driver::pcie::{
    DmaError, DmaMemory, DmaRegion, Function, PcieController, PcieError, PcieOptions, Registers,
};
use zonelab_endpoint::{Endpoint, EndpointSettings, Stuck};
use zonelab_nvme::property::{ControllerStatus, Property};

use crate::drive::{CAPACITY, ZONE, connect, endpoint};

#[test]
fn a_controller_says_what_it_is() {
    let endpoint = endpoint(EndpointSettings::default());
    let controller = connect(&endpoint, PcieOptions::default());
    let info = controller.info();
    assert_eq!(info.namespaces.len(), 1);
    let zoned = info.namespaces[0].zoned.unwrap();
    assert_eq!((zoned.zones, zoned.zone_size_lbas), (6, ZONE));
    assert_eq!(zoned.zone_capacity_lbas, CAPACITY, "from a zone report");
    assert_eq!((zoned.max_open, zoned.max_active), (Some(3), Some(4)));
    assert_eq!(info.max_transfer_bytes, 1 << 20);
    assert!(!controller.has_shadow_doorbells());
    assert_eq!(endpoint.bad_doorbells(), 0);
    controller.shut_down().unwrap();
    assert_eq!(endpoint.memory().regions(), 0, "all memory is given back");
    assert_eq!(endpoint.memory().faults(), 0);
}

/// A smaller limit of the driver is the limit that hosts see; appends follow.
#[test]
fn the_smaller_limit_of_transfers_counts() {
    let settings = EndpointSettings {
        max_transfer_bytes: 64 << 10,
        ..EndpointSettings::default()
    };
    let endpoint = endpoint(settings);
    for (most, expected) in [(1 << 20, 64 << 10), (20 << 10, 20 << 10), (1, 4096)] {
        let options = PcieOptions {
            max_transfer_bytes: most,
            ..PcieOptions::default()
        };
        let controller = connect(&endpoint, options);
        assert_eq!(controller.info().max_transfer_bytes, expected);
        assert_eq!(controller.info().max_append_bytes, expected);
    }
}

/// The controller may take the longer of CAP.TO and CRTO: either may be 0.
#[test]
fn the_longer_of_both_timeouts_counts() {
    for (cap_to, crto, is_enough) in [
        (4, Some(0), true),
        (0, Some(4), true),
        (4, None, true),
        (3, Some(3), false),
        (0, None, false),
    ] {
        let settings = EndpointSettings {
            cap_to,
            crto,
            ready_after: Nanos::from_ms(1900),
            ..EndpointSettings::default()
        };
        let connected = PcieController::connect(endpoint(settings), PcieOptions::default());
        match connected {
            Ok(_) => assert!(is_enough, "TO {cap_to} CRTO {crto:?}"),
            Err(DriverError::NotReady { state: "ready", .. }) => assert!(!is_enough),
            Err(error) => panic!("TO {cap_to} CRTO {crto:?}: {error}"),
        }
    }
}

#[test]
fn a_controller_that_never_gets_ready_is_an_error() {
    let endpoint = endpoint(EndpointSettings::default());
    endpoint.stick(Some(Stuck::NotReady));
    let start = endpoint.now();
    let error = PcieController::connect(endpoint.clone(), PcieOptions::default()).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "the controller did not become ready within 7.5 s");
    assert!(endpoint.now() >= start + Nanos::from_ms(7500));
    assert_eq!(endpoint.memory().regions(), 0, "it could be disabled");
}

/// A controller that is still enabled from before and cannot be disabled is not touched.
#[test]
fn a_controller_that_does_not_stop_fails_the_start() {
    let endpoint = endpoint(EndpointSettings::default());
    drop(connect(&endpoint, PcieOptions::default()));
    endpoint.stick(Some(Stuck::Ready));
    let error = PcieController::connect(endpoint.clone(), PcieOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the controller did not become disabled within 7.5 s"
    );
}

/// What the controller may still write to is kept.
#[test]
fn memory_of_a_controller_that_cannot_be_disabled_is_not_freed() {
    let endpoint = endpoint(EndpointSettings::default());
    let controller = connect(&endpoint, PcieOptions::default());
    let regions = endpoint.memory().regions();
    assert!(regions > 0);
    endpoint.stick(Some(Stuck::Ready));
    drop(controller);
    assert_eq!(endpoint.memory().regions(), regions);
}

#[test]
fn a_controller_with_a_fatal_error_is_an_error_and_starts_after_a_reset() {
    let endpoint = endpoint(EndpointSettings::default());
    let controller = connect(&endpoint, PcieOptions::default());
    endpoint.fail();
    assert!(matches!(
        controller.check(),
        Err(DriverError::ControllerFatal)
    ));
    drop(controller);
    connect(&endpoint, PcieOptions::default()).check().unwrap();
}

#[test]
fn a_device_that_is_gone_is_an_error() {
    let endpoint = endpoint(EndpointSettings::default());
    let controller = connect(&endpoint, PcieOptions::default());
    endpoint.remove();
    let error = controller.check().unwrap_err();
    assert!(
        matches!(error, DriverError::Pcie(PcieError::Gone)),
        "{error}"
    );
    drop(controller);
    assert_eq!(
        endpoint.memory().regions(),
        0,
        "nothing is left that could write"
    );
    let error = PcieController::connect(endpoint, PcieOptions::default()).unwrap_err();
    assert!(
        matches!(error, DriverError::Pcie(PcieError::Gone)),
        "{error}"
    );
}

/// Registers of an endpoint, with other capabilities, and CC watched.
#[derive(Clone, Debug)]
struct Altered {
    endpoint: Endpoint,
    cap_or: u64,
    cap_and: u64,
    /// Writes of CC that changed EN while RDY did not agree with it; and steps in the wrong
    /// order where it matters who may access memory.
    rash: Rc<Cell<u32>>,
    /// It may access memory.
    may_access: Rc<Cell<bool>>,
}

impl Altered {
    fn new(cap_or: u64, cap_and: u64) -> Self {
        let settings = EndpointSettings {
            ready_after: Nanos::from_ms(50),
            ..EndpointSettings::default()
        };
        let endpoint = endpoint(settings);
        let rash = Rc::default();
        Self {
            endpoint,
            cap_or,
            cap_and,
            rash,
            may_access: Rc::default(),
        }
    }

    fn is_rash(&self) {
        self.rash.set(self.rash.get() + 1);
    }

    fn is_ready(&self) -> bool {
        let csts = self.endpoint.read32(Property::CSTS.0.into());
        ControllerStatus::from_bits(csts).rdy()
    }
}

impl Registers for Altered {
    fn bar_bytes(&self) -> u64 {
        self.endpoint.bar_bytes()
    }

    fn read32(&self, offset: u64) -> u32 {
        let value = self.endpoint.read32(offset);
        match offset {
            0 => (value | self.cap_or as u32) & self.cap_and as u32,
            4 => (value | (self.cap_or >> 32) as u32) & (self.cap_and >> 32) as u32,
            _ => value,
        }
    }

    fn write32(&self, offset: u64, value: u32) {
        if offset == u64::from(Property::CC.0) {
            let was = self.endpoint.read32(offset) & 1 != 0;
            let is_on = value & 1 != 0;
            let is_early = is_on && !self.may_access.get();
            if is_early || (was != is_on && self.is_ready() != was) {
                self.is_rash();
            }
        }
        self.endpoint.write32(offset, value);
    }
}

impl DmaMemory for Altered {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        self.endpoint.allocate(bytes)
    }
}

impl Function for Altered {
    fn let_access_memory(&self) -> std::io::Result<()> {
        if self.is_ready() || self.endpoint.read32(Property::CC.0.into()) & 1 != 0 {
            self.is_rash();
        }
        self.may_access.set(true);
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.endpoint.now()
    }

    fn pause(&self, span: Nanos) {
        self.endpoint.pause(span);
    }
}

/// One that somebody has left enabled may not access memory before it is disabled.
#[test]
fn a_controller_that_was_left_enabled_is_disabled_before_it_may_access_memory() {
    let altered = Altered::new(0, u64::MAX);
    core::mem::forget(connect(&altered.endpoint, PcieOptions::default()));
    assert!(altered.is_ready());
    let controller = PcieController::connect(altered.clone(), PcieOptions::default()).unwrap();
    controller.check().unwrap();
    assert!(altered.may_access.get());
    assert_eq!(altered.rash.get(), 0);
}

#[test]
fn capabilities_that_the_driver_cannot_work_with_are_named() {
    for (cap_or, cap_and, expected) in [
        (1 << 48, u64::MAX, "CAP.MPSMIN 1"),
        (0, !0xffff, "CAP.MQES 0"),
        (1 << 44, !(1 << 37 | 1 << 43), "CAP.CSS 128"),
        (15 << 32, u64::MAX, "a BAR 0 of bytes: 16384"),
    ] {
        let altered = Altered::new(cap_or, cap_and);
        let error = PcieController::connect(altered, PcieOptions::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// CC.EN changes only when CSTS.RDY agrees with it.
#[test]
fn a_controller_that_is_being_enabled_is_let_come_to_that_end() {
    let altered = Altered::new(0, u64::MAX);
    // Somebody before has enabled it, with queues of its own, and not waited.
    let asq = altered.allocate(4096).unwrap();
    let acq = altered.allocate(4096).unwrap();
    altered.write32(Property::AQA.0.into(), 1 << 16 | 1);
    altered.write64(Property::ASQ.0.into(), asq.iova());
    altered.write64(Property::ACQ.0.into(), acq.iova());
    altered.endpoint.write32(Property::CC.0.into(), 0x0046_0061);
    let controller = PcieController::connect(altered.clone(), PcieOptions::default()).unwrap();
    assert_eq!(controller.info().namespaces.len(), 1);
    drop(controller);
    assert_eq!(altered.rash.get(), 0);
}

/// Each queue has its doorbells, whatever the stride.
#[test]
fn doorbells_may_be_far_apart() {
    for dstrd in 0..3 {
        let settings = EndpointSettings {
            dstrd,
            ..EndpointSettings::default()
        };
        let endpoint = endpoint(settings);
        let options = PcieOptions {
            queues: 4,
            ..PcieOptions::default()
        };
        let mut controller = connect(&endpoint, options);
        for _ in 0..4 {
            let mut queue = controller.open_queue().unwrap();
            let write = crate::drive::write(0, 1);
            let data = Some(crate::drive::pattern(0, 1));
            let done = crate::drive::run(&mut queue, &endpoint, write, data);
            let is_first = queue.id().0 == 1;
            assert_eq!(
                done.status.is_success(),
                is_first,
                "the write pointer moves once"
            );
        }
        assert!(controller.open_queue().is_err(), "four were asked for");
        assert_eq!(endpoint.bad_doorbells(), 0);
    }
}
