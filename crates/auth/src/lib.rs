//! DH-HMAC-CHAP: how a host and a controller show each other that they know a
//! secret (NVMe base specification 2.0, section 8.13.5).
//!
//! Both ends are state machines over messages, without I/O, clock or source of
//! randomness: [`Controller`] is what a target has for each queue that must
//! authenticate, [`Host`] what an initiator has. Random bytes are handed in, as
//! [`Random`].
//!
//! ```text
//! host                                   controller
//! AUTH_Negotiate: hashes, groups   --->
//!                                  <---  DH-HMAC-CHAP_Challenge: C1, g^x
//! DH-HMAC-CHAP_Reply: R1, C2, g^y  --->
//!                                  <---  DH-HMAC-CHAP_Success1: R2
//! DH-HMAC-CHAP_Success2            --->  (if the controller was challenged too)
//! ```
//!
//! A value of either end is one transaction: to authenticate anew is to make
//! another. Not here: secure channel concatenation.
//!
//! [`TlsKey`] is the other way to know who is there: the pre-shared key of TLS that a host
//! and a subsystem derive from one that both were given.

mod calculation;
mod controller;
mod group;
mod host;
mod response;
mod tls;

pub use calculation::{Calculation, Outcome};
pub use controller::Controller;
pub use host::Host;
pub use tls::{Derivation, IdentityVersion, NamesTooLong, TlsKey, TlsNames};

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};
use zonelab_nvme::auth::{DhGroup, FailureExplanation, Hash, Secret};
use zonelab_nvme::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Who talks to whom, and what they know.
#[derive(Clone, Debug)]
pub struct Parties {
    /// The host's name (NQN).
    pub host_nqn: String,
    /// The subsystem's name (NQN).
    pub subsystem_nqn: String,
    /// By which the host is authenticated.
    pub host_secret: Secret,
    /// By which the controller is authenticated, if the host wants that.
    pub controller_secret: Option<Secret>,
}

impl Parties {
    fn host_key(&self) -> Zeroizing<Vec<u8>> {
        response::key(&self.host_secret, &self.host_nqn)
    }

    fn controller_key(&self) -> Option<Zeroizing<Vec<u8>>> {
        let secret = self.controller_secret.as_ref()?;
        Some(response::key(secret, &self.subsystem_nqn))
    }
}

/// The source of random bytes has none. What it said is not kept: nobody who
/// is told could do something about it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of random bytes fails")]
pub struct NoRandom;

/// The key of a secret as the party of name `nqn` uses it: transformed by a
/// hash of the name, unless the secret says that it is used as it is (base
/// specification 2.0, section 8.13.5.8).
#[must_use]
pub fn transformed(secret: &Secret, nqn: &str) -> Zeroizing<Vec<u8>> {
    response::key(secret, nqn)
}

/// Random bytes for one transaction, which nobody else may know or guess. They
/// are wiped from memory when it is over.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Random {
    /// For a challenge; as many as the hash has are used.
    pub challenge: [u8; 64],
    /// For the exponent of a Diffie-Hellman exchange.
    pub exponent: [u8; 64],
}

impl Random {
    /// Takes them from a source that fills a slice.
    ///
    /// # Errors
    /// What the source says if it fails.
    pub fn draw<E>(mut fill: impl FnMut(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut random = Self {
            challenge: [0; 64],
            exponent: [0; 64],
        };
        fill(&mut random.challenge)?;
        fill(&mut random.exponent)?;
        Ok(random)
    }
}

/// Hashes in the order in which they are preferred.
pub const HASHES: [Hash; 3] = [Hash::SHA_512, Hash::SHA_384, Hash::SHA_256];

/// Groups in the order in which they are preferred: 2048 bits are enough, and
/// the larger ones take a host and a target long.
pub const GROUPS: [DhGroup; 6] = [
    DhGroup::FFDHE2048,
    DhGroup::FFDHE3072,
    DhGroup::FFDHE4096,
    DhGroup::FFDHE6144,
    DhGroup::FFDHE8192,
    DhGroup::NULL,
];

/// Why a transaction has failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The other end does not know the secret, or knows another one.
    #[error("the response of the other end is wrong: it has another secret")]
    WrongResponse,
    /// A message breaks the protocol.
    #[error("a message breaks the protocol: {0}")]
    Message(FailureExplanation),
    /// The other end says that it has failed.
    #[error("the other end refuses: {0}")]
    Refused(FailureExplanation),
}

impl AuthError {
    /// What the other end is told.
    #[must_use]
    pub fn explanation(self) -> FailureExplanation {
        match self {
            Self::WrongResponse => FailureExplanation::AUTHENTICATION_FAILED,
            Self::Message(why) | Self::Refused(why) => why,
        }
    }
}

/// A message's start, and what follows it.
fn split<T>(message: &[u8]) -> Result<(T, &[u8]), AuthError>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned + Copy,
{
    T::read_from_prefix(message)
        .map_err(|_| AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD))
}

/// The first `len` bytes of what follows, and the rest.
fn take(bytes: &[u8], len: usize) -> Result<(&[u8], &[u8]), AuthError> {
    bytes
        .split_at_checked(len)
        .ok_or(AuthError::Message(FailureExplanation::INCORRECT_PAYLOAD))
}

/// Whether what has to be so is.
fn expect(holds: bool, otherwise: FailureExplanation) -> Result<(), AuthError> {
    holds.then_some(()).ok_or(AuthError::Message(otherwise))
}

/// A message: its start, then values.
fn message(start: &(impl IntoBytes + Immutable), values: &[&[u8]]) -> Vec<u8> {
    let mut bytes = start.as_bytes().to_vec();
    for value in values {
        bytes.extend_from_slice(value);
    }
    bytes
}

/// The first bytes of `random`, as many as the hash has.
fn challenge(random: &Random, hash: Hash) -> &[u8] {
    let len = hash.bytes().map_or(64, usize::from);
    random.challenge.get(..len).unwrap_or(&random.challenge)
}
