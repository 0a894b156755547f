//! Streams that are cut anywhere, and streams that are damaged.

use proptest::prelude::*;
use zonelab_target::tcp::{Event, Settings};

use crate::violations::termination;
use crate::wire::{Dialect, Owner, by_transport, in_capsule};

/// A write: how much, in the capsule or by R2T.
#[derive(Copy, Clone, Debug)]
struct Write {
    len: u32,
    in_capsule: bool,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let write = (1..3000u32, any::<bool>()).prop_map(|(len, in_capsule)| Write { len, in_capsule });
    prop::collection::vec(write, 1..8)
}

fn dialects() -> impl Strategy<Value = Dialect> {
    (any::<bool>(), any::<bool>()).prop_map(|(hdgst, ddgst)| Dialect {
        hdgst,
        ddgst,
        hpda: 0,
    })
}

fn data(cid: u16, len: u32) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + u32::from(cid) * 31) as u8)
        .collect()
}

/// Feeds `bytes` in pieces of the given lengths, again and again.
fn feed_cut(owner: &mut Owner, bytes: &[u8], cuts: &[usize]) {
    let mut rest = bytes;
    for cut in cuts.iter().cycle() {
        let (piece, behind) = rest.split_at((*cut).min(rest.len()));
        owner.feed(piece);
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
}

/// The R2Ts among PDUs to the host: command, tag, offset, length.
fn r2ts(mut sent: &[u8]) -> Vec<(u16, u16, u32, u32)> {
    let u16_at = |pdu: &[u8], at: usize| u16::from_le_bytes(pdu[at..at + 2].try_into().unwrap());
    let u32_at = |pdu: &[u8], at: usize| u32::from_le_bytes(pdu[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    while !sent.is_empty() {
        let (pdu, rest) = sent.split_at(u32_at(sent, 4) as usize);
        if pdu[0] == 0x09 {
            found.push((
                u16_at(pdu, 8),
                u16_at(pdu, 10),
                u32_at(pdu, 12),
                u32_at(pdu, 16),
            ));
        }
        sent = rest;
    }
    found
}

/// The capsules of writes.
fn capsules(dialect: Dialect, writes: &[Write]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (cid, write) in (0u16..).zip(writes) {
        bytes.extend(if write.in_capsule {
            dialect.capsule(in_capsule(0x01, cid, write.len), &data(cid, write.len))
        } else {
            dialect.capsule(by_transport(0x01, cid, write.len), &[])
        });
    }
    bytes
}

/// Answers to R2Ts, in pieces of at most `piece` bytes, in turn.
fn answers(dialect: Dialect, r2ts: &[(u16, u16, u32, u32)], piece: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for round in 0..3000 / piece + 1 {
        for (cid, tag, offset, len) in r2ts {
            let from = round * piece;
            if from < *len {
                let to = (*len).min(from + piece);
                let part = &data(*cid, *len)[from as usize..to as usize];
                let pdu = dialect.h2c_data((*cid, *tag), offset + from, part, to == *len);
                bytes.extend(pdu);
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_makes_no_difference(
        dialect in dialects(),
        writes in writes(),
        piece in 1..3000u32,
        cuts in prop::collection::vec(1..400usize, 1..20),
    ) {
        let settings = Settings { receive_bytes: 1024, ..Settings::default() };
        let mut owner = Owner::new(settings);
        let mut opening = dialect.ic_req();
        opening.extend(dialect.connect(100, 7, false));
        feed_cut(&mut owner, &opening, &cuts);
        owner.take_sent();
        feed_cut(&mut owner, &capsules(dialect, &writes), &cuts);
        let asked = r2ts(&owner.take_sent());
        feed_cut(&mut owner, &answers(dialect, &asked, piece), &cuts);
        prop_assert_eq!(owner.connection.end(), None);
        prop_assert!(!owner.connection.is_owed());
        prop_assert_eq!(owner.events.len(), writes.len());
        for event in &owner.events {
            let Event::Command { entry, data: Some(received), .. } = event else {
                panic!("a write without data");
            };
            let cid = entry.cdw0.cid();
            let expected = data(cid, writes[usize::from(cid)].len);
            prop_assert_eq!(&received[..], &expected[..]);
        }
    }

    #[test]
    fn a_damaged_stream_is_understood_or_terminated(
        dialect in dialects(),
        writes in writes(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cuts in prop::collection::vec(1..400usize, 1..20),
    ) {
        let mut owner = Owner::connected(Settings::default(), dialect);
        let mut bytes = capsules(dialect, &writes);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        feed_cut(&mut owner, &bytes, &cuts);
        if owner.connection.end().is_some() {
            // What went out before is whole PDUs; the last is the request.
            let at = last_pdu(&owner.sent);
            owner.sent.drain(..at);
            if owner.sent[0] == 0x03 {
                let (fes, _) = termination(&owner);
                prop_assert!((1..=6).contains(&fes));
            }
        }
    }

    #[test]
    fn noise_is_terminated(bytes in prop::collection::vec(any::<u8>(), 8..600)) {
        let mut owner = Owner::new(Settings::default());
        owner.feed(&bytes);
        if bytes[0] != 0x00 && bytes[0] != 0x02 {
            let expected = if matches!(bytes[0], 0x04 | 0x06) { 2 } else { 1 };
            prop_assert_eq!(termination(&owner).0, expected);
        }
    }
}

/// Where the last PDU begins.
fn last_pdu(sent: &[u8]) -> usize {
    let mut at = 0;
    while at < sent.len() {
        let plen = u32::from_le_bytes(sent[at + 4..at + 8].try_into().unwrap()) as usize;
        if at + plen >= sent.len() {
            break;
        }
        at += plen;
    }
    at
}
