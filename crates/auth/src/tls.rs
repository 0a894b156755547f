//! Pre-shared keys of TLS 1.3 as NVMe/TCP derives them (NVMe/TCP transport specification
//! 1.0, section 3.6.1; TP 8011).
//!
//! ```text
//! configured key --HostNQN--> retained key --nvme-tls-psk, identity--> key of TLS
//! ```
//!
//! An arrow is HKDF-Extract without salt and HKDF-Expand-Label of RFC 8446, section 7.1.
//! The identity says which key a host offers. That of version 0 (`NVMe0R`) has names
//! alone; that of version 1 (`NVMe1R`) also a digest of the retained key, so that a key
//! that was changed at one end is seen as one that is not known.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384};
use zeroize::Zeroizing;
use zonelab_nvme::auth::{Hash, Psk, write_base64};

/// What a digest of a retained key is of, besides the names.
const PURPOSE: &str = "NVMe-over-Fabrics";

/// Who has the key: a host and a subsystem.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TlsNames<'a> {
    /// The host's name (NQN).
    pub hostnqn: &'a str,
    /// The subsystem's name (NQN), or that of discovery.
    pub subnqn: &'a str,
}

/// Version of an identity.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IdentityVersion {
    /// `NVMe0R`: names alone.
    V0,
    /// `NVMe1R`: names and a digest of the retained key.
    V1,
}

/// How a key of TLS follows from a configured key.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Derivation {
    /// As the specification says.
    #[default]
    Specified,
    /// As libnvme 1.13 does, that of Debian 13 (libnvme issue 1040). What stands in place of
    /// the structure of HKDF-Expand-Label is the length of the key in two bytes, the lower one
    /// first, and then label and context without their lengths.
    Libnvme,
}

/// Two names that make an identity of version 0 of more than 255 bytes, of which no key can
/// be derived.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the identity NVMe0R of these names has {bytes} bytes, and no key of TLS can be derived of it; \
     up to 255 are valid, of which the two names may have 245"
)]
pub struct NamesTooLong {
    bytes: usize,
}

/// A key for TLS 1.3, and by what a host offers it.
pub struct TlsKey {
    /// The identity: text without an end mark.
    pub identity: String,
    /// The hash function of the cipher suites that it goes with.
    pub hash: Hash,
    key: Zeroizing<Vec<u8>>,
}

impl TlsKey {
    /// Derives the key of TLS from a configured one, as the specification says.
    ///
    /// # Errors
    /// [`NamesTooLong`].
    pub fn derive(
        psk: &Psk,
        names: TlsNames<'_>,
        version: IdentityVersion,
    ) -> Result<Self, NamesTooLong> {
        Self::derive_as(psk, names, version, Derivation::Specified)
    }

    /// The same in one of the ways in which keys are derived.
    ///
    /// # Errors
    /// [`NamesTooLong`].
    pub fn derive_as(
        psk: &Psk,
        names: TlsNames<'_>,
        version: IdentityVersion,
        derivation: Derivation,
    ) -> Result<Self, NamesTooLong> {
        let TlsNames { hostnqn, subnqn } = names;
        let (hash, number) = (psk.hash(), psk.hash().0);
        let retained = retained(psk, hostnqn, derivation)?;
        let (identity, context) = match version {
            IdentityVersion::V0 => {
                let identity = format!("NVMe0R{number:02} {hostnqn} {subnqn}");
                (identity.clone(), identity)
            }
            IdentityVersion::V1 => {
                let parts = [hostnqn, " ", subnqn, " ", PURPOSE];
                let digest = mac(hash, &retained, &parts.map(str::as_bytes));
                let mut text = String::new();
                // A string takes everything.
                let _ = write_base64(&digest, &mut text);
                let digest = text;
                let identity = format!("NVMe1R{number:02} {hostnqn} {subnqn} {digest}");
                (identity, format!("{number:02} {digest}"))
            }
        };
        let key = expand(derivation, hash, &retained, ("nvme-tls-psk", &context))?;
        Ok(Self {
            identity,
            hash,
            key,
        })
    }

