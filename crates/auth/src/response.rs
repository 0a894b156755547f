//! Keys and responses.

use ctutils::CtEq;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;
use zonelab_nvme::auth::{Hash, Secret};

/// What a response is calculated from, besides the key.
pub(crate) struct Challenged<'a> {
    pub(crate) hash: Hash,
    /// The challenge; with a Diffie-Hellman exchange, the augmented one.
    pub(crate) challenge: &'a [u8],
    pub(crate) seqnum: u32,
    pub(crate) t_id: u16,
    /// "HostHost" or "Controller".
    pub(crate) role: &'a str,
    /// NQN of who responds, and of who asked.
    pub(crate) names: [&'a str; 2],
}

impl Challenged<'_> {
    /// Secure channel concatenation, which is not offered.
    const SC_C: u8 = 0;

    /// The response (base specification 2.0, section 8.13.5.5 and 8.13.5.7).
    pub(crate) fn response(&self, key: &[u8]) -> Vec<u8> {
        let [responder, asker] = self.names;
        mac(
            self.hash,
            key,
            &[
                self.challenge,
                &self.seqnum.to_le_bytes(),
                &self.t_id.to_le_bytes(),
                &[Self::SC_C],
                self.role.as_bytes(),
                responder.as_bytes(),
                &[0],
                asker.as_bytes(),
            ],
        )
    }
}

/// The key of a secret for the party of name `nqn`: transformed, if the secret
/// says so (section 8.13.5.8).
pub(crate) fn key(secret: &Secret, nqn: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(match secret.hash() {
        None => secret.key().to_vec(),
        Some(hash) => mac(hash, secret.key(), &[nqn.as_bytes(), b"NVMe-over-Fabrics"]),
    })
}

/// A challenge and the secret of a Diffie-Hellman exchange, together.
pub(crate) fn augmented(hash: Hash, challenge: &[u8], shared: &[u8]) -> Vec<u8> {
    mac(hash, &Zeroizing::new(digest(hash, shared)), &[challenge])
}

fn digest(hash: Hash, bytes: &[u8]) -> Vec<u8> {
    match hash {
        Hash::SHA_384 => Sha384::digest(bytes).to_vec(),
        Hash::SHA_512 => Sha512::digest(bytes).to_vec(),
        _ => Sha256::digest(bytes).to_vec(),
    }
}

fn mac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn of<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::SHA_384 => of::<Hmac<Sha384>>(key, parts),
        Hash::SHA_512 => of::<Hmac<Sha512>>(key, parts),
        _ => of::<Hmac<Sha256>>(key, parts),
    }
}

/// Whether two responses are equal, in a time that does not tell where they differ.
pub(crate) fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).to_bool()
}
