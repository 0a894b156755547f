//! Text fields.

use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An ASCII string of `N` bytes, padded with spaces on the right.
#[derive(Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Ascii<const N: usize>([u8; N]);

const _: () = assert!(size_of::<Ascii<20>>() == 20);

impl<const N: usize> Ascii<N> {
    /// The field with `text`; `None` if it is longer than `N` or holds anything
    /// but printable ASCII (20h to 7Eh).
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [b' '; N];
        if !text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) {
            return None;
        }
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self(bytes))
    }

    /// The text without its padding, which peers make of spaces or zeroes;
    /// `None` if a peer sent anything but ASCII.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if !self.0.is_ascii() {
            return None;
        }
        let text = core::str::from_utf8(&self.0).ok()?;
        Some(text.trim_end_matches([' ', '\0']))
    }
}

impl<const N: usize> Default for Ascii<N> {
    /// Nothing but spaces.
    fn default() -> Self {
        Self([b' '; N])
    }
}

impl<const N: usize> fmt::Debug for Ascii<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => text.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let mut groups = text.split('-');
    let has_groups = [8, 4, 4, 4, 12].iter().all(|len| {
        let group = groups.next().unwrap_or_default();
        group.len() == *len && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    has_groups && groups.next().is_none()
}

/// YYYY-MM.
fn is_month(text: &str) -> bool {
    let Some((year, month)) = text.split_once('-') else {
        return false;
    };
    let is_number = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let months = 1..=12_u8;
    is_number(year, 4)
        && is_number(month, 2)
        && month.parse().is_ok_and(|month| months.contains(&month))
}

/// Labels of letters, digits and hyphens between dots.
fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        is_end(label.bytes().next())
            && is_end(label.bytes().next_back())
            && label.bytes().all(is_inner)
    };
    text.split('.').all(is_label)
}

/// An NVMe qualified name: UTF-8, ended by a zero byte, in 256 bytes.
///
/// Two are equal if their names are, whatever a peer has put behind the ends: so nobody can
/// be taken for one host where names are compared, and for another where they are looked up.
#[derive(Copy, Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Nqn([u8; 256]);

const _: () = assert!(size_of::<Nqn>() == 256);

impl Nqn {
    /// What the name of something without a domain starts with; a UUID follows.
    const UUID_PREFIX: &str = "nqn.2014-08.org.nvmexpress:uuid:";

    /// Whether `name` has the form of an NQN (base specification 2.0, section
    /// 4.5): `nqn.`, year and month, a domain with its labels reversed, and then
    /// nothing or a colon and a text of the owner's choice; or the prefix that
    /// is for UUIDs, and one.
    #[must_use]
    pub fn is_well_formed(name: &str) -> bool {
        if name.len() > Self::MAX_LEN || name.contains('\0') {
            return false;
        }
        if let Some(uuid) = name.strip_prefix(Self::UUID_PREFIX) {
            return is_uuid(uuid);
        }
        let Some((date, rest)) = name.strip_prefix("nqn.").and_then(|of| of.split_once('.')) else {
            return false;
        };
        let (domain, text) = match rest.split_once(':') {
            Some((domain, text)) => (domain, Some(text)),
            None => (rest, None),
        };
        is_month(date) && is_domain(domain) && text != Some("")
    }

    /// The longest name in bytes.
    pub const MAX_LEN: usize = 223;

    /// The field with `name`; `None` if it is longer than [`Nqn::MAX_LEN`] or
    /// holds a zero byte. Whether it has the form of an NQN is not looked at.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        if name.len() > Self::MAX_LEN || name.contains('\0') {
            return None;
        }
        let mut bytes = [0; 256];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        Some(Self(bytes))
    }

    /// The name; `None` if a peer sent one that does not end or is not UTF-8. What stands
    /// behind its end is left out: see [`Self::is_padded`].
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        let name = self.bytes();
        if name.len() == self.0.len() {
            return None;
        }
        core::str::from_utf8(name).ok()
    }

    /// Whether nothing but zero bytes follows the name.
    #[must_use]
    pub fn is_padded(&self) -> bool {
        let mut rest = self.0.iter().skip(self.bytes().len());
        rest.all(|byte| *byte == 0)
    }

    /// All bytes before the first zero byte.
    fn bytes(&self) -> &[u8] {
        let mut parts = self.0.split(|byte| *byte == 0);
        parts.next().unwrap_or_default()
    }
}

impl PartialEq for Nqn {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Nqn {}

impl fmt::Debug for Nqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(name) => name.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use zerocopy::FromZeros;

