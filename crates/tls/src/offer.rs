//! What a ClientHello offers: for the log, when nothing came of it.

/// The extension `pre_shared_key` (RFC 8446, section 4.2.11).
const PRE_SHARED_KEY: [u8; 2] = [0, 41];
/// Identities that are logged, and characters of each.
const MOST: usize = 4;
const MOST_CHARS: usize = 512;

/// The first identities that a ClientHello offers, as text without control characters.
/// `hello` is the message without the header of handshakes; what is no such offers none.
pub(crate) fn identities(hello: &[u8]) -> Vec<String> {
    offered(hello).unwrap_or_default()
}

fn offered(mut hello: &[u8]) -> Option<Vec<String>> {
    // Version and random bytes; session, cipher suites, compression methods.
    take(&mut hello, 2 + 32)?;
    vector(&mut hello, 1)?;
    vector(&mut hello, 2)?;
    vector(&mut hello, 1)?;
    let mut extensions = vector(&mut hello, 2)?;
    while !extensions.is_empty() {
        let kind = take(&mut extensions, 2)?;
        let mut content = vector(&mut extensions, 2)?;
        if kind != PRE_SHARED_KEY {
            continue;
        }
        let mut identities = vector(&mut content, 2)?;
        let mut found = Vec::new();
        while !identities.is_empty() && found.len() < MOST {
            let identity = String::from_utf8_lossy(vector(&mut identities, 2)?);
            let plain = identity.chars().filter(|c| !c.is_control());
            found.push(plain.take(MOST_CHARS).collect());
            // Age of a ticket.
            take(&mut identities, 4)?;
        }
        return Some(found);
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

/// A vector whose length stands before it, in `width` bytes.
fn vector<'a>(bytes: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let length = take(bytes, width)?;
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    take(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ClientHello with another extension, and one with these identities.
    fn hello(offered: &[&[u8]]) -> Vec<u8> {
        let prefixed = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        let one = |identity: &&[u8]| [&prefixed(identity)[..], &[0; 4]].concat();
        let identities: Vec<u8> = offered.iter().flat_map(one).collect();
        let psk = [prefixed(&identities), vec![0, 1, 0]].concat();
        let extensions = [
            &[0, 43][..],
            &prefixed(&[2, 3, 4]),
            &[0, 41],
            &prefixed(&psk),
        ]
        .concat();
        let start = [&[3, 3][..], &[7; 32], &[2, 1, 2], &[0, 2, 0x13, 1], &[1, 0]].concat();
        [start, prefixed(&extensions)].concat()
    }

    #[test]
    fn identities_of_a_client_are_found() {
        let hello = hello(&[b"NVMe0R01 a b", b"x\x1b[2J\xff"]);
        assert_eq!(identities(&hello), ["NVMe0R01 a b", "x[2J\u{fffd}"]);
        assert_eq!(identities(&hello[..hello.len() - 8]), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_bytes_offer_at_most_a_few(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            at in 0..200_usize,
        ) {
            let mut hello = hello(&[b"one", b"two"]);
            for (slot, byte) in hello.iter_mut().skip(at).zip(bytes) {
                *slot ^= byte;
            }
            prop_assert!(identities(&hello).len() <= MOST);
        }
    }
}
