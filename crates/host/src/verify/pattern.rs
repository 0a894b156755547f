//! Patterns of data: fio's `verify_pattern`.

/// Bytes that are repeated over a chunk, in which the place of the chunk can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: Vec<u8>,
    /// Where in it the offset of the chunk in bytes goes: 8 bytes, little-endian.
    offsets: Vec<usize>,
}

/// A text that is no pattern: what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct WrongPattern {
    /// What.
    pub what: String,
}

/// Bytes of a pattern at most, as in fio.
const MAX_BYTES: usize = 512;

/// What a pattern can be.
pub(crate) const VALID_PATTERNS: &str =
    "0xHEX, a decimal number, \"text\", %o (the offset of the block), or several of them";

impl Pattern {
    /// Reads a pattern in fio's form: numbers (`0x` and hexadecimal digits, whose
    /// first is the first byte; or decimal, little-endian in as few bytes as hold
    /// it, and four if it is negative), text in double quotes, and `%o`.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, WrongPattern> {
        let wrong = |what: String| WrongPattern { what };
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong("is empty".to_owned()));
        }
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '"' => {
                    let (quoted, after) = rest[1..]
                        .split_once('"')
                        .ok_or_else(|| wrong("a text without its closing \"".to_owned()))?;
                    bytes.extend_from_slice(quoted.as_bytes());
                    after
                }
                '%' => {
                    let after = rest
                        .strip_prefix("%o")
                        .ok_or_else(|| wrong("after % only o is known".to_owned()))?;
                    offsets.push(bytes.len());
                    bytes.extend_from_slice(&[0; 8]);
                    after
                }
                '\'' => return Err(wrong("files are not read".to_owned())),
                _ => number(rest, &mut bytes)
                    .ok_or_else(|| wrong(format!("\"{}\" is no number", shorten(rest))))?,
            };
            if bytes.len() > MAX_BYTES {
                return Err(wrong(format!("is longer than {MAX_BYTES} bytes")));
            }
        }
        if bytes.is_empty() {
            return Err(wrong("is empty".to_owned()));
        }
        Ok(Self { bytes, offsets })
    }

    /// Whether the place of a block is in it.
    #[must_use]
    pub const fn has_offset(&self) -> bool {
        !self.offsets.is_empty()
    }

    /// Fills the chunk at `offset` bytes.
    pub(crate) fn fill(&self, chunk: &mut [u8], offset: u64) {
        let mut once = self.bytes.clone();
        for at in &self.offsets {
            once[*at..at + 8].copy_from_slice(&offset.to_le_bytes());
        }
        for part in chunk.chunks_mut(once.len()) {
            part.copy_from_slice(&once[..part.len()]);
        }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(16).collect()
}

/// Reads a number from the start of `text`; what is behind it.
fn number<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = hex {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit());
        let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
        // An odd digit is the first, as if a 0 were before it.
        let odd = digits.len() % 2;
        if digits.is_empty() {
            return None;
        }
        if odd == 1 {
            bytes.push(u8::from_str_radix(&digits[..1], 16).ok()?);
        }
        for pair in digits.as_bytes()[odd..].chunks(2) {
            let pair = std::str::from_utf8(pair).ok()?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
        }
        return Some(rest);
    }
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].find(|c: char| !c.is_ascii_digit());
    let (number, rest) = text.split_at(digits.map_or(text.len(), |end| end + sign));
    let value: i32 = number.parse().ok()?;
    let all = value.to_le_bytes();
    let used = all
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(1, |at| at + 1);
    bytes.extend_from_slice(&all[..used]);
    Some(rest)
}
