//! Authentication against zonelab's own target. The Linux kernel's is the peer
//! in the tests of the guest.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use zonelab_device::{Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::Controller as _;
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

/// What passes between a host and `target`, until the host asks for the verdict on its
/// response: then the connection is closed. Returns the port to connect to.
fn without_a_verdict(target: u16) -> u16 {
    const COMMAND_CAPSULE: u8 = 0x04;
    const FABRICS: u8 = 0x7f;
    const AUTHENTICATION_RECEIVE: u8 = 0x06;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut host = listener.accept().unwrap().0;
        let mut target = TcpStream::connect(("127.0.0.1", target)).unwrap();
        let (mut from_target, mut to_host) =
            (target.try_clone().unwrap(), host.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from_target, &mut to_host));
        let mut asked = 0;
        while asked < 2 {
            // The common header: type, flags, lengths; the last is that of the PDU.
            let mut pdu = vec![0; 8];
            host.read_exact(&mut pdu).unwrap();
            let length = u32::from_le_bytes(pdu[4..8].try_into().unwrap());
            pdu.resize(length as usize, 0);
            host.read_exact(&mut pdu[8..]).unwrap();
            let is_fabrics = pdu[0] == COMMAND_CAPSULE && pdu[8] == FABRICS;
            asked += u32::from(is_fabrics && pdu[12] == AUTHENTICATION_RECEIVE);
            if asked < 2 {
                target.write_all(&pdu).unwrap();
            }
        }
        host.shutdown(Shutdown::Both).unwrap();
        target.shutdown(Shutdown::Both).unwrap();
    });
    port
}

/// Linux's target closes the connection upon a wrong secret, and its answer may be lost.
#[test]
fn a_connection_that_ends_instead_of_a_verdict_is_a_failure_to_authenticate() {
    let target = target(None);
    let port = without_a_verdict(target.port);
    let mut options = options(&target, Some((secret(9), None)));
    options.address.port = port;
    let error = TcpController::connect(options).unwrap_err();
    assert!(matches!(error, DriverError::NoVerdict(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains("has another key for this host"), "{said}");
}
