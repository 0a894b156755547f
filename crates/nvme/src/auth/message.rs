//! What the messages start with.

use super::{AuthId, AuthType, DhGroup, FailureExplanation, Hash, SecureChannel};
use crate::Reserved;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What every message starts with.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct MessageHeader {
    /// Authentication type.
    pub auth_type: AuthType,
    /// Authentication identifier.
    pub auth_id: AuthId,
    /// Zero.
    pub reserved_2: Reserved<2>,
    /// Transaction identifier: the host chooses it, all messages repeat it.
    pub t_id: U16,
}

const _: () = assert!(size_of::<MessageHeader>() == 6);

impl MessageHeader {
    /// The header of message `auth_id` of transaction `t_id`; its type follows
    /// from the message.
    #[must_use]
    pub fn new(auth_id: AuthId, t_id: u16) -> Self {
        let auth_type = match auth_id {
            AuthId::NEGOTIATE | AuthId::FAILURE1 | AuthId::FAILURE2 => AuthType::COMMON,
            _ => AuthType::DH_HMAC_CHAP,
        };
        Self {
            auth_type,
            auth_id,
            reserved_2: Reserved::ZERO,
            t_id: t_id.into(),
        }
    }
}

/// AUTH_Negotiate: what the host can do. `napd` [`ProtocolDescriptor`]s follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Negotiate {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Secure channel concatenation.
    pub sc_c: SecureChannel,
    /// Number of authentication protocol descriptors.
    pub napd: u8,
}

const _: () = assert!(size_of::<Negotiate>() == 8);

/// An authentication protocol descriptor of DH-HMAC-CHAP: hash functions and
/// groups, those that the host prefers first.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ProtocolDescriptor {
    /// Authentication protocol: [`ProtocolDescriptor::DH_HMAC_CHAP`].
    pub authid: u8,
    /// Zero.
    pub reserved_1: Reserved<1>,
    /// Hash identifier list length, 1 to 30.
    pub halen: u8,
    /// Diffie-Hellman group identifier list length, 1 to 30.
    pub dhlen: u8,
    /// Hash functions.
    pub hashes: [Hash; 30],
    /// Groups.
    pub groups: [DhGroup; 30],
}

const _: () = assert!(size_of::<ProtocolDescriptor>() == 64);

impl ProtocolDescriptor {
    /// The value of `authid`.
    pub const DH_HMAC_CHAP: u8 = 0x01;

    /// A descriptor of these, of which 30 each count.
    #[must_use]
    pub fn new(hashes: &[Hash], groups: &[DhGroup]) -> Self {
        let mut descriptor = Self {
            authid: Self::DH_HMAC_CHAP,
            reserved_1: Reserved::ZERO,
            halen: hashes.len().min(30) as u8,
            dhlen: groups.len().min(30) as u8,
            hashes: [Hash(0); 30],
            groups: [DhGroup(0); 30],
        };
        for (slot, hash) in descriptor.hashes.iter_mut().zip(hashes) {
            *slot = *hash;
        }
        for (slot, group) in descriptor.groups.iter_mut().zip(groups) {
            *slot = *group;
        }
        descriptor
    }

    /// The hash functions of the list; `None` if a peer counts more than there
    /// can be.
    #[must_use]
    pub fn hashes(&self) -> Option<&[Hash]> {
        self.hashes.get(..usize::from(self.halen))
    }

    /// The groups of the list; `None` if a peer counts more than there can be.
    #[must_use]
    pub fn groups(&self) -> Option<&[DhGroup]> {
        self.groups.get(..usize::from(self.dhlen))
    }
}

/// DH-HMAC-CHAP_Challenge. `hl` bytes of challenge (C1) and `dhvlen` bytes of
/// Diffie-Hellman value follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Challenge {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Hash length in bytes.
    pub hl: u8,
    /// Zero.
    pub reserved_7: Reserved<1>,
    /// Hash function chosen.
    pub hashid: Hash,
    /// Group chosen.
    pub dhgid: DhGroup,
    /// Diffie-Hellman value length in bytes; 0 without a group.
    pub dhvlen: U16,
    /// Sequence number (S1) of the challenge.
    pub seqnum: U32,
}

const _: () = assert!(size_of::<Challenge>() == 16);

/// DH-HMAC-CHAP_Reply. `hl` bytes of response (R1), `hl` bytes of challenge to
/// the controller (C2; present even if not valid) and `dhvlen` bytes of
/// Diffie-Hellman value follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Reply {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Hash length in bytes.
    pub hl: u8,
    /// Zero.
    pub reserved_7: Reserved<1>,
    /// Challenge valid: 1 if the host challenges the controller.
    pub cvalid: u8,
    /// Zero.
    pub reserved_9: Reserved<1>,
    /// Diffie-Hellman value length in bytes; 0 without a group.
    pub dhvlen: U16,
    /// Sequence number (S2) of the challenge to the controller; 0: none.
    pub seqnum: U32,
}

const _: () = assert!(size_of::<Reply>() == 16);

/// DH-HMAC-CHAP_Success1: the host is authenticated. `hl` bytes of response (R2)
/// follow if `rvalid`.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Success1 {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Hash length in bytes.
    pub hl: u8,
    /// Zero.
    pub reserved_7: Reserved<1>,
    /// Response valid: 1 if the host challenged the controller.
    pub rvalid: u8,
    /// Zero.
    pub reserved_9: Reserved<7>,
}

const _: () = assert!(size_of::<Success1>() == 16);

/// DH-HMAC-CHAP_Success2: the controller is authenticated.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Success2 {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Zero.
    pub reserved_6: Reserved<10>,
}

const _: () = assert!(size_of::<Success2>() == 16);

/// AUTH_Failure1 and AUTH_Failure2: the transaction failed.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Failure {
    /// What every message starts with.
    pub header: MessageHeader,
    /// Reason code: [`Failure::AUTHENTICATION_FAILURE`].
    pub reason: u8,
    /// Reason code explanation.
    pub explanation: FailureExplanation,
}

const _: () = assert!(size_of::<Failure>() == 8);

impl Failure {
    /// The only reason code.
    pub const AUTHENTICATION_FAILURE: u8 = 0x01;

    /// The last message of a controller in transaction `t_id`.
    #[must_use]
    pub fn of_controller(t_id: u16, explanation: FailureExplanation) -> Self {
        Self::new(AuthId::FAILURE1, t_id, explanation)
    }

    /// The last message of a host in transaction `t_id`.
    #[must_use]
    pub fn of_host(t_id: u16, explanation: FailureExplanation) -> Self {
        Self::new(AuthId::FAILURE2, t_id, explanation)
    }

    fn new(auth_id: AuthId, t_id: u16, explanation: FailureExplanation) -> Self {
        Self {
            header: MessageHeader::new(auth_id, t_id),
            reason: Self::AUTHENTICATION_FAILURE,
            explanation,
        }
    }
}