    #[test]
    fn names_have_one_of_two_forms() {
        let uuid = "nqn.2014-08.org.nvmexpress:uuid:";
        for name in [
            "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff",
            "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-AABBCCDDEEFF",
            "nqn.2016-06.io.spdk:host1",
            "nqn.2026-12.org.example",
            "nqn.1988-11.com.a-b.c3:a text: with \u{e4} and :",
        ] {
            assert!(Nqn::is_well_formed(name), "{name}");
        }
        for name in [
            "",
            "nqn",
            "nqn.",
            "nqn.2026-01",
            "nqn.2026-01.",
            "nqn.2026-01.:a",
            "nqn.2026-01.org.example:",
            "nqn.2026-00.org",
            "nqn.2026-13.org",
            "nqn.2026-1.org",
            "nqn.+026-01.org",
            "nqn.2026-01.org..example",
            "nqn.2026-01.-org",
            "nqn.2026-01.org example",
            "NQN.2026-01.org",
            "iqn.2026-01.org",
            uuid,
        ] {
            assert!(!Nqn::is_well_formed(name), "{name}");
        }
        for wrong in [
            "0",
            "00112233-4455-6677-8899-aabbccddeef",
            "00112233445566778899aabbccddeeff",
        ] {
            assert!(!Nqn::is_well_formed(&std::format!("{uuid}{wrong}")));
        }
        let long = |len| std::format!("nqn.2026-01.org:{}", "x".repeat(len));
        assert!(Nqn::is_well_formed(&long(Nqn::MAX_LEN - 16)));
        assert!(!Nqn::is_well_formed(&long(Nqn::MAX_LEN - 15)));
    }

    #[test]
    fn ascii_pads_with_spaces_and_gives_the_text_back() {
        let serial = Ascii::<8>::new("ZL 01").unwrap();
        assert_eq!(serial.as_bytes(), b"ZL 01   ");
        assert_eq!(serial.as_str(), Some("ZL 01"));
        assert_eq!(
            Ascii::<8>::new("12345678").unwrap().as_str(),
            Some("12345678")
        );
        assert_eq!(
            Ascii::<4>::read_from_bytes(b"ab\0\0").unwrap().as_str(),
            Some("ab")
        );
    }

    #[test]
    fn ascii_refuses_what_it_cannot_hold() {
        assert_eq!(Ascii::<4>::new("12345"), None);
        assert_eq!(Ascii::<4>::new("\u{e9}"), None);
        assert_eq!(Ascii::<4>::new("\t"), None);
        assert_eq!(
            Ascii::<2>::read_from_bytes(&[0xc3, 0xa9]).unwrap().as_str(),
            None
        );
    }

    #[test]
    fn a_name_ends_at_its_zero_byte() {
        let name = Nqn::new("nqn.2014-08.org.nvmexpress.discovery").unwrap();
        assert_eq!(name.as_str(), Some("nqn.2014-08.org.nvmexpress.discovery"));
        assert!(name.as_bytes()[36..].iter().all(|byte| *byte == 0));
        assert_eq!(Nqn::new_zeroed().as_str(), Some(""));
    }

    #[test]
    fn names_are_equal_up_to_their_ends() {
        let name = Nqn::new("nqn.2026-01.org:a").unwrap();
        let mut bytes = name.0;
        bytes[18] = b'x';
        let other = Nqn::read_from_bytes(&bytes).unwrap();
        assert_eq!((name, name.as_str()), (other, other.as_str()));
        assert!(name.is_padded() && !other.is_padded());
        bytes[17] = b'x';
        assert_ne!(Nqn::read_from_bytes(&bytes).unwrap(), name);
        // Those that never end are equal if all of their bytes are.
        let endless = |last| {
            let mut bytes = [b'n'; 256];
            bytes[255] = last;
            Nqn::read_from_bytes(&bytes).unwrap()
        };
        assert_eq!(endless(b'n'), endless(b'n'));
        assert_ne!(endless(b'n'), endless(b'm'));
        assert!(endless(b'n').is_padded());
    }

    #[test]
    fn a_name_that_is_too_long_or_never_ends_is_refused() {
        let longest: String = core::iter::repeat_n('n', Nqn::MAX_LEN).collect();
        assert_eq!(Nqn::new(&longest).unwrap().as_str(), Some(longest.as_str()));
        assert_eq!(Nqn::new(&(longest + "n")), None);
        assert_eq!(Nqn::new("a\0b"), None);
        assert_eq!(Nqn::read_from_bytes(&[b'n'; 256]).unwrap().as_str(), None);
    }
}
