//! How much a command on blocks moves, in the words of nvme-cli.

use zonelab_config::units::parse_size;

use super::{number, number16};
use crate::exit::Failure;

/// Options of nvme-cli for the length of a command.
#[derive(clap::Args)]
pub(super) struct LengthArgs {
    /// Number of blocks as nvme-cli counts them: 0 is one block
    #[arg(long, short = 'c', alias = "count", value_name = "NLB", value_parser = number16)]
    block_count: Option<u16>,
    /// Bytes: whole blocks
    #[arg(long, short = 'z', value_name = "BYTES", value_parser = size)]
    data_size: Option<u64>,
}

impl LengthArgs {
    /// Blocks of `lba_bytes` each, if the command line says how many.
    ///
    /// # Errors
    /// No whole blocks, none at all, or one option says something else than the other.
    pub(super) fn blocks(&self, lba_bytes: u32) -> Result<Option<u32>, Failure> {
        let counted = self.block_count.map(|nlb_z| u32::from(nlb_z) + 1);
        let Some(bytes) = self.data_size else {
            return Ok(counted);
        };
        let blocks = bytes / u64::from(lba_bytes.max(1));
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        if bytes == 0 || !bytes.is_multiple_of(lba_bytes.into()) {
            return Err(Failure::usage(format!(
                "--data-size {bytes} is not a whole number of blocks of {lba_bytes} bytes"
            )));
        }
        match counted.filter(|counted| *counted != blocks) {
            None => Ok(Some(blocks)),
            Some(counted) => Err(Failure::usage(format!(
                "--block-count {} is {counted} blocks, and --data-size {bytes} is {blocks}: leave \
                 one out",
                counted - 1
            ))),
        }
    }
}

/// A number of bytes, or a size with its unit.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    if let Ok(number) = number(digits)
        && let Some(bytes) = number.checked_mul(1 << shift)
    {
        return Ok(bytes);
    }
    parse_size(text).map_err(|_| "write a number of bytes, 0x1000, 4k or 4KiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(block_count: Option<u16>, data_size: Option<u64>) -> Result<Option<u32>, String> {
        let args = LengthArgs {
            block_count,
            data_size,
        };
        let blocks = args.blocks(4096);
        blocks.map_err(|failure| failure.error.to_string())
    }

    #[test]
    fn lengths_are_counted_as_nvme_cli_does() {
        assert_eq!(blocks(None, None), Ok(None));
        assert_eq!(blocks(Some(0), None), Ok(Some(1)));
        assert_eq!(blocks(Some(u16::MAX), None), Ok(Some(65_536)));
        assert_eq!(blocks(None, Some(8192)), Ok(Some(2)));
        assert_eq!(blocks(Some(1), Some(8192)), Ok(Some(2)));
        for (count, size) in [(None, 512), (None, 0), (Some(0), 8192)] {
            assert!(blocks(count, Some(size)).is_err(), "{count:?} {size}");
        }
    }

    #[test]
    fn sizes_have_units_or_none() {
        for (text, expected) in [
            ("4096", 4096),
            ("0x1000", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("1M", 1 << 20),
            ("1MB", 1_000_000),
        ] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "4q",
            "99999999999999999999",
            "0xffffffffffffffffk",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
