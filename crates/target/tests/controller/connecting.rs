//! Connect and what it refuses.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{Connect, ConnectData, DISCOVERY_NQN, InvalidParameter};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::queue::CompletionEntry;
use zonelab_nvme::status::FabricsStatus;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_ssd::Drive;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_target::controller::{SettingsError, Subsystem, SubsystemSettings, TransportLimits};

use crate::host::{HOST, Host, NQN, connect, connect_data, small, subsystem};

pub(crate) fn settings() -> SubsystemSettings {
    SubsystemSettings::new(NQN)
}

pub(crate) fn of(settings: SubsystemSettings) -> Subsystem {
    let drive = FaultyDrive::from(Drive::new(&small()));
    Subsystem::new(drive, settings).expect("the settings are possible")
}

/// Status, whether a retry makes sense, offset of the parameter, whether it is
/// one of the data.
fn refusal(entry: CompletionEntry) -> (Status, bool, u16, bool) {
    let at = InvalidParameter::from_bits(entry.dw0.get());
    (
        entry.status.status(),
        entry.status.may_retry(),
        at.ipo(),
        at.in_data(),
    )
}

fn refused(
    subsystem: &mut Subsystem,
    command: Connect,
    data: &ConnectData,
) -> (Status, bool, u16, bool) {
    refusal(connect(subsystem, Nanos::ZERO, command, data).expect_err("it is refused"))
}

const INVALID: Status = FabricsStatus::CONNECT_INVALID_PARAMETERS.status();

#[test]
fn every_parameter_of_connect_is_checked() {
    let mut subsystem = subsystem();
    let good = connect_data(NQN, 0xffff);
    let admin = Connect::new(0, 32);
    let mut check = |command, data: &ConnectData| refused(&mut subsystem, command, data);
    let format = Connect { recfmt: 1, ..admin };
    assert_eq!(
        check(format, &good),
        (
            FabricsStatus::CONNECT_INCOMPATIBLE_FORMAT.status(),
            false,
            0,
            false
        )
    );
    let elsewhere = connect_data("nqn.2026-01.io.zonelab:other", 0xffff);
    assert_eq!(check(admin, &elsewhere), (INVALID, false, 256, true));
    let mut nameless = good;
    nameless.hostnqn = Nqn::new("").unwrap();
    assert_eq!(check(admin, &nameless), (INVALID, false, 512, true));
    assert_eq!(
        check(Connect::new(0, 1), &good),
        (INVALID, false, 44, false)
    );
    assert_eq!(
        check(Connect::new(0, 129), &good),
        (INVALID, false, 44, false)
    );
    // Controllers are of the dynamic model: the host cannot choose.
    for cntlid in [0, 1, 0xfffe] {
        assert_eq!(
            check(admin, &connect_data(NQN, cntlid)),
            (INVALID, false, 16, true)
        );
    }
    // An I/O queue of no controller.
    assert_eq!(
        check(Connect::new(1, 32), &connect_data(NQN, 1)),
        (INVALID, false, 16, true)
    );
}

/// A name ends at its zero byte; whatever is behind it makes no other name of it.
#[test]
fn nothing_stands_behind_the_end_of_a_name() {
    let mut subsystem = subsystem();
    let admin = Connect::new(0, 32);
    let behind = |name: &str| {
        let mut bytes = [0; 256];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[name.len() + 1] = b'x';
        Nqn::read_from_bytes(&bytes).expect("it has the size")
    };
    let mut data = connect_data(NQN, 0xffff);
    data.hostnqn = behind(HOST);
    assert_eq!(
        refused(&mut subsystem, admin, &data),
        (INVALID, false, 512, true)
    );
    for subnqn in [NQN, DISCOVERY_NQN] {
        let mut data = connect_data(subnqn, 0xffff);
        data.subnqn = behind(subnqn);
        assert_eq!(
            refused(&mut subsystem, admin, &data),
            (INVALID, false, 256, true)
        );
    }
}

