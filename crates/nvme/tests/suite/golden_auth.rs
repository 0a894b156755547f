//! Messages and secrets of DH-HMAC-CHAP: bytes from the tables of the base
//! specification 2.0.

use zonelab_nvme::auth::{
    AuthId, AuthType, Challenge, DhGroup, Failure, FailureExplanation, Hash, MessageHeader,
    Negotiate, ProtocolDescriptor, Reply, Secret, SecretError, SecureChannel, Success1, Success2,
};
use zonelab_nvme::zerocopy::{FromBytes, FromZeros, IntoBytes};

#[test]
fn the_negotiation_of_a_host() {
    let mut golden = [0_u8; 72];
    golden[..8].copy_from_slice(&[0x00, 0x00, 0, 0, 0x34, 0x12, 0x00, 0x01]);
    golden[8] = 0x01; // DH-HMAC-CHAP
    golden[10] = 3; // HALEN
    golden[11] = 2; // DHLEN
    golden[12..15].copy_from_slice(&[0x01, 0x02, 0x03]);
    golden[42..44].copy_from_slice(&[0x00, 0x01]); // groups start 30 bytes on
    let negotiate = Negotiate {
        header: MessageHeader::new(AuthId::NEGOTIATE, 0x1234),
        sc_c: SecureChannel::NONE,
        napd: 1,
    };
    let hashes = [Hash::SHA_256, Hash::SHA_384, Hash::SHA_512];
    let groups = [DhGroup::NULL, DhGroup::FFDHE2048];
    let descriptor = ProtocolDescriptor::new(&hashes, &groups);
    assert_eq!(negotiate.as_bytes(), &golden[..8]);
    assert_eq!(descriptor.as_bytes(), &golden[8..]);
    assert_eq!(descriptor.hashes(), Some(&hashes[..]));
    assert_eq!(descriptor.groups(), Some(&groups[..]));

    golden[10] = 31;
    golden[11] = 30;
    let descriptor = ProtocolDescriptor::ref_from_bytes(&golden[8..]).unwrap();
    assert_eq!(descriptor.hashes(), None);
    assert_eq!(descriptor.groups().map(<[_]>::len), Some(30));
    let many = ProtocolDescriptor::new(&[Hash::SHA_256; 40], &[]);
    assert_eq!((many.halen, many.dhlen), (30, 0));
}

#[test]
fn challenge_and_reply() {
    let golden = [
        0x01, 0x01, 0, 0, 0x34, 0x12, // DH-HMAC-CHAP, challenge, transaction
        48, 0, // HL
        0x02, 0x01, // SHA-384, ffdhe2048
        0x00, 0x01, // DHVLEN 256
        0x44, 0x33, 0x22, 0x11, // sequence number
    ];
    let challenge = Challenge::ref_from_bytes(&golden).unwrap();
    assert_eq!(
        challenge.header,
        MessageHeader::new(AuthId::CHALLENGE, 0x1234)
    );
    assert_eq!(challenge.header.auth_type, AuthType::DH_HMAC_CHAP);
    assert_eq!(
        (challenge.hashid, challenge.dhgid),
        (Hash::SHA_384, DhGroup::FFDHE2048)
    );
    assert_eq!(Some(challenge.hl), challenge.hashid.bytes());
    assert_eq!(Some(challenge.dhvlen.get()), challenge.dhgid.bytes());
    assert_eq!(challenge.seqnum.get(), 0x1122_3344);

    let golden = [
        0x01, 0x02, 0, 0, 0x34, 0x12, // reply
        64, 0, // HL
        0x01, 0, // CVALID
        0x00, 0x04, // DHVLEN 1024
        0x04, 0x03, 0x02, 0x01, // sequence number
    ];
    let reply = Reply::ref_from_bytes(&golden).unwrap();
    assert_eq!(reply.header, MessageHeader::new(AuthId::REPLY, 0x1234));
    assert_eq!((reply.hl, reply.cvalid, reply.dhvlen.get()), (64, 1, 1024));
    assert_eq!(reply.seqnum.get(), 0x0102_0304);
}

