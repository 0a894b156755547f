//! What a peer may hold, and how its commands wait.

use zonelab_target::tcp::{Connection, Event, Settings, Terms};

use crate::wire::{Dialect, Owner, by_transport, in_capsule};

const BLOCK: u32 = 4096;

fn terms(bytes: u64, own_bytes: u64) -> Terms {
    Terms {
        commands: 8,
        bytes,
        own_bytes,
        receive_bytes: 4096,
    }
}

/// A live connection on those terms, with `room` bytes.
fn owner(terms: Terms, room: u64) -> Owner {
    let settings = Settings::default();
    let mut owner = Owner::new(settings);
    owner.connection = Connection::on(settings, terms).unwrap();
    let dialect = Dialect::default();
    owner.feed(&dialect.ic_req());
    owner.feed(&dialect.connect(0, 7, false));
    assert!(owner.connection.is_live());
    owner.sent.clear();
    owner.connection.set_room(room);
    owner
}

/// Takes what the connection can go on with.
fn go_on(owner: &mut Owner) {
    owner.feed(&[]);
    while let Some(event) = owner.connection.next_event(&mut owner.buffers) {
        match event {
            Event::Announced { entry, .. } => owner.connection.accept(entry.cdw0.cid()),
            event => owner.events.push(event),
        }
    }
    owner.flush();
}

fn cids(owner: &Owner) -> Vec<u16> {
    let cid = |event: &Event| match event {
        Event::Command { entry, .. } => entry.cdw0.cid(),
        _ => 0,
    };
    owner.events.iter().map(cid).collect()
}

#[test]
fn reads_wait_for_room_in_the_order_in_which_they_came() {
    let mut owner = owner(terms(1 << 20, 0), u64::from(BLOCK));
    let dialect = Dialect::default();
    for cid in 1..=3 {
        owner.feed(&dialect.capsule(by_transport(0x02, cid, BLOCK), &[]));
    }
    // A flush has no data, and waits for nothing.
    owner.feed(&dialect.capsule(by_transport(0x00, 4, 0), &[]));
    assert_eq!(cids(&owner), [1, 4]);
    assert_eq!(owner.connection.shared_bytes(), u64::from(BLOCK));
    assert_eq!(owner.connection.wanted_room(), Some(u64::from(BLOCK)));
    assert!(!owner.connection.can_go_on());
    owner.connection.set_room(2 * u64::from(BLOCK));
    assert!(owner.connection.can_go_on());
    go_on(&mut owner);
    assert_eq!(cids(&owner), [1, 4, 2, 3]);
    owner.complete(1, Some(vec![0; BLOCK as usize]));
    assert_eq!(owner.connection.shared_bytes(), 2 * u64::from(BLOCK));
    assert_eq!(owner.connection.wanted_room(), None);
}

#[test]
fn data_is_asked_for_once_there_is_room() {
    let mut owner = owner(terms(1 << 20, 0), 0);
    let dialect = Dialect::default();
    owner.feed(&dialect.capsule(by_transport(0x01, 1, BLOCK), &[]));
    assert!(owner.take_sent().is_empty());
    assert!(!owner.connection.is_owed());
    owner.connection.set_room(u64::from(BLOCK));
    go_on(&mut owner);
    let r2t = owner.take_sent();
    assert_eq!(r2t[0], 0x09);
    assert!(owner.connection.is_owed(), "the host was asked for data");
    let ids = (1, u16::from_le_bytes([r2t[10], r2t[11]]));
    owner.feed(&dialect.h2c_data(ids, 0, &[5; BLOCK as usize], true));
    assert_eq!(cids(&owner), [1]);
    assert!(!owner.connection.is_owed());
    owner.complete(1, None);
    assert_eq!(owner.connection.shared_bytes(), 0);
}

#[test]
fn data_in_capsules_waits_where_it_is() {
    let mut owner = owner(terms(1 << 20, 0), 512);
    let dialect = Dialect::default();
    let capsules: Vec<u8> = (1..=2)
        .flat_map(|cid| dialect.capsule(in_capsule(0x01, cid, 512), &[cid as u8; 512]))
        .collect();
    owner.feed(&capsules);
    assert_eq!(cids(&owner), [1]);
    assert!(owner.connection.is_paused() && !owner.connection.is_owed());
    owner.complete(1, None);
    owner.connection.set_room(512);
    assert!(owner.connection.can_go_on());
    go_on(&mut owner);
    assert_eq!(cids(&owner), [1, 2]);
    assert!(!owner.connection.is_paused());
    let Some(Event::Command { data, .. }) = owner.events.last() else {
        panic!("it is a command");
    };
    assert_eq!(data.as_deref().unwrap(), [2; 512]);
}

/// More than the terms allow fails, and only once the owner was asked.
#[test]
fn a_command_that_will_never_fit_fails() {
    let mut owner = owner(terms(4096, 4096), 0);
    let dialect = Dialect::default();
    for (opcode, cid) in [(0x01, 1), (0x02, 2)] {
        owner.feed(&dialect.capsule(by_transport(opcode, cid, 8192), &[]));
        let response = owner.take_sent();
        assert_eq!((response[0], response[22]), (0x05, 0x04), "Invalid Field");
    }
    owner.feed(&dialect.capsule(in_capsule(0x01, 3, 8192), &[1; 8192]));
    assert_eq!(owner.take_sent()[22], 0x04);
    // What fits goes on, and needs no room.
    owner.feed(&dialect.capsule(by_transport(0x02, 4, 4096), &[]));
    assert_eq!(cids(&owner), [4]);
    assert_eq!(owner.connection.shared_bytes(), 0);
}