#[test]
fn an_io_queue_belongs_to_its_controller_and_to_one_identifier() {
    let mut host = Host::new();
    let cntlid = host.cntlid;
    let good = connect_data(NQN, cntlid);
    let mut check =
        |qid, data: &ConnectData| refused(&mut host.subsystem, Connect::new(qid, 32), data);
    assert_eq!(
        check(1, &good),
        (Status::COMMAND_SEQUENCE_ERROR, false, 0, false)
    );
    assert_eq!(check(17, &good), (INVALID, false, 42, false));
    let mut other = good;
    other.hostid = [8; 16];
    assert_eq!(check(2, &other), (INVALID, false, 0, true));
    let mut other = good;
    other.hostnqn = Nqn::new("nqn.2026-01.io.zonelab:another").unwrap();
    assert_eq!(check(2, &other), (INVALID, false, 512, true));
    let other = connect_data(DISCOVERY_NQN, cntlid);
    assert_eq!(check(2, &other), (INVALID, false, 256, true));
    host.connect_io(2);
}

#[test]
fn an_io_queue_needs_an_enabled_controller() {
    let mut host = Host::admin_only(subsystem(), Connect::new(0, 32));
    let data = connect_data(NQN, host.cntlid);
    assert_eq!(
        refused(&mut host.subsystem, Connect::new(1, 32), &data),
        (Status::COMMAND_SEQUENCE_ERROR, false, 0, false)
    );
}

#[test]
fn only_hosts_of_the_list_may_connect() {
    let with = |hosts: &[&str]| {
        let mut settings = settings();
        settings.allowed_hosts = Some(hosts.iter().map(|&host| host.to_owned()).collect());
        of(settings)
    };
    let admin = Connect::new(0, 32);
    let data = connect_data(NQN, 0xffff);
    assert!(connect(&mut with(&[HOST]), Nanos::ZERO, admin, &data).is_ok());
    for list in [&[][..], &["nqn.2026-01.io.zonelab:another"]] {
        assert_eq!(
            refused(&mut with(list), admin, &data),
            (
                FabricsStatus::CONNECT_INVALID_HOST.status(),
                false,
                0,
                false
            )
        );
    }
}

#[test]
fn controllers_run_out_and_come_back() {
    let mut settings = settings();
    settings.controllers = 2;
    let mut subsystem = of(settings);
    let admin = Connect::new(0, 32);
    let data = connect_data(NQN, 0xffff);
    let (first, one) = connect(&mut subsystem, Nanos::ZERO, admin, &data).unwrap();
    let (_, two) = connect(&mut subsystem, Nanos::ZERO, admin, &data).unwrap();
    assert_ne!(one, two);
    assert_eq!(
        refused(&mut subsystem, admin, &data),
        (
            FabricsStatus::CONNECT_CONTROLLER_BUSY.status(),
            true,
            0,
            false
        )
    );
    subsystem.disconnect(Nanos::ZERO, first);
    assert!(connect(&mut subsystem, Nanos::ZERO, admin, &data).is_ok());
}

#[test]
fn impossible_settings_are_named() {
    let refused = |change: fn(&mut SubsystemSettings)| {
        let mut settings = settings();
        change(&mut settings);
        let drive = FaultyDrive::from(Drive::new(&small()));
        Subsystem::new(drive, settings).unwrap_err()
    };
    let nqn = refused(|settings| settings.nqn = "test".into());
    assert!(matches!(nqn, SettingsError::Nqn { key: "nqn", .. }));
    let discovery = refused(|settings| settings.nqn = DISCOVERY_NQN.into());
    assert!(matches!(discovery, SettingsError::Nqn { key: "nqn", .. }));
    let serial = refused(|settings| settings.serial_number = "x".repeat(21));
    assert!(matches!(
        serial,
        SettingsError::Text {
            key: "serial_number",
            most: 20,
            ..
        }
    ));
    let depth = refused(|settings| {
        settings.limits = TransportLimits {
            queue_depth: 1,
            ..settings.limits
        };
    });
    assert_eq!(
        depth.to_string(),
        "limits.queue_depth is 1, but must be 2 to 4096"
    );
}
