//! Secrets as text.

use super::Hash;
use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// What every secret starts with.
const PREFIX: &str = "DHHC-1:";

/// Bytes of a check sum.
const CRC_LEN: usize = 4;

/// The digits of Base64.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The longest key in bytes.
const MAX_LEN: usize = 64;

/// A secret of DH-HMAC-CHAP: `DHHC-1:NN:` and the Base64 form of key and CRC-32,
/// then a colon. NN is the hash function of the transformation, or 00. It is wiped
/// from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    hash: Option<Hash>,
    bytes: [u8; MAX_LEN + CRC_LEN],
    len: usize,
}

/// Why a text is not a [`Secret`]. It never shows a part of the text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// It has not the form `DHHC-1:NN:...:`.
    Form,
    /// NN is not one of 00 to 03.
    Hash,
    /// What follows is not Base64.
    Base64,
    /// The key has this many bytes, and no key does.
    Length(usize),
    /// The check sum is wrong.
    Crc,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("a secret has the form DHHC-1:NN:BASE64:"),
            Self::Hash => f.write_str("the hash of a secret is 00, 01, 02 or 03"),
            Self::Base64 => f.write_str("the key of a secret is not valid Base64"),
            Self::Length(len) => write!(f, "the key has {len} bytes, but 32, 48 or 64 are valid"),
            Self::Crc => f.write_str("the check sum of the secret is wrong: it was mistyped"),
        }
    }
}

impl core::error::Error for SecretError {}

impl Secret {
    /// The secret of a key, to be transformed by `hash` before use.
    ///
    /// # Errors
    /// [`SecretError::Length`]: the key has not 32, 48 or 64 bytes.
    /// [`SecretError::Hash`]: the hash function has no name here.
    pub fn new(hash: Option<Hash>, key: &[u8]) -> Result<Self, SecretError> {
        if !matches!(key.len(), 32 | 48 | 64) {
            return Err(SecretError::Length(key.len()));
        }
        if hash.is_some_and(|hash| hash.bytes().is_none()) {
            return Err(SecretError::Hash);
        }
        let mut bytes = [0; MAX_LEN + CRC_LEN];
        let sum = crc32(key).to_le_bytes();
        for (slot, byte) in bytes.iter_mut().zip(key.iter().chain(&sum)) {
            *slot = *byte;
        }
        Ok(Self {
            hash,
            bytes,
            len: key.len(),
        })
    }

    /// Writes the text, which [`Secret::parse`] reads: for the one who is to
    /// have it, and for nobody else.
    ///
    /// # Errors
    /// What `to` says.
    pub fn write_text(&self, to: &mut impl fmt::Write) -> fmt::Result {
        let hash = self.hash.map_or(0, |hash| hash.0);
        write!(to, "{PREFIX}{hash:02}:")?;
        let bytes = self.bytes.get(..self.len + CRC_LEN).unwrap_or_default();
        write_base64(bytes, to)?;
        to.write_char(':')
    }

    /// The secret of a text.
    ///
    /// # Errors
    /// [`SecretError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let rest = text.strip_prefix(PREFIX).ok_or(SecretError::Form)?;
        let rest = rest.strip_suffix(':').ok_or(SecretError::Form)?;
        let (hash, base64) = rest.split_once(':').ok_or(SecretError::Form)?;
        let hash = match hash {
            "00" => None,
            "01" => Some(Hash::SHA_256),
            "02" => Some(Hash::SHA_384),
            "03" => Some(Hash::SHA_512),
            _ => return Err(SecretError::Hash),
        };
        let mut bytes = Zeroizing::new([0; MAX_LEN + CRC_LEN]);
        let filled = decode(base64, &mut *bytes)?;
        let len = filled.saturating_sub(CRC_LEN);
        if !matches!(len, 32 | 48 | 64) {
            return Err(SecretError::Length(len));
        }
        let secret = Self {
            hash,
            bytes: *bytes,
            len,
        };
        let sum = secret.bytes.get(len..filled).unwrap_or_default();
        if sum != crc32(secret.key()).to_le_bytes() {
            return Err(SecretError::Crc);
        }
        Ok(secret)
    }

    /// The hash function by which the key is transformed before use; `None` if
    /// it is used as it is.
    #[must_use]
    pub fn hash(&self) -> Option<Hash> {
        self.hash
    }

    /// The key: 32, 48 or 64 bytes.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    /// Not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("hash", &self.hash)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Writes bytes as Base64 (RFC 4648, section 4).
///
/// # Errors
/// What `to` says.
pub fn write_base64(bytes: &[u8], to: &mut impl fmt::Write) -> fmt::Result {
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let at = bits >> (18 - 6 * position) & 63;
            let digit = match position <= group.len() {
                true => DIGITS.get(at as usize).copied().unwrap_or(b'='),
                false => b'=',
            };
            to.write_char(char::from(digit))?;
        }
    }
    Ok(())
}

/// Decodes Base64 (RFC 4648, section 4) into `bytes`, as far as they reach: how
/// many the text has.
pub(super) fn decode(text: &str, bytes: &mut [u8]) -> Result<usize, SecretError> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return Err(SecretError::Base64);
    }
    let (mut len, mut bits, mut count) = (0, 0_u32, 0);
    for digit in digits.bytes() {
        bits = (bits << 6 | value(digit)?) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            if let Some(slot) = bytes.get_mut(len) {
                *slot = (bits >> count & 0xff) as u8;
            }
            len += 1;
        }
    }
    // What is left over of the last digit is zero, or two texts meant one key.
    if bits & ((1 << count) - 1) != 0 {
        return Err(SecretError::Base64);
    }
    Ok(len)
}

/// The value of a digit of Base64.
fn value(digit: u8) -> Result<u32, SecretError> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return Err(SecretError::Base64),
    };
    Ok(value.into())
}

/// CRC-32 as of Ethernet: reflected polynomial EDB88320h, both ends inverted.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let fold = |crc: u32, _| crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg();
    !bytes
        .iter()
        .fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn base64_to_the_vectors_of_its_rfc() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"fooba", "Zm9vYmE="),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xef\xbe\xfb", "/++++w=="),
        ] {
            let mut encoded = std::string::String::new();
            write_base64(bytes, &mut encoded).unwrap();
            assert_eq!(encoded, text);
        }
    }

    #[test]
    fn base64_of_the_vectors_of_its_rfc() {
        let decoded = |text| {
            let mut bytes = [0; 8];
            decode(text, &mut bytes).map(|len| std::vec::Vec::from(&bytes[..len]))
        };
        assert_eq!(decoded(""), Ok(b"".into()));
        assert_eq!(decoded("Zg=="), Ok(b"f".into()));
        assert_eq!(decoded("Zm8="), Ok(b"fo".into()));
        assert_eq!(decoded("Zm9v"), Ok(b"foo".into()));
        assert_eq!(decoded("Zm9vYg=="), Ok(b"foob".into()));
        assert_eq!(decoded("Zm9vYmE="), Ok(b"fooba".into()));
        assert_eq!(decoded("Zm9vYmFy"), Ok(b"foobar".into()));
        for wrong in [
            "Zg", "Zg=", "Z===", "====", "Zh==", "Zm=v", "Zm9-", "\u{e9}A=",
        ] {
            assert_eq!(decoded(wrong), Err(SecretError::Base64), "{wrong}");
        }
        assert_eq!(decode("AAAAAAAAAAAA", &mut [0; 8]), Ok(9));
    }
}
