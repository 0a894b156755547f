//! What the bits of Identify Namespace mean, as `nvme id-ns -H` prints it.

use zonelab_driver::Namespace;

use super::fields::{Fields, Shown};
use super::identify::formats;

/// Bits of a field, highest and lowest, and what they mean if they are 0 and if they are not.
type Bits = (u32, u32, &'static str, &'static str);

const NSFEAT: [Bits; 5] = [
    (
        4,
        4,
        "NPWG, NPWA, NPDG, NPDA, and NOWS are Not Supported",
        "NPWG, NPWA, NPDG, NPDA, and NOWS are Supported",
    ),
    (
        3,
        3,
        "NGUID and EUI64 fields if non-zero, Reused",
        "NGUID and EUI64 fields if non-zero, Never Reused",
    ),
    (
        2,
        2,
        "Deallocated or Unwritten Logical Block error Not Supported",
        "Deallocated or Unwritten Logical Block error Supported",
    ),
    (
        1,
        1,
        "Namespace uses AWUN, AWUPF, and ACWU",
        "Namespace uses NAWUN, NAWUPF, and NACWU",
    ),
    (
        0,
        0,
        "Thin Provisioning Not Supported",
        "Thin Provisioning Supported",
    ),
];

const FLBAS: [Bits; 3] = [
    (
        6,
        5,
        "Most significant 2 bits of Current LBA Format Selected",
        "Most significant 2 bits of Current LBA Format Selected",
    ),
    (
        4,
        4,
        "Metadata Transferred in Separate Contiguous Buffer",
        "Metadata Transferred at End of Data LBA",
    ),
    (
        3,
        0,
        "Least significant 4 bits of Current LBA Format Selected",
        "Least significant 4 bits of Current LBA Format Selected",
    ),
];

const MC: [Bits; 2] = [
    (
        1,
        1,
        "Metadata Pointer Not Supported",
        "Metadata Pointer Supported",
    ),
    (
        0,
        0,
        "Metadata as Part of Extended Data LBA Not Supported",
        "Metadata as Part of Extended Data LBA Supported",
    ),
];

const DPC: [Bits; 5] = [
    (
        4,
        4,
        "Protection Information Transferred as Last Bytes of Metadata Not Supported",
        "Protection Information Transferred as Last Bytes of Metadata Supported",
    ),
    (
        3,
        3,
        "Protection Information Transferred as First Bytes of Metadata Not Supported",
        "Protection Information Transferred as First Bytes of Metadata Supported",
    ),
    (
        2,
        2,
        "Protection Information Type 3 Not Supported",
        "Protection Information Type 3 Supported",
    ),
    (
        1,
        1,
        "Protection Information Type 2 Not Supported",
        "Protection Information Type 2 Supported",
    ),
    (
        0,
        0,
        "Protection Information Type 1 Not Supported",
        "Protection Information Type 1 Supported",
    ),
];

const DPS: [Bits; 2] = [
    (
        3,
        3,
        "Protection Information is Transferred as Last Bytes of Metadata",
        "Protection Information is Transferred as First Bytes of Metadata",
    ),
    (
        2,
        0,
        "Protection Information Disabled",
        "Protection Information Enabled, of this Type",
    ),
];

const NMIC: [Bits; 1] = [(
    0,
    0,
    "Namespace Multipath Not Capable",
    "Namespace Multipath Capable",
)];