#[test]
fn success_and_failure() {
    let golden = [
        0x01, 0x03, 0, 0, 0x34, 0x12, 32, 0, 0x01, 0, 0, 0, 0, 0, 0, 0,
    ];
    let success = Success1::ref_from_bytes(&golden).unwrap();
    assert_eq!(success.header, MessageHeader::new(AuthId::SUCCESS1, 0x1234));
    assert_eq!((success.hl, success.rvalid), (32, 1));

    let mut success = Success2::new_zeroed();
    success.header = MessageHeader::new(AuthId::SUCCESS2, 0x1234);
    let golden = [0x01, 0x04, 0, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(success.as_bytes(), golden);

    let failure = Failure::of_controller(0x1234, FailureExplanation::HASH_NOT_USABLE);
    assert_eq!(
        failure.as_bytes(),
        [0x00, 0xf1, 0, 0, 0x34, 0x12, 0x01, 0x04]
    );
    let failure = Failure::of_host(0x1234, FailureExplanation::INCORRECT_MESSAGE);
    assert_eq!(
        failure.as_bytes(),
        [0x00, 0xf0, 0, 0, 0x34, 0x12, 0x01, 0x07]
    );
}

#[test]
fn lengths_of_hashes_and_groups() {
    let hashes = Hash::NAMED.iter().map(|(hash, _)| (hash.0, hash.bytes()));
    let golden = [(1, Some(32)), (2, Some(48)), (3, Some(64))];
    assert_eq!(hashes.collect::<Vec<_>>(), golden);
    let groups = DhGroup::NAMED
        .iter()
        .map(|(group, _)| (group.0, group.bytes()));
    let golden = [
        (0, 0),
        (1, 2048),
        (2, 3072),
        (3, 4096),
        (4, 6144),
        (5, 8192),
    ];
    let golden = golden.map(|(id, bits)| (id, Some(bits / 8)));
    assert_eq!(groups.collect::<Vec<_>>(), golden);
    assert_eq!((Hash(0).bytes(), DhGroup(6).bytes()), (None, None));
}

/// Made by another implementation of Base64 and CRC-32.
const SECRETS: [&str; 3] = [
    "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "DHHC-1:02://79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eDf3t3c29rZ2NfW1dTT0tHQOoWwEQ==:",
    "DHHC-1:03:AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tng5+71/AMKERgfJi00O0JJUFdeZWxzeoGIj5adpKuyudSnJNM=:",
];

#[test]
fn secrets_of_each_length() {
    let keys = [
        (None, (0..32).collect::<Vec<u8>>()),
        (Some(Hash::SHA_384), (0..48).map(|i| 255 - i).collect()),
        (
            Some(Hash::SHA_512),
            (0..64_u16).map(|i| ((i * 7) & 0xff) as u8).collect(),
        ),
    ];
    for (text, (hash, key)) in SECRETS.iter().zip(keys) {
        let secret = Secret::parse(text).unwrap();
        assert_eq!(secret.hash(), hash);
        assert_eq!(secret.key(), key);
        assert_eq!(Secret::new(hash, &key), Ok(secret.clone()));
        let mut written = String::new();
        secret.write_text(&mut written).unwrap();
        assert_eq!(written, *text);
        assert!(
            !format!("{secret:?}").contains("bytes"),
            "the key is not shown"
        );
    }
}

#[test]
fn what_is_not_a_secret_is_refused_with_the_reason() {
    let good = SECRETS[0];
    let refused = |text: &str| Secret::parse(text).unwrap_err();
    assert_eq!(refused(""), SecretError::Form);
    assert_eq!(refused("DHHC-1:00:"), SecretError::Form);
    assert_eq!(refused(good.trim_end_matches(':')), SecretError::Form);
    assert_eq!(
        refused(&good.replace("DHHC-1", "DHHC-2")),
        SecretError::Form
    );
    assert_eq!(refused(&good.replace(":00:", ":04:")), SecretError::Hash);
    assert_eq!(refused(&good.replace(":00:", ":0:")), SecretError::Hash);
    assert_eq!(refused(&format!("{good}:")), SecretError::Base64);
    assert_eq!(refused("DHHC-1:00::"), SecretError::Length(0));
    let short = "DHHC-1:01:AAECAwQFBgcICQoLDA0OD4jizs4=:";
    assert_eq!(refused(short), SecretError::Length(16));
    let long = "DHHC-1:00:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADmGCOO:";
    assert_eq!(refused(long), SecretError::Length(80));
    // Any digit of the key that changes is noticed.
    for (position, digit) in good.char_indices().skip(10).take(48) {
        let other = if digit == 'A' { "B" } else { "A" };
        let mut text = good.to_owned();
        text.replace_range(position..=position, other);
        assert_eq!(refused(&text), SecretError::Crc, "{position}");
    }
}
