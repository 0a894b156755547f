//! Identifiers of namespaces, derived from the name of their subsystem.
//!
//! A host recognises a namespace by them, over restarts of the target and of
//! the host, so the same name must give the same ones. They do not depend on
//! anything that Format NVM changes.

/// An organisation identifier of the locally administered kind (bit 1 of its
/// first byte): nobody else's.
pub(super) const OUI: [u8; 3] = [0x02, 0x5a, 0x4c];

/// Identifiers of one namespace.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct NamespaceNames {
    /// UUID of version 8 (RFC 9562, section 5.8): its content is ours to choose.
    pub(super) uuid: [u8; 16],
    /// Namespace globally unique identifier, big endian.
    pub(super) nguid: [u8; 16],
    /// EUI-64, big endian.
    pub(super) eui64: [u8; 8],
}

impl NamespaceNames {
    /// Those of namespace `nsid` of the subsystem `nqn`.
    pub(super) fn new(nqn: &str, nsid: u32) -> Self {
        let part = |salt: u64| hash(nqn.as_bytes(), u64::from(nsid) << 8 | salt).to_be_bytes();
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&part(1));
        uuid[8..].copy_from_slice(&part(2));
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        let mut nguid = [0; 16];
        nguid[..8].copy_from_slice(&part(3));
        nguid[8..11].copy_from_slice(&OUI);
        nguid[11..].copy_from_slice(&part(4)[..5]);
        let mut eui64 = [0; 8];
        eui64[..3].copy_from_slice(&OUI);
        eui64[3..].copy_from_slice(&part(5)[..5]);
        Self { uuid, nguid, eui64 }
    }
}

/// FNV-1a over `bytes`, started at `salt` and mixed at the end (the finaliser
/// of SplitMix64), so that similar names differ in all bits.
pub(super) fn hash(bytes: &[u8], salt: u64) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let start = salt.to_be_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let mut z = bytes.iter().fold(start, step);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