const RESCAP: [Bits; 8] = [
    (
        7,
        7,
        "Ignore Existing Key - Used as defined in revision 1.2.1 or earlier",
        "Ignore Existing Key - Used as defined in revision 1.3 or later",
    ),
    (
        6,
        6,
        "Exclusive Access - All Registrants Not Supported",
        "Exclusive Access - All Registrants Supported",
    ),
    (
        5,
        5,
        "Write Exclusive - All Registrants Not Supported",
        "Write Exclusive - All Registrants Supported",
    ),
    (
        4,
        4,
        "Exclusive Access - Registrants Only Not Supported",
        "Exclusive Access - Registrants Only Supported",
    ),
    (
        3,
        3,
        "Write Exclusive - Registrants Only Not Supported",
        "Write Exclusive - Registrants Only Supported",
    ),
    (
        2,
        2,
        "Exclusive Access Not Supported",
        "Exclusive Access Supported",
    ),
    (
        1,
        1,
        "Write Exclusive Not Supported",
        "Write Exclusive Supported",
    ),
    (
        0,
        0,
        "Persist Through Power Loss Not Supported",
        "Persist Through Power Loss Supported",
    ),
];

const FPI: [Bits; 2] = [
    (
        7,
        7,
        "Format Progress Indicator Not Supported",
        "Format Progress Indicator Supported",
    ),
    (
        6,
        0,
        "Per Cent of the Format that Remain",
        "Per Cent of the Format that Remain",
    ),
];

const DLFEAT: [Bits; 3] = [
    (
        4,
        4,
        "Guard Field of Deallocated Logical Blocks is set to 0xFFFF",
        "Guard Field of Deallocated Logical Blocks is set to CRC of The Value Read",
    ),
    (
        3,
        3,
        "Deallocate Bit in the Write Zeroes Command is Not Supported",
        "Deallocate Bit in the Write Zeroes Command is Supported",
    ),
    (
        2,
        0,
        "Bytes Read From a Deallocated Logical Block and its Metadata are Not Reported",
        "Bytes Read From a Deallocated Logical Block and its Metadata are: 1 0x00, 2 0xFF",
    ),
];

/// The structure with lines for the bits of its fields, and its formats in words.
pub(super) fn namespace(fields: &Fields, of: &Namespace) -> String {
    let text = fields.to_text_with(|name, value| {
        let bits: &[Bits] = match name {
            "nsfeat" => &NSFEAT,
            "flbas" => &FLBAS,
            "mc" => &MC,
            "dpc" => &DPC,
            "dps" => &DPS,
            "nmic" => &NMIC,
            "rescap" => &RESCAP,
            "fpi" => &FPI,
            "dlfeat" => &DLFEAT,
            _ => return String::new(),
        };
        lines(value, bits)
    });
    let in_use = usize::from(of.format_index());
    let formats = formats(of).map(|(index, format)| {
        let bytes = 1_u64.checked_shl(format.lbads().into()).unwrap_or(0);
        let rp = ["Best", "Better", "Good", "Degraded"];
        let rp = rp.get(usize::from(format.rp())).unwrap_or(&"");
        let used = if index == in_use { " (in use)" } else { "" };
        format!(
            "LBA Format {index:>2} : Metadata Size: {:<3} bytes - Data Size: {bytes:<2} bytes - \
             Relative Performance: {:#x} {rp}{used}\n",
            format.ms(),
            format.rp()
        )
    });
    text + &formats.collect::<String>()
}

/// A line for each range of bits of a field, and an empty one.
fn lines(value: &Shown, bits: &[Bits]) -> String {
    let value = match value {
        Shown::Number(value) => *value,
        Shown::Hex(value) => u128::from(*value),
        Shown::Text(_) => return String::new(),
    };
    let line = |(high, low, unset, set): &Bits| {
        let part = value >> low & ((1 << (high - low + 1)) - 1);
        let says = if part == 0 { unset } else { set };
        format!("  [{high}:{low}] : {part:#x}\t{says}\n")
    };
    bits.iter().map(line).collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_shown_from_the_highest_on() {
        let text = lines(&Shown::Hex(0x29), &FLBAS);
        let expected = "  [6:5] : 0x1\tMost significant 2 bits of Current LBA Format Selected\n  \
                        [4:4] : 0x0\tMetadata Transferred in Separate Contiguous Buffer\n  \
                        [3:0] : 0x9\tLeast significant 4 bits of Current LBA Format Selected\n\n";
        assert_eq!(text, expected);
    }
}
