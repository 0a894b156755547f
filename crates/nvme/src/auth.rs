//! In-band authentication: the messages of DH-HMAC-CHAP, and the text form of
//! its secrets; the text form of pre-shared keys of TLS.
//!
//! Source: NVMe base specification 2.0, section 8.13.5.
//!
//! [`AuthenticationSend`] and [`AuthenticationReceive`] carry the messages. The
//! structs are what they start with; challenge, response and Diffie-Hellman
//! values of the lengths named there follow without gaps. Hashes and exponents
//! are not calculated here.
//!
//! [`AuthenticationSend`]: crate::fabrics::AuthenticationSend
//! [`AuthenticationReceive`]: crate::fabrics::AuthenticationReceive

mod message;
mod psk;
mod secret;

pub use message::{
    Challenge, Failure, MessageHeader, Negotiate, ProtocolDescriptor, Reply, Success1, Success2,
};
pub use psk::{Psk, PskError};
pub use secret::{Secret, SecretError, write_base64};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// Authentication Type (AUTH_TYPE): which messages identifiers are of.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum AuthType: u8 {
        /// Messages of all protocols.
        COMMON = 0x00,
        /// Messages of DH-HMAC-CHAP.
        DH_HMAC_CHAP = 0x01,
    }
}

const _: () = assert!(size_of::<AuthType>() == 1);

crate::open_enum! {
    /// Authentication Identifier (AUTH_ID): which message.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum AuthId: u8 {
        /// [`Negotiate`], of the host; [`AuthType::COMMON`].
        NEGOTIATE = 0x00 => "AUTH_Negotiate",
        /// [`Challenge`], of the controller.
        CHALLENGE = 0x01 => "DH-HMAC-CHAP_Challenge",
        /// [`Reply`], of the host.
        REPLY = 0x02 => "DH-HMAC-CHAP_Reply",
        /// [`Success1`], of the controller.
        SUCCESS1 = 0x03 => "DH-HMAC-CHAP_Success1",
        /// [`Success2`], of the host if it challenged the controller.
        SUCCESS2 = 0x04 => "DH-HMAC-CHAP_Success2",
        /// [`Failure`], of the host; [`AuthType::COMMON`].
        FAILURE2 = 0xf0 => "AUTH_Failure2",
        /// [`Failure`], of the controller; [`AuthType::COMMON`].
        FAILURE1 = 0xf1 => "AUTH_Failure1",
    }
}

const _: () = assert!(size_of::<AuthId>() == 1);

crate::open_enum! {
    /// A hash function (HashID), also of the transformation of a secret.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum Hash: u8 {
        /// SHA-256.
        SHA_256 = 0x01 => "SHA-256",
        /// SHA-384.
        SHA_384 = 0x02 => "SHA-384",
        /// SHA-512.
        SHA_512 = 0x03 => "SHA-512",
    }
}

const _: () = assert!(size_of::<Hash>() == 1);

impl Hash {
    /// Bytes of a value (HL); `None` if it has no name here.
    #[must_use]
    pub const fn bytes(self) -> Option<u8> {
        match self {
            Self::SHA_256 => Some(32),
            Self::SHA_384 => Some(48),
            Self::SHA_512 => Some(64),
            _ => None,
        }
    }
}

crate::open_enum! {
    /// A Diffie-Hellman group (DHgID), those of RFC 7919.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum DhGroup: u8 {
        /// None: a challenge without an exchange.
        NULL = 0x00,
        /// 2048 bits.
        FFDHE2048 = 0x01 => "ffdhe2048",
        /// 3072 bits.
        FFDHE3072 = 0x02 => "ffdhe3072",
        /// 4096 bits.
        FFDHE4096 = 0x03 => "ffdhe4096",
        /// 6144 bits.
        FFDHE6144 = 0x04 => "ffdhe6144",
        /// 8192 bits.
        FFDHE8192 = 0x05 => "ffdhe8192",
    }
}

const _: () = assert!(size_of::<DhGroup>() == 1);

impl DhGroup {
    /// Bytes of a value (DHVLEN); `None` if it has no name here.
    #[must_use]
    pub const fn bytes(self) -> Option<u16> {
        match self {
            Self::NULL => Some(0),
            Self::FFDHE2048 => Some(256),
            Self::FFDHE3072 => Some(384),
            Self::FFDHE4096 => Some(512),
            Self::FFDHE6144 => Some(768),
            Self::FFDHE8192 => Some(1024),
            _ => None,
        }
    }
}

crate::open_enum! {
    /// Secure Channel Concatenation (SC_C): what TLS makes of the session key.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum SecureChannel: u8 {
        /// No secure channel.
        NONE = 0x00,
        /// A new pre-shared key of TLS.
        NEW_TLS_PSK = 0x01,
    }
}

const _: () = assert!(size_of::<SecureChannel>() == 1);

crate::open_enum! {
    /// Reason Code Explanation of a [`Failure`].
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum FailureExplanation: u8 {
        /// A response is wrong.
        AUTHENTICATION_FAILED = 0x01,
        /// None of the protocols can be used.
        PROTOCOL_NOT_USABLE = 0x02,
        /// Secure channel concatenation does not match.
        SECURE_CHANNEL_MISMATCH = 0x03,
        /// None of the hash functions can be used.
        HASH_NOT_USABLE = 0x04,
        /// None of the groups can be used.
        DH_GROUP_NOT_USABLE = 0x05,
        /// A field of a message is wrong.
        INCORRECT_PAYLOAD = 0x06,
        /// Another message was due.
        INCORRECT_MESSAGE = 0x07,
    }
}

const _: () = assert!(size_of::<FailureExplanation>() == 1);
