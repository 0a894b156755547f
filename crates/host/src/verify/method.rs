//! fio's methods of verification, and their checksums.

use std::hash::Hasher as _;

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use twox_hash::XxHash32;

use super::HEADER_BYTES;

/// How contents are made and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Header with the CRC-32C (Castagnoli) of the data.
    Crc32c,
    /// Header with the MD5 of the data.
    Md5,
    /// Header with the SHA-256 of the data.
    Sha256,
    /// Header with the SHA-512 of the data.
    Sha512,
    /// No header: the data are a pattern and nothing else. A chunk at a wrong place
    /// is not found, unless the pattern has the place in it.
    Pattern,
    /// Header, then a pattern.
    PatternHdr,
    /// Header without a checksum of the data.
    Meta,
    /// Header with the CRC-64 (that of Redis) of the data.
    Crc64,
    /// Header with the CRC-32 of the data, most significant bit first.
    Crc32,
    /// Header with the CRC-16 (ARC) of the data.
    Crc16,
    /// Header with the CRC-7 (MMC) of the data.
    Crc7,
    /// Header with the 32-bit xxHash of the data.
    Xxhash,
    /// Header with the SHA-1 of the data.
    Sha1,
    /// Header with the SHA3-224 of the data.
    Sha3x224,
    /// Header with the SHA3-256 of the data.
    Sha3x256,
    /// Header with the SHA3-384 of the data.
    Sha3x384,
    /// Header with the SHA3-512 of the data.
    Sha3x512,
    /// Nothing is looked at: data are read back, and that is all.
    Null,
}

/// A method as fio has it.
struct Form {
    name: &'static str,
    /// Its number in headers.
    number: u16,
    /// Bytes of the checksum behind the header.
    sum_bytes: usize,
}

/// fio has neither an initial value nor an inversion.
static CRC_32: Crc<u32> = Crc::<u32>::new(&Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
});
static CRC_64: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);
static CRC_16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);
static CRC_7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);

/// fio begins with this.
const XXHASH_SEED: u32 = 1;

impl Method {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Crc32c,
        Self::Md5,
        Self::Sha256,
        Self::Sha512,
        Self::Pattern,
        Self::PatternHdr,
        Self::Meta,
        Self::Crc64,
        Self::Crc32,
        Self::Crc16,
        Self::Crc7,
        Self::Xxhash,
        Self::Sha1,
        Self::Sha3x224,
        Self::Sha3x256,
        Self::Sha3x384,
        Self::Sha3x512,
        Self::Null,
    ];

    const fn form(self) -> Form {
        let (name, number, sum_bytes) = match self {
            Self::Meta => ("meta", 1, 0),
            Self::Md5 => ("md5", 2, 16),
            Self::Crc64 => ("crc64", 3, 8),
            Self::Crc32 => ("crc32", 4, 4),
            Self::Crc32c => ("crc32c", 5, 4),
            Self::Crc16 => ("crc16", 7, 2),
            Self::Crc7 => ("crc7", 8, 1),
            Self::Sha256 => ("sha256", 9, 32),
            Self::Sha512 => ("sha512", 10, 64),
            Self::Sha3x224 => ("sha3-224", 11, 28),
            Self::Sha3x256 => ("sha3-256", 12, 32),
            Self::Sha3x384 => ("sha3-384", 13, 48),
            Self::Sha3x512 => ("sha3-512", 14, 64),
            Self::Xxhash => ("xxhash", 15, 4),
            Self::Sha1 => ("sha1", 16, 20),
            Self::PatternHdr => ("pattern_hdr", 17, 0),
            Self::Pattern => ("pattern", 18, 0),
            Self::Null => ("null", 19, 0),
        };
        Form {
            name,
            number,
            sum_bytes,
        }
    }

    /// Its name in fio.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.form().name
    }

    /// Its number in headers, as fio counts.
    pub(super) const fn number(self) -> u16 {
        self.form().number
    }

    /// Bytes of the checksum behind the header.
    pub(super) const fn sum_bytes(self) -> usize {
        self.form().sum_bytes
    }

    /// Whether the data are a pattern.
    #[must_use]
    pub const fn is_pattern(self) -> bool {
        matches!(self, Self::Pattern | Self::PatternHdr)
    }

    /// Whether chunks begin with a header.
    #[must_use]
    pub const fn has_header(self) -> bool {
        !matches!(self, Self::Pattern | Self::Null)
    }

    /// Bytes of a chunk that are not data.
    #[must_use]
    pub const fn overhead_bytes(self) -> usize {
        match self.has_header() {
            true => HEADER_BYTES + self.sum_bytes(),
            false => 0,
        }
    }

    /// The checksum of `data`, at the start of the result.
    pub(super) fn sum(self, data: &[u8]) -> [u8; 64] {
        let mut sum = [0; 64];
        let mut put = |bytes: &[u8]| sum[..bytes.len()].copy_from_slice(bytes);
        match self {
            // fio leaves out the inversion at the end.
            Self::Crc32c => put(&(!crc32c::crc32c(data)).to_le_bytes()),
            Self::Crc64 => put(&CRC_64.checksum(data).to_le_bytes()),
            Self::Crc32 => put(&CRC_32.checksum(data).to_le_bytes()),
            Self::Crc16 => put(&CRC_16.checksum(data).to_le_bytes()),
            Self::Crc7 => put(&[CRC_7.checksum(data)]),
            Self::Xxhash => {
                let mut hash = XxHash32::with_seed(XXHASH_SEED);
                hash.write(data);
                put(&hash.finish_32().to_le_bytes());
            }
            Self::Md5 => put(&Md5::digest(data)),
            // fio keeps its words as the host has them.
            Self::Sha1 => {
                let mut digest = Sha1::digest(data);
                digest.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                put(&digest);
            }
            Self::Sha256 => put(&Sha256::digest(data)),
            Self::Sha512 => put(&Sha512::digest(data)),
            Self::Sha3x224 => put(&Sha3_224::digest(data)),
            Self::Sha3x256 => put(&Sha3_256::digest(data)),
            Self::Sha3x384 => put(&Sha3_384::digest(data)),
            Self::Sha3x512 => put(&Sha3_512::digest(data)),
            Self::Pattern | Self::PatternHdr | Self::Meta | Self::Null => {}
        }
        sum
    }
}