    /// The key: as many bytes as the hash function gives.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl fmt::Debug for TlsKey {
    /// Not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsKey")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// The retained key of a configured one.
fn retained(
    psk: &Psk,
    hostnqn: &str,
    derivation: Derivation,
) -> Result<Zeroizing<Vec<u8>>, NamesTooLong> {
    match psk.transform() {
        None => Ok(Zeroizing::new(psk.key().to_vec())),
        Some(hash) => expand(derivation, hash, psk.key(), ("HostNQN", hostnqn)),
    }
}

/// HKDF-Extract without salt, then HKDF-Expand-Label, or what libnvme has in its place, to the
/// length of the hash function.
fn expand(
    derivation: Derivation,
    hash: Hash,
    key: &[u8],
    (label, context): (&str, &str),
) -> Result<Zeroizing<Vec<u8>>, NamesTooLong> {
    let length = hash.bytes().unwrap_or(32);
    let extracted = Zeroizing::new(mac(hash, &vec![0; length.into()], &[key]));
    let short = |bytes: usize| u8::try_from(bytes).map_err(|_| NamesTooLong { bytes });
    const TLS13: &str = "tls13 ";
    let (label, context) = (label.as_bytes(), context.as_bytes());
    // HKDF-Expand: its first block is all of the output.
    const FIRST: &[u8] = &[1];
    let expanded = match derivation {
        Derivation::Specified => {
            let length = u16::from(length).to_be_bytes();
            let (of_label, of_context) = (short(TLS13.len() + label.len())?, short(context.len())?);
            let info = [&length, &[of_label][..], TLS13.as_bytes(), label];
            mac(
                hash,
                &extracted,
                &[&info[..], &[&[of_context], context, FIRST]].concat(),
            )
        }
        Derivation::Libnvme => {
            let length = u16::from(length).to_le_bytes();
            let info = [&length[..], TLS13.as_bytes(), label, context, FIRST];
            mac(hash, &extracted, &info)
        }
    };
    Ok(Zeroizing::new(expanded))
}

fn mac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::SHA_384 => run::<Hmac<Sha384>>(key, parts),
        _ => run::<Hmac<Sha256>>(key, parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: TlsNames<'static> = TlsNames {
        hostnqn: "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff",
        subnqn: "nqn.2024-01.io.github.zonelab:test",
    };

    /// Derived with `openssl kdf` and `openssl mac` of OpenSSL 3.0: see `tests/psk.sh`.
    const VECTORS: &str = include_str!("../tests/psk.txt");

    #[test]
    fn keys_of_tls_are_those_that_openssl_derives() {
        let mut count = 0;
        for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
            let [text, retained_hex, v0, digest, v1] = line
                .split(' ')
                .collect::<Vec<_>>()
                .try_into()
                .expect("five words");
            let psk = Psk::parse(text).expect("a key");
            let number = psk.hash().0;
            let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
            let own = retained(&psk, NAMES.hostnqn, Derivation::Specified).expect("a short name");
            assert_eq!(hex(&own), retained_hex);
            let names = format!("{} {}", NAMES.hostnqn, NAMES.subnqn);
            for (version, identity, key) in [
                (
                    IdentityVersion::V0,
                    format!("NVMe0R{number:02} {names}"),
                    v0,
                ),
                (
                    IdentityVersion::V1,
                    format!("NVMe1R{number:02} {names} {digest}"),
                    v1,
                ),
            ] {
                let derived = TlsKey::derive(&psk, NAMES, version).expect("short names");
                assert_eq!(
                    (derived.identity.as_str(), hex(derived.key())),
                    (&*identity, key.to_owned())
                );
                assert_eq!(derived.hash, psk.hash());
            }
            count += 1;
        }
        assert_eq!(count, 4);
    }

    /// Of `nvme check-tls-key --insert` of Debian 13: see `tests/psk-libnvme.sh`.
    const LIBNVME: &str = include_str!("../tests/psk-libnvme.txt");

    #[test]
    fn keys_of_libnvme_are_those_that_it_derives() {
        let mut count = 0;
        for line in LIBNVME.lines().filter(|line| !line.starts_with('#')) {
            let [text, kind, of_digest, key] = line
                .split(' ')
                .collect::<Vec<_>>()
                .try_into()
                .expect("four words");
            let psk = Psk::parse(text).expect("a key");
            let version = match kind.starts_with("NVMe0R") {
                true => IdentityVersion::V0,
                false => IdentityVersion::V1,
            };
            let derived = TlsKey::derive_as(&psk, NAMES, version, Derivation::Libnvme);
            let derived = derived.expect("there are no lengths");
            let names = format!("{kind} {} {}", NAMES.hostnqn, NAMES.subnqn);
            let identity = match of_digest {
                "-" => names,
                digest => format!("{names} {digest}"),
            };
            let hex: String = derived.key().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!((derived.identity, &*hex), (identity, key));
            count += 1;
        }
        assert_eq!(count, 6);
    }

    #[test]
    fn names_that_are_too_long_have_no_key_of_version_0() {
        let long = format!("nqn.2026-01.a:{}", "x".repeat(200));
        let names = TlsNames {
            hostnqn: &long,
            subnqn: &long,
        };
        let psk = Psk::new(Some(Hash::SHA_256), &[1; 32]).expect("a key");
        let error = TlsKey::derive(&psk, names, IdentityVersion::V0).expect_err("they are long");
        let bytes = "NVMe0R01  ".len() + 2 * long.len();
        let says = format!("the identity NVMe0R of these names has {bytes} bytes");
        assert!(error.to_string().starts_with(&says), "{error}");
        assert!(TlsKey::derive(&psk, names, IdentityVersion::V1).is_ok());
    }
}
