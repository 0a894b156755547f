//! Pre-shared keys of TLS: what `nvme gen-tls-key` of nvme-cli 2.3 writes, and what its
//! `nvme check-tls-key` finds valid.

use zonelab_nvme::auth::{Hash, Psk, PskError};

const SHA_256: &str = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const SHA_384: &str = "NVMeTLSkey-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKiss\
                       LS4vcSEgBQ==:";

/// Of `nvme gen-tls-key --hmac=1` and `--hmac=2`.
const GENERATED: [&str; 2] = [
    "NVMeTLSkey-1:01:3IXCf23zjQYkwybPSQgCKoK3e/Y0ly7eFC5+FwMXJeWQpo7W:",
    "NVMeTLSkey-1:02:QmzksrCEwcexWh0FfFApv4imKZLd8RbV/Il0VzFquCbOeaQTQPhapMKeqzh8LAyl1hrMcg==:",
];

#[test]
fn keys_of_tls_are_those_of_nvme_cli() {
    for (text, hash, len) in [(SHA_256, Hash::SHA_256, 32), (SHA_384, Hash::SHA_384, 48)] {
        let key: Vec<u8> = (0..len).collect();
        let psk = Psk::parse(text).unwrap();
        assert_eq!((psk.transform(), psk.hash()), (Some(hash), hash));
        assert_eq!(psk.key(), key);
        let mut written = String::new();
        Psk::new(Some(hash), &key)
            .unwrap()
            .write_text(&mut written)
            .unwrap();
        assert_eq!(written, text);
        assert!(!format!("{psk:?}").contains("1, 2"));
    }
    for text in GENERATED {
        let mut written = String::new();
        Psk::parse(text).unwrap().write_text(&mut written).unwrap();
        assert_eq!(written, text);
    }
    let retained = Psk::parse(&SHA_384.replace(":02:", ":00:")).unwrap();
    assert_eq!(
        (retained.transform(), retained.hash()),
        (None, Hash::SHA_384)
    );
}

#[test]
fn what_is_no_key_of_tls_is_refused() {
    for (text, why) in [
        ("", PskError::Form),
        ("NVMeTLSkey-1:01:AAEC", PskError::Form),
        ("NVMeTLSkey-1:AAEC:", PskError::Form),
        ("DHHC-1:01:AAEC:", PskError::Form),
        (&SHA_256.replace(":01:", ":03:"), PskError::Hash),
        (&SHA_256.replace(":01:", ":02:"), PskError::HashLength(32)),
        (&SHA_384.replace(":02:", ":01:"), PskError::HashLength(48)),
        (&SHA_256.replace("AAEC", "AAED"), PskError::Crc),
        (&SHA_256.replace("AAEC", "AA!C"), PskError::Base64),
        ("NVMeTLSkey-1:00:AAECAw==:", PskError::Length(0)),
        (&SHA_384.replace("AAEC", "AAECAAEC"), PskError::Length(51)),
    ] {
        assert_eq!(Psk::parse(text), Err(why), "{text}");
    }
}
