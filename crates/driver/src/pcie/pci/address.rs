//! Addresses of PCI functions.

use core::fmt;
use core::str::FromStr;

/// The address of a PCI function as Linux writes it: `0000:01:00.0`, that is domain, bus,
/// device and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// A text is no address of a PCI function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no PCI address: it is written as in 0000:01:00.0, domain, bus, device (to 1f) and \
     function (to 7), and the domain 0000 can be left out"
)]
pub struct BadAddress(pub String);

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        Self::parse(text).ok_or_else(|| BadAddress(text.to_owned()))
    }
}

impl PciAddress {
    fn parse(text: &str) -> Option<Self> {
        let (front, function) = text.split_once('.')?;
        let mut fields = front.rsplit(':');
        let (device, bus) = (fields.next()?, fields.next()?);
        let domain = fields.next().unwrap_or("0000");
        if fields.next().is_some() {
            return None;
        }
        // Domains that a hypervisor adds have more than four digits.
        let address = Self {
            domain: hex(domain, 4..=8)?,
            bus: u8::try_from(hex(bus, 2..=2)?).ok()?,
            device: u8::try_from(hex(device, 2..=2)?).ok()?,
            function: u8::try_from(hex(function, 1..=1)?).ok()?,
        };
        (address.device < 32 && address.function < 8).then_some(address)
    }
}

/// A number of so many hexadecimal digits.
fn hex(text: &str, digits: core::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && digits.contains(&text.len()))
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_linux_writes_them() {
        for (text, shown) in [
            ("0000:01:00.0", "0000:01:00.0"),
            ("c1:1f.7", "0000:c1:1f.7"),
            ("10000:E1:00.1", "10000:e1:00.1"),
        ] {
            assert_eq!(
                text.parse::<PciAddress>().map(|at| at.to_string()),
                Ok(shown.to_owned())
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "1:00.0",
            "01:00",
            "01:20.0",
            "01:00.8",
            "0000:01:00.00",
            "0:0000:01:00.0",
            "+000:01:00.0",
            "0000:01:00.0 ",
            "../../x",
        ] {
            assert_eq!(text.parse::<PciAddress>(), Err(BadAddress(text.to_owned())));
        }
    }
}
