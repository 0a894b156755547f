//! Pre-shared keys of TLS as text.

use super::Hash;
use super::secret::{crc32, decode, write_base64};
use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// What every key starts with.
const PREFIX: &str = "NVMeTLSkey-1:";
const CRC_LEN: usize = 4;
/// The longest key in bytes.
const MAX_LEN: usize = 48;

/// A configured pre-shared key of TLS in the interchange format (NVMe/TCP transport
/// specification 1.0, section 3.6.1.5): `NVMeTLSkey-1:NN:` and the Base64 form of key and
/// CRC-32, then a colon. NN is the hash function that makes the retained key of it, or 00
/// if it is the retained key. It is wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk {
    hash: Option<Hash>,
    bytes: [u8; MAX_LEN],
    len: usize,
}

/// Why a text is not a [`Psk`]. It never shows a part of the text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PskError {
    /// It has not the form `NVMeTLSkey-1:NN:...:`.
    Form,
    /// NN is not one of 00 to 02.
    Hash,
    /// What follows is not Base64.
    Base64,
    /// The key has this many bytes, and no key does.
    Length(usize),
    /// The key has not the length of its hash function.
    HashLength(usize),
    /// The check sum is wrong.
    Crc,
}

impl fmt::Display for PskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("a key of TLS has the form NVMeTLSkey-1:NN:BASE64:"),
            Self::Hash => {
                f.write_str("the hash of a key of TLS is 00, 01 (SHA-256) or 02 (SHA-384)")
            }
            Self::Base64 => f.write_str("the key of TLS is not valid Base64"),
            Self::Length(len) => write!(f, "the key has {len} bytes, but 32 or 48 are valid"),
            Self::HashLength(len) => write!(
                f,
                "the key has {len} bytes, but 32 go with 01 (SHA-256), 48 with 02 (SHA-384)"
            ),
            Self::Crc => f.write_str("the check sum of the key is wrong: it was mistyped"),
        }
    }
}

impl core::error::Error for PskError {}

impl Psk {
    /// The configured key of these bytes; `hash`: what makes the retained key of it.
    ///
    /// # Errors
    /// [`PskError::Length`], [`PskError::Hash`], [`PskError::HashLength`].
    pub fn new(hash: Option<Hash>, key: &[u8]) -> Result<Self, PskError> {
        let fits = match hash {
            None => true,
            Some(Hash::SHA_256) => key.len() == 32,
            Some(Hash::SHA_384) => key.len() == 48,
            Some(_) => return Err(PskError::Hash),
        };
        if !matches!(key.len(), 32 | 48) {
            return Err(PskError::Length(key.len()));
        }
        if !fits {
            return Err(PskError::HashLength(key.len()));
        }
        let mut bytes = [0; MAX_LEN];
        for (slot, byte) in bytes.iter_mut().zip(key) {
            *slot = *byte;
        }
        Ok(Self {
            hash,
            bytes,
            len: key.len(),
        })
    }

    /// The key of a text.
    ///
    /// # Errors
    /// [`PskError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, PskError> {
        let rest = text.strip_prefix(PREFIX).ok_or(PskError::Form)?;
        let rest = rest.strip_suffix(':').ok_or(PskError::Form)?;
        let (hash, base64) = rest.split_once(':').ok_or(PskError::Form)?;
        let hash = match hash {
            "00" => None,
            "01" => Some(Hash::SHA_256),
            "02" => Some(Hash::SHA_384),
            _ => return Err(PskError::Hash),
        };
        let mut bytes = Zeroizing::new([0; MAX_LEN + CRC_LEN]);
        let filled = decode(base64, &mut *bytes).map_err(|_| PskError::Base64)?;
        let len = filled.saturating_sub(CRC_LEN);
        let key = bytes.get(..len).ok_or(PskError::Length(len))?;
        let psk = Self::new(hash, key)?;
        if bytes.get(len..filled) != Some(&crc32(key).to_le_bytes()) {
            return Err(PskError::Crc);
        }
        Ok(psk)
    }

    /// Writes the text, which [`Psk::parse`] reads: for the one who is to have it, and for
    /// nobody else.
    ///
    /// # Errors
    /// What `to` says.
    pub fn write_text(&self, to: &mut impl fmt::Write) -> fmt::Result {
        let hash = self.hash.map_or(0, |hash| hash.0);
        let mut bytes = Zeroizing::new([0; MAX_LEN + CRC_LEN]);
        let sum = crc32(self.key()).to_le_bytes();
        for (slot, byte) in bytes.iter_mut().zip(self.key().iter().chain(&sum)) {
            *slot = *byte;
        }
        write!(to, "{PREFIX}{hash:02}:")?;
        write_base64(bytes.get(..self.len + CRC_LEN).unwrap_or_default(), to)?;
        to.write_char(':')
    }

    /// The hash function that makes the retained key of it; `None` if it is that key.
    #[must_use]
    pub fn transform(&self) -> Option<Hash> {
        self.hash
    }

    /// The hash function of everything that is derived from it: that of its length.
    #[must_use]
    pub fn hash(&self) -> Hash {
        match self.len {
            48 => Hash::SHA_384,
            _ => Hash::SHA_256,
        }
    }

    /// The key: 32 or 48 bytes.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Psk {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl ZeroizeOnDrop for Psk {}

impl fmt::Debug for Psk {
    /// Not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Psk")
            .field("hash", &self.hash)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
