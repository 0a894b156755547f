//! The part of the protocol buffers encoding that traces need: varints, fixed
//! 64-bit numbers, and fields with a length.

/// A message that is being put together, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// Wire types (protocol buffers encoding, "Message Structure").
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    /// An unsigned number.
    pub(super) fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// A number of eight bytes.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A text.
    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.tag(field, LENGTH);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// A message within the message.
    pub(super) fn message(&mut self, field: u32, inner: &Self) -> &mut Self {
        self.tag(field, LENGTH);
        self.varint(inner.bytes.len() as u64);
        self.bytes.extend_from_slice(&inner.bytes);
        self
    }

    /// True if nothing has been added.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoded message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    /// Seven bits a byte, the lowest first; the top bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the description of the encoding.
    #[test]
    fn known_encodings() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.clone().into_bytes(), [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.text(2, "testing");
        assert_eq!(text.into_bytes(), b"\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, &message);
        assert_eq!(outer.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut wide = Message::default();
        wide.uint(58, u64::MAX).fixed64(1, 1);
        let expected = [
            0xd0, 0x03, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x09, 1, 0, 0,
            0, 0, 0, 0, 0,
        ];
        assert_eq!(wide.into_bytes(), expected);
    }
}
