//! Hosts that must authenticate themselves, and what they are refused until then.

use proptest::prelude::*;
use zonelab_auth::{AuthError, Host as Party, NoRandom, Parties, Random};
use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::auth::{DhGroup, FailureExplanation, Hash, Secret};
use zonelab_nvme::command::{AdminCommand, Identify, IoCommand, Read};
use zonelab_nvme::fabrics::{
    AuthenticationReceive, AuthenticationSend, Connect, ConnectResponse, DISCOVERY_NQN,
    FabricsCommand, PropertyGet, SecurityProtocol,
};
use zonelab_nvme::identify::{Cns, CommandSet, Nqn};
use zonelab_nvme::property::Property;
use zonelab_nvme::queue::{AdminOpcode, PointerKind, SglDescriptor, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;
use zonelab_target::controller::{
    Authentication, HostSecret, NotAuthenticated, QueueHandle, SettingsError, Subsystem,
};

use crate::connecting::{of, settings};
use crate::host::{HOST, Host, NQN, Reply, connect, connect_data, enabled, subsystem};

const REQUIRED: Status = FabricsStatus::AUTHENTICATION_REQUIRED.status();
/// Bytes of the buffer for messages, as the Linux host has it.
const ROOM: u32 = 4096;

fn secret(byte: u8) -> Secret {
    Secret::new(Some(Hash::SHA_256), &[byte; 32]).expect("32 bytes are a key")
}

fn random(byte: u8) -> Random {
    Random {
        challenge: [byte; 64],
        exponent: [byte; 64],
    }
}

/// How the subsystem authenticates [`HOST`]: without Diffie-Hellman exchange,
/// which the tests of the state machines have.
fn authentication(controller: Option<Secret>) -> Authentication {
    let mut next = 0_u8;
    let random = move |bytes: &mut [u8]| {
        next = next.wrapping_add(1);
        bytes.fill(next);
        Ok(())
    };
    let host = HostSecret {
        hostnqn: HOST.to_owned(),
        host: secret(1),
        controller,
    };
    let mut by = Authentication::new(vec![host], Box::new(random));
    by.groups = vec![DhGroup::NULL];
    by
}

fn gated(controller: Option<Secret>) -> Subsystem {
    let mut subsystem = subsystem();
    subsystem
        .require_authentication(authentication(controller))
        .expect("the names are valid");
    subsystem
}

/// A host whose admin queue is connected, and not yet authenticated.
fn outside() -> Host {
    Host::admin_only(gated(None), Connect::new(0, 32))
}

/// The host's end of a transaction.
fn party(host: Secret, controller: Option<Secret>) -> Party {
    let parties = Parties {
        host_nqn: HOST.to_owned(),
        subsystem_nqn: NQN.to_owned(),
        host_secret: host,
        controller_secret: controller,
    };
    Party::new(parties, random(77), 3)
}

fn send(host: &mut Host, queue: QueueHandle, message: &[u8]) -> Reply {
    let command = AuthenticationSend::new(message.len() as u32);
    host.call(queue, command.to_entry(), Some(message.to_vec()), 0)
}

fn receive(host: &mut Host, queue: QueueHandle) -> Reply {
    let command = AuthenticationReceive::new(ROOM);
    host.call(queue, command.to_entry(), None, ROOM as usize)
}

/// Carries the messages of a transaction until there are no more.
fn talk(host: &mut Host, queue: QueueHandle, party: &mut Party) {
    while let Some(message) = party.send() {
        assert_eq!(send(host, queue, &message).status(), Status::SUCCESS);
        if party.is_authenticated() || party.failure().is_some() {
            break;
        }
        let reply = receive(host, queue);
        let _ = party.receive(reply.data());
    }
}

/// Lets a queue through with the right secret.
fn authenticate(host: &mut Host, queue: QueueHandle) {
    let mut party = party(secret(1), None);
    talk(host, queue, &mut party);
    assert!(party.is_authenticated(), "{:?}", party.failure());
}

fn identify(host: &mut Host) -> Status {
    let command = Identify::new(0, Cns::CONTROLLER, CommandSet::NVM);
    host.admin(AdminCommand::Identify(command), 4096).status()
}

/// Runs on for 5 s, and gives the queues that were closed.
fn closed(host: &mut Host) -> Vec<QueueHandle> {
    host.run(host.now.saturating_add(Nanos::from_secs(5)));
    core::mem::take(&mut host.closed)
}

#[test]
fn a_connect_says_that_authentication_is_required() {
    let response = |subsystem: &mut Subsystem, subnqn| {
        let command = Connect::new(0, 32);
        let entry = command.to_entry().unwrap();
        let data = connect_data(subnqn, 0xffff);
        let connected = subsystem.connect(Nanos::ZERO, (&entry, &command), &data);
        let dword0 = connected.expect("it is let in").completion.dw0;
        (ConnectResponse::from_dword0(dword0), dword0.get())
    };
    let (required, dword0) = response(&mut gated(None), NQN);
    assert!(required.authreq.atr() && !required.authreq.ascr());
    // CNTLID 1, and ATR at bit 17 as Linux looks for it.
    assert_eq!(dword0, 1 << 17 | 1);
    let (free, _) = response(&mut subsystem(), NQN);
    assert!(!free.authreq.atr());
    // Discovery is free.
    let (discovery, _) = response(&mut gated(None), DISCOVERY_NQN);
    assert!(!discovery.authreq.atr());
}

#[test]
fn only_hosts_with_a_secret_may_connect() {
    let mut subsystem = gated(None);
    let command = Connect::new(0, 32);
    let entry = command.to_entry().unwrap();
    let mut data = connect_data(NQN, 0xffff);
    data.hostnqn = Nqn::new("nqn.2026-01.io.zonelab:another").unwrap();
    let refused = subsystem.connect(Nanos::ZERO, (&entry, &command), &data);
    let status = refused.unwrap_err().status.status();
    assert_eq!(status, FabricsStatus::CONNECT_INVALID_HOST.status());
}

#[test]
fn secrets_are_replaced_and_revoked_while_hosts_are_there() {
    let mut host = outside();
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    let with = |byte| HostSecret {
        hostnqn: HOST.to_owned(),
        host: secret(byte),
        controller: None,
    };
    let twice = host.subsystem.set_secrets(host.now, vec![with(2), with(3)]);
    assert!(
        matches!(twice, Err(SettingsError::HostTwice(_))),
        "{twice:?}"
    );
    // Who is there goes on; a new queue needs the new secret.
    host.subsystem
        .set_secrets(host.now, vec![with(2)])
        .expect("valid names");
    host.connect_io(1);
    let io = host.io;
    let mut old = party(secret(1), None);
    talk(&mut host, io, &mut old);
    assert_eq!(
        old.failure(),
        Some(AuthError::Refused(
            FailureExplanation::AUTHENTICATION_FAILED
        ))
    );
    assert_eq!(host.property(Property::VS), 0x0002_0000);
    // Without a secret, nothing of it is left.
    host.subsystem
        .set_secrets(host.now, Vec::new())
        .expect("no names");
    host.run(host.now.saturating_add(Nanos::from_ms(1)));
    assert!(host.closed.contains(&admin));
    assert_eq!(host.subsystem.controllers(), 0);
}

#[test]
fn a_host_is_in_the_list_and_has_a_secret() {
    let another = "nqn.2026-01.io.zonelab:another";
    for (hostnqn, allowed, is_let_in) in [
        (HOST, HOST, true),
        (HOST, another, false),
        (another, another, false),
    ] {
        let mut settings = settings();
        settings.allowed_hosts = Some(vec![allowed.to_owned()]);
        let mut subsystem = of(settings);
        subsystem
            .require_authentication(authentication(None))
            .expect("the names are valid");
        let command = Connect::new(0, 32);
        let entry = command.to_entry().unwrap();
        let mut data = connect_data(NQN, 0xffff);
        data.hostnqn = Nqn::new(hostnqn).unwrap();
        let connected = subsystem.connect(Nanos::ZERO, (&entry, &command), &data);
        let status = connected
            .map(|_| ())
            .map_err(|refused| refused.status.status());
        let invalid_host = FabricsStatus::CONNECT_INVALID_HOST.status();
        let expected = if is_let_in { Ok(()) } else { Err(invalid_host) };
        assert_eq!(status, expected, "{hostnqn} where {allowed} is allowed");
    }
}

#[test]
fn nothing_passes_before_authentication() {
    let mut host = outside();
    let capabilities = FabricsCommand::PropertyGet(PropertyGet::new(Property::CAP));
    let reply = host.fabrics(capabilities);
    assert_eq!(reply.status(), REQUIRED);
    assert!(!reply.entry.status.may_retry());
    assert_eq!(identify(&mut host), REQUIRED);
    let keep_alive = SubmissionEntry::new(AdminOpcode::KEEP_ALIVE.0);
    let reply = host.call(host.admin, keep_alive, None, 0);
    assert_eq!(reply.status(), REQUIRED);
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    assert_eq!(identify(&mut host), Status::SUCCESS);
}

#[test]
fn every_queue_authenticates_itself() {
    let mut host = outside();
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    for qid in [1, 2] {
        host.connect_io(qid);
        let read = || IoCommand::Read(Read::new(1, 0, 1));
        assert_eq!(host.io(read(), None, 4096).status(), REQUIRED);
        let io = host.io;
        authenticate(&mut host, io);
        assert_eq!(host.io(read(), None, 4096).status(), Status::SUCCESS);
    }
    assert_eq!(closed(&mut host), []);
}

/// Whoever knows the names of a host can connect a queue for its controller.
#[test]
fn a_stranger_holds_no_identifier_of_a_queue_and_keeps_nothing_alive() {
    let connect_admin = Connect {
        kato: 5000,
        ..Connect::new(0, 32)
    };
    let mut host = Host::admin_only(gated(None), connect_admin);
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    host.connect_io(1);
    let stranger = host.io;
    host.connect_io(1);
    let own = host.io;
    authenticate(&mut host, own);
    let read = || IoCommand::Read(Read::new(1, 0, 1));
    assert_eq!(host.io(read(), None, 4096).status(), Status::SUCCESS);
    let data = connect_data(NQN, host.cntlid);
    let taken = connect(&mut host.subsystem, host.now, Connect::new(1, 32), &data);
    let taken = taken.expect_err("it has an owner").status.status();
    assert_eq!(taken, Status::COMMAND_SEQUENCE_ERROR);
    // Who authenticates itself too late ends, and the owner goes on.
    let mut late = party(secret(1), None);
    let first = late.send().expect("it begins");
    assert_eq!(send(&mut host, stranger, &first).status(), Status::SUCCESS);
    let challenge = receive(&mut host, stranger);
    let _ = late.receive(challenge.data());
    let reply = late.send().expect("it knows the secret");
    let entry = AuthenticationSend::new(reply.len() as u32).to_entry();
    host.send(stranger, entry, Some(reply), 0);
    host.run(host.now.saturating_add(Nanos::from_ms(1)));
    assert_eq!(host.closed, [stranger]);
    host.subsystem.disconnect(host.now, stranger);
    assert_eq!(host.io(read(), None, 4096).status(), Status::SUCCESS);
    // The host is gone, and only a stranger is heard.
    host.connect_io(2);
    let stranger = host.io;
    host.closed.clear();
    for _ in 0..20 {
        let entry = read().to_entry().expect("it fits");
        host.send(stranger, entry, None, 4096);
        let to = host.now.saturating_add(Nanos::from_secs(1));
        host.run(to);
        host.now = to;
    }
    assert!(host.closed.contains(&admin), "{:?}", host.closed);
    assert!(host.closed.contains(&stranger), "{:?}", host.closed);
}

#[test]
fn a_host_may_ask_the_controller_for_its_secret() {
    for (own, is_right) in [(secret(2), true), (secret(3), false)] {
        let mut host = Host::admin_only(gated(Some(secret(2))), Connect::new(0, 32));
        let admin = host.admin;
        let mut party = party(secret(1), Some(own));
        talk(&mut host, admin, &mut party);
        assert_eq!(party.is_authenticated(), is_right);
        let expected = if is_right { vec![] } else { vec![admin] };
        // A host that does not believe the controller says so, and it ends.
        assert_eq!(closed(&mut host), expected);
        if is_right {
            host.set_cc(enabled());
            assert_eq!(identify(&mut host), Status::SUCCESS);
        }
    }
}

#[test]
fn a_wrong_secret_is_told_and_ends_the_connection() {
    let mut host = outside();
    let admin = host.admin;
    let mut party = party(secret(9), None);
    send(&mut host, admin, &party.send().unwrap());
    party.receive(receive(&mut host, admin).data()).unwrap();
    let reply = send(&mut host, admin, &party.send().unwrap());
    assert_eq!(reply.status(), Status::SUCCESS);
    // It is told before the connection ends; nothing else passes meanwhile.
    assert_eq!(host.closed, []);
    assert_eq!(identify(&mut host), REQUIRED);
    let again = send(&mut host, admin, &[0; 8]).status();
    assert_eq!(again, Status::COMMAND_SEQUENCE_ERROR);
    let refused = party.receive(receive(&mut host, admin).data());
    let why = FailureExplanation::AUTHENTICATION_FAILED;
    assert_eq!(refused, Err(AuthError::Refused(why)));
    let complaint = host.subsystem.not_authenticated(admin);
    let expected = NotAuthenticated::Failed(AuthError::WrongResponse);
    assert_eq!(complaint, Some(expected));
    assert_eq!(closed(&mut host), [admin]);
    assert_eq!(host.subsystem.controllers(), 0);
}

#[test]
fn the_wrong_secret_of_an_io_queue_ends_only_that_queue() {
    let mut host = outside();
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    host.connect_io(1);
    let io = host.io;
    let mut party = party(secret(9), None);
    talk(&mut host, io, &mut party);
    assert!(party.failure().is_some());
    assert_eq!(closed(&mut host), [io]);
    host.subsystem.disconnect(host.now, io);
    assert_eq!(identify(&mut host), Status::SUCCESS);
    // Its identifier is free again.
    host.connect_io(1);
}

#[test]
fn messages_out_of_turn_fail() {
    let mut host = outside();
    let admin = host.admin;
    let nothing_yet = receive(&mut host, admin).status();
    assert_eq!(nothing_yet, Status::COMMAND_SEQUENCE_ERROR);
    // DH-HMAC-CHAP_Success2 without anything before it.
    let success2 = [1, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(send(&mut host, admin, &success2).status(), Status::SUCCESS);
    // AUTH_Failure1: its type, its identifier, T_ID, reason and explanation.
    let reply = receive(&mut host, admin);
    assert_eq!(reply.data()[..8], [0, 0xf1, 0, 0, 3, 0, 1, 7]);
    assert!(reply.data()[8..].iter().all(|&byte| byte == 0));
    assert_eq!(closed(&mut host), [admin]);
}

#[test]
fn fields_of_authentication_commands_are_checked() {
    let mut host = outside();
    let admin = host.admin;
    let message = party(secret(1), None).send().unwrap();
    let length = message.len() as u32;
    let right = SecurityProtocol::NVME;
    let mut refused = |entry: SubmissionEntry, data: Option<Vec<u8>>, room: usize| {
        host.call(admin, entry, data, room).status()
    };
    for wrong in [
        SecurityProtocol { secp: 0, ..right },
        SecurityProtocol { spsp0: 0, ..right },
        SecurityProtocol { spsp1: 2, ..right },
    ] {
        let send = AuthenticationSend {
            protocol: wrong,
            tl: length,
        };
        let status = refused(send.to_entry(), Some(message.clone()), 0);
        assert_eq!(status, Status::INVALID_FIELD);
        let receive = AuthenticationReceive {
            protocol: wrong,
            al: ROOM,
        };
        let status = refused(receive.to_entry(), None, ROOM as usize);
        assert_eq!(status, Status::INVALID_FIELD);
    }
    let send = |tl| AuthenticationSend::new(tl).to_entry();
    let status = refused(send(0), None, 0);
    assert_eq!(status, Status::INVALID_FIELD);
    for tl in [length - 1, length + 1] {
        let status = refused(send(tl), Some(message.clone()), 0);
        assert_eq!(status, Status::DATA_SGL_LENGTH_INVALID);
    }
    let status = refused(send(length), Some(message.clone()), 0);
    assert_eq!(status, Status::SUCCESS);
    let receive = |al| AuthenticationReceive::new(al).to_entry();
    assert_eq!(refused(receive(0), None, 0), Status::INVALID_FIELD);
    let status = refused(receive(ROOM), None, 2048);
    assert_eq!(status, Status::DATA_SGL_LENGTH_INVALID);
    // Shorter than the challenge, which is not lost.
    assert_eq!(refused(receive(16), None, 16), Status::INVALID_FIELD);
    assert_eq!(refused(receive(ROOM), None, 4096), Status::SUCCESS);
    // With PRPs.
    let mut prps = receive(ROOM);
    prps.cdw0 = prps.cdw0.with_psdt(PointerKind::PRP);
    host.subsystem.submit(host.now, admin, &prps, None, ROOM);
    let reply = host.wait(admin, 0);
    assert_eq!(reply.status(), Status::INVALID_FIELD);
}

#[test]
fn authentication_commands_without_need_are_refused() {
    let mut host = Host::new();
    for queue in [host.admin, host.io] {
        let status = send(&mut host, queue, &[0; 8]).status();
        assert_eq!(status, Status::INVALID_OPCODE);
        let status = receive(&mut host, queue).status();
        assert_eq!(status, Status::INVALID_OPCODE);
    }
}

#[test]
fn a_transaction_has_a_time_limit() {
    let mut host = outside();
    let admin = host.admin;
    let limit = authentication(None).time_limit;
    host.run(Nanos(limit.0 - 1));
    // Half-way through.
    let mut late = party(secret(1), None);
    send(&mut host, admin, &late.send().unwrap());
    assert_eq!(host.closed, []);
    host.run(limit);
    assert_eq!(host.closed, [admin]);
    let why = host.subsystem.not_authenticated(admin);
    assert_eq!(why, Some(NotAuthenticated::Late));
    assert_eq!(host.subsystem.controllers(), 0);
    // Who is in has all the time.
    let mut host = outside();
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.run(limit.saturating_add(limit));
    assert_eq!(host.closed, []);
}

#[test]
fn a_host_may_authenticate_itself_anew() {
    let mut host = outside();
    let admin = host.admin;
    authenticate(&mut host, admin);
    host.set_cc(enabled());
    for _ in 0..2 {
        authenticate(&mut host, admin);
        assert_eq!(identify(&mut host), Status::SUCCESS);
    }
    // One that fails ends what was there.
    let mut wrong = party(secret(9), None);
    talk(&mut host, admin, &mut wrong);
    assert_eq!(closed(&mut host), [admin]);
}

#[test]
fn a_source_without_random_bytes_lets_nobody_in() {
    let mut subsystem = subsystem();
    let mut by = authentication(None);
    by.random = Box::new(|_| Err(NoRandom));
    subsystem.require_authentication(by).unwrap();
    let mut host = Host::admin_only(subsystem, Connect::new(0, 32));
    let admin = host.admin;
    let message = party(secret(1), None).send().unwrap();
    let status = send(&mut host, admin, &message).status();
    assert_eq!(status, Status::INTERNAL_ERROR);
    assert_eq!(identify(&mut host), REQUIRED);
}

/// A key exchange is calculated elsewhere: the command waits for it, and so does
/// nothing else.
#[test]
fn a_command_waits_for_its_calculation() {
    let mut subsystem = subsystem();
    let mut by = authentication(None);
    by.groups = vec![DhGroup::FFDHE2048];
    subsystem.require_authentication(by).unwrap();
    let mut host = Host::admin_only(subsystem, Connect::new(0, 32));
    let admin = host.admin;
    let mut party = party(secret(1), None);
    let message = party.send().unwrap();
    let entry = AuthenticationSend::new(message.len() as u32)
        .to_entry()
        .with_cid(7)
        .with_sgl(SglDescriptor::transport(message.len() as u32));
    let data = Some(message.into());
    host.subsystem.submit(host.now, admin, &entry, data, 0);
    let calculation = host.subsystem.take_calculation().expect("it is one");
    assert_eq!(calculation.queue(), admin);
    assert!(host.subsystem.take_calculation().is_none());
    host.run(Nanos::from_secs(1));
    assert!(host.take(admin, 7).is_none(), "it is not calculated yet");
    // Another message has to wait, other commands do not.
    let status = send(&mut host, admin, &[0; 8]).status();
    assert_eq!(status, Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(
        receive(&mut host, admin).status(),
        Status::COMMAND_SEQUENCE_ERROR
    );
    let (now, twice) = (host.now, calculation.clone());
    host.subsystem.calculated(now, calculation.run());
    assert_eq!(host.wait(admin, 7).status(), Status::SUCCESS);
    // It counts once.
    host.subsystem.calculated(now, twice.run());
    let challenge = receive(&mut host, admin);
    party.receive(challenge.data()).unwrap();
    talk(&mut host, admin, &mut party);
    assert!(party.is_authenticated(), "{:?}", party.failure());
    host.set_cc(enabled());
    assert_eq!(identify(&mut host), Status::SUCCESS);
}

/// The result for a queue that is gone is nobody's, also of one with its number.
#[test]
fn a_calculation_belongs_to_one_queue() {
    let mut subsystem = subsystem();
    let mut by = authentication(None);
    by.groups = vec![DhGroup::FFDHE2048];
    subsystem.require_authentication(by).unwrap();
    let mut host = Host::admin_only(subsystem, Connect::new(0, 32));
    let message = party(secret(1), None).send().unwrap();
    let entry = AuthenticationSend::new(message.len() as u32)
        .to_entry()
        .with_cid(7)
        .with_sgl(SglDescriptor::transport(message.len() as u32));
    let begin = |host: &mut Host| {
        let data = Some(message.clone().into());
        host.subsystem.submit(host.now, host.admin, &entry, data, 0);
        host.subsystem.take_calculation().expect("it is one")
    };
    let first = begin(&mut host);
    host.subsystem.disconnect(host.now, host.admin);
    let mut host = Host::admin_only(host.subsystem, Connect::new(0, 32));
    let second = begin(&mut host);
    assert_eq!(first.queue(), second.queue());
    let (now, admin) = (host.now, host.admin);
    host.subsystem.calculated(now, first.run());
    host.run(Nanos::from_secs(1));
    assert!(host.take(admin, 7).is_none());
    host.subsystem.calculated(now, second.run());
    assert_eq!(host.wait(admin, 7).status(), Status::SUCCESS);
}

#[test]
fn secrets_are_not_shown() {
    let mut by = authentication(Some(secret(2)));
    let shown = format!("{:?} {by:?}", by.hosts);
    // Keys of bytes 1 and 2, in any form that Debug has.
    for trace in ["1, 1, 1", "2, 2, 2", "0101", "AQEB", "AgIC"] {
        assert!(!shown.contains(trace), "{shown}");
    }
    by.hosts.push(by.hosts[0].clone());
    let twice = subsystem().require_authentication(by).unwrap_err();
    assert_eq!(twice, SettingsError::HostTwice(HOST.to_owned()));
}

proptest! {
    /// Whatever a host sends, it does not get in without the secret.
    #[test]
    fn no_bytes_open_the_gate(
        messages in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..120), any::<bool>(), any::<Option<(u8, u8)>>()),
            1..6,
        ),
    ) {
        let mut host = outside();
        let admin = host.admin;
        let mut party = party(secret(9), None);
        for (mut message, is_fetched, kind) in messages {
            if let Some(next) = party.send() {
                message = next;
            } else if let Some((of, id)) = kind {
                // Nearly a message: type and identifier of one, its transaction.
                let start = [of & 1, id & 7, 0, 0, 3, 0];
                let len = message.len().min(start.len());
                message[..len].copy_from_slice(&start[..len]);
            }
            if host.closed.is_empty() {
                send(&mut host, admin, &message);
            }
            if is_fetched && host.closed.is_empty() {
                let reply = receive(&mut host, admin);
                if let Some(data) = &reply.data {
                    let _ = party.receive(data);
                }
            }
            if host.closed.is_empty() {
                prop_assert_eq!(identify(&mut host), REQUIRED);
            }
        }
    }
}
