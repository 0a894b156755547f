//! Authentication against zonelab's own target. The Linux kernel's is the peer
//! in the tests of the guest.

use zonelab_device::{Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{DriverError, HostSecrets, Options, TcpController};
use zonelab_nvme::auth::{DhGroup, Hash, Secret};
use zonelab_target::controller::{Authentication, HostSecret};

use crate::emulated::Target;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";

fn secret(byte: u8) -> Secret {
    Secret::new(Some(Hash::SHA_512), &[byte; 64]).unwrap()
}

/// A target that has secrets for [`HOST`].
fn target(controller: Option<Secret>) -> Target {
    Target::serving(|subsystem| {
        let host = HostSecret {
            hostnqn: HOST.to_owned(),
            host: secret(1),
            controller,
        };
        let mut next = 0_u8;
        let random = move |bytes: &mut [u8]| {
            for byte in bytes {
                next = next.wrapping_mul(5).wrapping_add(1);
                *byte = next;
            }
            Ok(())
        };
        let mut by = Authentication::new(vec![host], Box::new(random));
        by.groups = vec![DhGroup::FFDHE2048];
        subsystem.require_authentication(by).unwrap();
    })
}

fn options(target: &Target, secrets: Option<(Secret, Option<Secret>)>) -> Options {
    let mut options = target.options(&format!("?hostnqn={HOST}"));
    options.secrets = secrets.map(|(host, controller)| HostSecrets { host, controller });
    options
}

/// Connects and appends a block.
fn connect(target: &Target, secrets: Option<(Secret, Option<Secret>)>) -> Result<(), DriverError> {
    let mut controller = TcpController::connect(options(target, secrets))?;
    let mut queue = controller.open_queue()?;
    let append = Op::Append {
        zslba: Lba(0),
        nlb: 1,
    };
    let command = zonelab_device::Command::new(append);
    queue.submit(command, Tag(0), None).unwrap();
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        queue.wait(queue.now().saturating_add(Nanos::from_secs(10)))?;
    }
    assert!(done[0].status.is_success());
    controller.disconnect()
}

#[test]
fn both_queues_authenticate_and_the_controller_if_it_is_to() {
    connect(&target(None), Some((secret(1), None))).unwrap();
    let both = target(Some(secret(2)));
    connect(&both, Some((secret(1), Some(secret(2))))).unwrap();
    // A host need not ask.
    connect(&both, Some((secret(1), None))).unwrap();
}

#[test]
fn each_way_to_fail_has_its_error() {
    let alone = target(None);
    let error = connect(&alone, None).unwrap_err();
    assert!(
        matches!(error, DriverError::AuthenticationRequired),
        "{error}"
    );
    let error = connect(&alone, Some((secret(9), None))).unwrap_err();
    assert!(matches!(error, DriverError::SecretRefused), "{error}");
    // It has no key of its own.
    let error = connect(&alone, Some((secret(1), Some(secret(2))))).unwrap_err();
    assert!(matches!(error, DriverError::SecretRefused), "{error}");
    let both = target(Some(secret(2)));
    let error = connect(&both, Some((secret(1), Some(secret(3))))).unwrap_err();
    assert!(
        matches!(error, DriverError::ControllerNotAuthentic),
        "{error}"
    );
    assert!(!error.is_unreachable());
    // After all of that, the right one is let in.
    connect(&both, Some((secret(1), Some(secret(2))))).unwrap();
}

/// Whoever leaves the question out is not the controller that was meant.
#[test]
fn a_controller_with_a_key_has_to_ask() {
    let open = Target::start();
    connect(&open, Some((secret(1), None))).unwrap();
    let error = connect(&open, Some((secret(1), Some(secret(2))))).unwrap_err();
    assert!(matches!(error, DriverError::NotAuthenticating), "{error}");
    // Discovery is free, and says where to go on.
    let gated = target(None);
    let url = format!("tcp://127.0.0.1:{}?hostnqn={HOST}", gated.port);
    let mut discovery = options(&gated, Some((secret(1), Some(secret(2)))));
    discovery.address = TcpAddress::parse(&url).unwrap();
    let mut controller = TcpController::connect(discovery).unwrap();
    controller.discovery_log().unwrap();
}
