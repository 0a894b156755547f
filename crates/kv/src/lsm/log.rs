//! Records of the write-ahead log.
//!
//! A record is a CRC-32C of all that follows, the length of key (2 bytes) and
//! value (4), the tag (8), key and value. The file layer knows how long a file was when
//! it was last synced, so a log ends where its file ends, and every record in it
//! must be whole.

use super::entry::{Entry, Tag, Value};

/// Checksum, lengths and tag.
pub(crate) const RECORD_HEADER_BYTES: usize = 18;

/// Name of the file of a log.
pub(crate) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Length of a record, with a key that is so much longer.
pub(crate) fn record_len(entry: Entry<'_>, key_padding: usize) -> u64 {
    (RECORD_HEADER_BYTES + entry.key.len() + key_padding) as u64 + u64::from(entry.value.len())
}

pub(crate) fn encode_record(entry: Entry<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(entry.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&entry.value.len().to_le_bytes());
    out.extend_from_slice(&entry.tag.0.to_le_bytes());
    out.extend_from_slice(entry.key);
    if let Value::Bytes(bytes) = entry.value {
        out.extend_from_slice(bytes);
    }
    let crc = crc32c::crc32c(&out[at + 4..]);
    out[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// The first record, and its length; `None`: it is damaged or cut off.
pub(crate) fn decode_record(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let (crc, rest) = bytes.split_first_chunk::<4>()?;
    let (key_len, body) = rest.split_first_chunk::<2>()?;
    let (value_len, body) = body.split_first_chunk::<4>()?;
    let (tag, body) = body.split_first_chunk::<8>()?;
    let (key, body) = body.split_at_checked(usize::from(u16::from_le_bytes(*key_len)))?;
    let value = body.get(..u32::from_le_bytes(*value_len) as usize)?;
    let len = RECORD_HEADER_BYTES + key.len() + value.len();
    if crc32c::crc32c(&bytes[4..len]) != u32::from_le_bytes(*crc) {
        return None;
    }
    let entry = Entry {
        key,
        tag: Tag(u64::from_le_bytes(*tag)),
        value: Value::Bytes(value),
    };
    Some((entry, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_damage_is_seen() {
        let entries = [
            Entry {
                key: b"a",
                tag: Tag::put(7),
                value: Value::Bytes(b"value"),
            },
            Entry {
                key: b"",
                tag: Tag::delete(8),
                value: Value::Bytes(b""),
            },
        ];
        let mut bytes = Vec::new();
        for entry in entries {
            let before = bytes.len();
            encode_record(entry, &mut bytes);
            assert_eq!(record_len(entry, 0), (bytes.len() - before) as u64);
        }
        let (first, len) = decode_record(&bytes).unwrap();
        assert_eq!(first, entries[0]);
        let (second, rest) = decode_record(&bytes[len..]).unwrap();
        assert_eq!((second, len + rest), (entries[1], bytes.len()));
        for at in 0..len {
            let mut damaged = bytes[..len].to_vec();
            damaged[at] ^= 0x40;
            assert!(decode_record(&damaged).is_none(), "byte {at}");
            assert!(decode_record(&bytes[..at]).is_none(), "cut at {at}");
        }
    }
}
