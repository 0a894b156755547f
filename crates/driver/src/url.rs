//! Where a drive is: `tcp://host:port/nqn?nsid=1`, `linux:///dev/ng0n1`,
//! `pcie://0000:01:00.0?nsid=1`.

use core::fmt;

use zonelab_nvme::fabrics::{DISCOVERY_NQN, UUID_NQN_PREFIX};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::tcp::{DISCOVERY_PORT, IO_PORT};

use crate::pcie::pci::{BadAddress, PciAddress};

/// What a URL of a drive over NVMe/TCP starts with.
pub const SCHEME: &str = "tcp://";

/// What a URL of a drive of this machine starts with.
pub const LINUX_SCHEME: &str = "linux://";

/// What a URL of a controller on PCIe starts with.
pub const PCIE_SCHEME: &str = "pcie://";

/// The name of a host that was given none. Every zonelab without `hostnqn` has
/// the same, so that runs do not differ.
pub const DEFAULT_HOSTNQN: &str =
    "nqn.2014-08.org.nvmexpress:uuid:7a6f6e65-6c61-4b00-8000-686f73740000";

/// The keys that may follow the question mark.
const KEYS: &str = "nsid, hostnqn, hostid, hdgst, ddgst";

/// Why a URL names no drive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It starts with none of [`SCHEME`], [`LINUX_SCHEME`] and [`PCIE_SCHEME`].
    #[error(
        "\"{0}\" does not start with tcp://, linux:// or pcie://; an address is \
         tcp://host:port/nqn?nsid=1, linux:///dev/ng0n1 or pcie://0000:01:00.0?nsid=1"
    )]
    Scheme(String),
    /// It starts with [`LINUX_SCHEME`], and no path of a device node follows.
    #[error(
        "\"{0}\" names no device node; an address is linux:///dev/ng0n1 or linux:///dev/nvme0n1"
    )]
    NoNode(String),
    /// There is no such PCI function.
    #[error(transparent)]
    PciAddress(#[from] BadAddress),
    /// There is no such key for a controller on PCIe.
    #[error("there is no key \"{0}\" behind pcie://: nsid, interrupts and sgls there are")]
    UnknownPcieKey(String),
    /// There is no such key for a drive of this machine.
    #[error("there is no key \"{0}\" behind linux://: poll there is; the node names the namespace")]
    UnknownLinuxKey(String),
    /// There is no host.
    #[error("\"{0}\" names no host; an address is tcp://host:port/nqn?nsid=1")]
    NoHost(String),
    /// The port is none.
    #[error("port \"{0}\" is not valid: 1 to 65535 is")]
    Port(String),
    /// The name of the subsystem or of the host is none.
    #[error(
        "{key} \"{value}\" is no NVMe qualified name: up to 223 bytes that start with \"nqn.\""
    )]
    Nqn {
        /// Which name.
        key: &'static str,
        /// What it is.
        value: String,
    },
    /// A percent sign is not followed by two hexadecimal digits of UTF-8 text.
    #[error("\"{0}\": after % two hexadecimal digits must come, and UTF-8 text must result")]
    Escape(String),
    /// There is no such key.
    #[error("there is no key \"{0}\": {KEYS} there are")]
    UnknownKey(String),
    /// A key is there twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// A value is not valid.
    #[error("{key} is \"{value}\", valid is {valid}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        valid: &'static str,
    },
}

/// A universally unique identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The identifier that `text` spells: 32 hexadecimal digits, with hyphens or
    /// without.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            *byte = hex(digits.next()?)? << 4 | hex(digits.next()?)?;
        }
        digits.next().is_none().then_some(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, byte) in self.0.iter().enumerate() {
            if matches!(position, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpAddress {
    /// Name or address of the machine; an IPv6 address without brackets.
    pub host: String,
    /// TCP port. Without one in the URL: 4420, of a discovery subsystem 8009.
    pub port: u16,
    /// Name of the subsystem; the discovery subsystem if the URL has none.
    pub subnqn: String,
    /// Namespace that commands are for, if the URL names one.
    pub nsid: Option<u32>,
    /// Name of the host: [`DEFAULT_HOSTNQN`] if the URL has none.
    pub hostnqn: String,
    /// Identifier of the host: the UUID in its name if the URL has none.
    pub hostid: Uuid,
    /// Want header digests.
    pub hdgst: bool,
    /// Want data digests.
    pub ddgst: bool,
}

impl TcpAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`] names the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let rest = url
            .strip_prefix(SCHEME)
            .ok_or_else(|| UrlError::Scheme(url.to_owned()))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split_port(authority);
        if host.is_empty() {
            return Err(UrlError::NoHost(url.to_owned()));
        }
        let subnqn = match unescape(path)? {
            path if path.is_empty() => DISCOVERY_NQN.to_owned(),
            path => nqn("the subsystem", path)?,
        };
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| UrlError::Port(port.to_owned()))?,
            None if subnqn == DISCOVERY_NQN => DISCOVERY_PORT,
            None => IO_PORT,
        };
        let mut address = Self {
            host: host.to_owned(),
            port,
            subnqn,
            nsid: None,
            hostnqn: DEFAULT_HOSTNQN.to_owned(),
            hostid: Uuid([0; 16]),
            hdgst: false,
            ddgst: false,
        };
        let hostid = address.read_query(query)?;
        let in_name = address.hostnqn.strip_prefix(UUID_NQN_PREFIX);
        address.hostid = hostid
            .or_else(|| in_name.and_then(Uuid::parse))
            .or_else(|| {
                DEFAULT_HOSTNQN
                    .strip_prefix(UUID_NQN_PREFIX)
                    .and_then(Uuid::parse)
            })
            .unwrap_or(address.hostid);
        Ok(address)
    }

    /// Reads what follows the question mark, and returns the host identifier if
    /// it is there.
    fn read_query(&mut self, query: &str) -> Result<Option<Uuid>, UrlError> {
        let mut hostid = None;
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "1"));
            let value = unescape(value)?;
            if seen.contains(&key) {
                return Err(UrlError::Twice(key.to_owned()));
            }
            seen.push(key);
            match key {
                "nsid" => self.nsid = Some(namespace(value)?),
                "hostnqn" => self.hostnqn = nqn("hostnqn", value)?,
                "hostid" => {
                    let id = Uuid::parse(&value);
                    hostid = Some(id.ok_or_else(|| {
                        invalid("hostid", value, "a UUID: 32 hexadecimal digits")
                    })?);
                }
                "hdgst" => self.hdgst = switch("hdgst", value)?,
                "ddgst" => self.ddgst = switch("ddgst", value)?,
                _ => return Err(UrlError::UnknownKey(key.to_owned())),
            }
        }
        Ok(hostid)
    }

    /// True if it names a discovery subsystem.
    #[must_use]
    pub fn is_discovery(&self) -> bool {
        self.subnqn == DISCOVERY_NQN
    }
}

impl fmt::Display for TcpAddress {
    /// `host:port/nqn`, which a person can tell drives apart by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host, port, subnqn, ..
        } = self;
        match host.contains(':') {
            true => write!(f, "tcp://[{host}]:{port}/{subnqn}"),
            false => write!(f, "tcp://{host}:{port}/{subnqn}"),
        }
    }
}

/// A drive of this machine: `linux:///dev/ng0n1?poll=1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxAddress {
    /// Path of the device node of a namespace.
    pub path: String,
    /// Completions are looked for rather than announced by interrupts.
    pub polled: bool,
}

impl LinuxAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`] names the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let none = || UrlError::NoNode(url.to_owned());
        let rest = url.strip_prefix(LINUX_SCHEME).ok_or_else(none)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = unescape(path)?;
        if path.strip_prefix("/dev/").is_none_or(str::is_empty) {
            return Err(none());
        }
        let mut polled = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "1"));
            if key != "poll" {
                return Err(UrlError::UnknownLinuxKey(key.to_owned()));
            }
            if polled.replace(switch("poll", unescape(value)?)?).is_some() {
                return Err(UrlError::Twice(key.to_owned()));
            }
        }
        Ok(Self {
            path,
            polled: polled.unwrap_or(false),
        })
    }
}

impl fmt::Display for LinuxAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LINUX_SCHEME}{}", self.path)
    }
}

/// A controller on PCIe that this program drives by itself: `pcie://0000:01:00.0?nsid=1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcieAddress {
    /// Its PCI function.
    pub function: PciAddress,
    /// Namespace that commands are for, if the URL names one.
    pub nsid: Option<u32>,
    /// Completions are announced by interrupts rather than looked for.
    pub has_interrupts: bool,
    /// Long transfers have SGL descriptors, if the controller takes them.
    pub has_sgls: bool,
}

impl PcieAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`] names the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let rest = url.strip_prefix(PCIE_SCHEME);
        let rest = rest.ok_or_else(|| UrlError::Scheme(url.to_owned()))?;
        let (function, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut nsid, mut has_interrupts, mut has_sgls) = (None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "1"));
            let value = unescape(value)?;
            let is_twice = match key {
                "nsid" => nsid.replace(namespace(value)?).is_some(),
                "interrupts" => has_interrupts
                    .replace(switch("interrupts", value)?)
                    .is_some(),
                "sgls" => has_sgls.replace(switch("sgls", value)?).is_some(),
                _ => return Err(UrlError::UnknownPcieKey(key.to_owned())),
            };
            if is_twice {
                return Err(UrlError::Twice(key.to_owned()));
            }
        }
        Ok(Self {
            function: function.parse()?,
            nsid,
            has_interrupts: has_interrupts.unwrap_or(false),
            has_sgls: has_sgls.unwrap_or(true),
        })
    }
}

impl fmt::Display for PcieAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PCIE_SCHEME}{}", self.function)
    }
}

/// An address of any transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Over NVMe/TCP.
    Tcp(TcpAddress),
    /// Of this machine.
    Linux(LinuxAddress),
    /// Of this machine, without the kernel's driver.
    Pcie(PcieAddress),
}

impl Address {
    /// True if `text` is meant as an address of a drive.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        [SCHEME, LINUX_SCHEME, PCIE_SCHEME]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    }

    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`] names the part that is wrong.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        if url.starts_with(LINUX_SCHEME) {
            return LinuxAddress::parse(url).map(Self::Linux);
        }
        if url.starts_with(PCIE_SCHEME) {
            return PcieAddress::parse(url).map(Self::Pcie);
        }
        TcpAddress::parse(url).map(Self::Tcp)
    }

    /// The namespace that it names. A node of this machine is that of one namespace.
    #[must_use]
    pub fn nsid(&self) -> Option<u32> {
        match self {
            Self::Tcp(address) => address.nsid,
            Self::Linux(_) => None,
            Self::Pcie(address) => address.nsid,
        }
    }

    /// True if it names a discovery subsystem.
    #[must_use]
    pub fn is_discovery(&self) -> bool {
        matches!(self, Self::Tcp(address) if address.is_discovery())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Linux(address) => address.fmt(f),
            Self::Pcie(address) => address.fmt(f),
        }
    }
}

/// Host and port of `host:port`, `[v6]:port` and either without port.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return match rest {
            "" => (host, None),
            rest => (host, Some(rest.strip_prefix(':').unwrap_or(rest))),
        };
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

fn nqn(key: &'static str, value: String) -> Result<String, UrlError> {
    if value.starts_with("nqn.") && Nqn::new(&value).is_some() {
        return Ok(value);
    }
    Err(UrlError::Nqn { key, value })
}

fn invalid(key: &'static str, value: String, valid: &'static str) -> UrlError {
    UrlError::Value { key, value, valid }
}

fn namespace(value: String) -> Result<u32, UrlError> {
    let digits = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"));
    let nsid = match digits {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    };
    let nsid = nsid.filter(|nsid| (1..u32::MAX).contains(nsid));
    nsid.ok_or_else(|| invalid("nsid", value, "1 to 4294967294"))
}

fn switch(key: &'static str, value: String) -> Result<bool, UrlError> {
    match value.as_str() {
        "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        _ => Err(invalid(key, value, "1 or 0")),
    }
}

/// The text with its `%xx` replaced.
fn unescape(text: &str) -> Result<String, UrlError> {
    let fail = || UrlError::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = rest.next().and_then(hex).ok_or_else(fail)?;
        let low = rest.next().and_then(hex).ok_or_else(fail)?;
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).map_err(|_| fail())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_url() {
        let url = "tcp://192.0.2.1:4421/nqn.2024-01.org.example:zn540?nsid=3&hdgst=1&ddgst\
                   &hostnqn=nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
        let address = TcpAddress::parse(url).unwrap();
        assert_eq!((address.host.as_str(), address.port), ("192.0.2.1", 4421));
        assert_eq!(address.subnqn, "nqn.2024-01.org.example:zn540");
        assert_eq!(
            (address.nsid, address.hdgst, address.ddgst),
            (Some(3), true, true)
        );
        assert_eq!(
            address.hostid.to_string(),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let address = TcpAddress::parse("tcp://localhost").unwrap();
        assert_eq!((address.port, address.nsid), (8009, None));
        assert!(address.is_discovery());
        let address = TcpAddress::parse("tcp://[::1]/nqn.2024-01.org.example:a").unwrap();
        assert_eq!((address.host.as_str(), address.port), ("::1", 4420));
        assert_eq!(
            address.to_string(),
            "tcp://[::1]:4420/nqn.2024-01.org.example:a"
        );
        assert!(address.hostnqn.ends_with(&address.hostid.to_string()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |url: &str| TcpAddress::parse(url).unwrap_err().to_string();
        assert!(message("nvme://a").contains("does not start with tcp://"));
        assert!(message("tcp://:4420/nqn.a").contains("names no host"));
        assert!(message("tcp://a:0/nqn.a").contains("port \"0\""));
        assert!(message("tcp://a:70000").contains("1 to 65535"));
        assert!(message("tcp://a/subsystem").contains("\"nqn.\""));
        assert!(message("tcp://a/nqn.a?nsid=0").contains("1 to 4294967294"));
        assert!(message("tcp://a/nqn.a?nsid=0xffffffff").contains("1 to 4294967294"));
        assert!(message("tcp://a/nqn.a?nsid=0x").contains("1 to 4294967294"));
        let hexadecimal = Address::parse("tcp://a/nqn.a?nsid=0x1F").expect("it is one");
        assert_eq!(hexadecimal.nsid(), Some(31));
        assert!(message("tcp://a/nqn.a?nsid=1&nsid=1").contains("twice"));
        assert!(message("tcp://a/nqn.a?queue=1").contains("hostnqn, hostid"));
        assert!(message("tcp://a/nqn.a?hdgst=maybe").contains("1 or 0"));
        assert!(message("tcp://a/nqn.a?hostid=12").contains("32 hexadecimal"));
        assert!(message("tcp://a/nqn.%zz").contains("after %"));
    }

    #[test]
    fn a_node_of_this_machine() {
        let address = LinuxAddress::parse("linux:///dev/ng0n1?poll=1").unwrap();
        assert_eq!(
            (address.path.as_str(), address.polled),
            ("/dev/ng0n1", true)
        );
        assert_eq!(address.to_string(), "linux:///dev/ng0n1");
        let address = Address::parse("linux:///dev/nvme0n1").unwrap();
        assert!(matches!(
            address,
            Address::Linux(LinuxAddress { polled: false, .. })
        ));
        let message = |url: &str| Address::parse(url).unwrap_err().to_string();
        assert!(message("linux://ng0n1").contains("names no device node"));
        assert!(message("linux:///dev/").contains("names no device node"));
        assert!(message("linux:///dev/ng0n1?nsid=2").contains("the node names the namespace"));
        assert!(message("linux:///dev/ng0n1?poll=perhaps").contains("1 or 0"));
        assert!(message("linux:///dev/ng0n1?poll&poll").contains("twice"));
    }

    #[test]
    fn a_controller_on_pcie() {
        let address = PcieAddress::parse("pcie://0000:01:00.0").unwrap();
        let defaults = (address.nsid, address.has_interrupts, address.has_sgls);
        assert_eq!(defaults, (None, false, true));
        let url = "pcie://0000:01:00.0?nsid=2&interrupts&sgls=0";
        let Ok(Address::Pcie(address)) = Address::parse(url) else {
            panic!("{url} is one");
        };
        let said = (address.nsid, address.has_interrupts, address.has_sgls);
        assert_eq!(said, (Some(2), true, false));
        assert_eq!(address.to_string(), "pcie://0000:01:00.0");
        let message = |url: &str| Address::parse(url).unwrap_err().to_string();
        assert!(message("pcie://0000:01:00.0?poll=1").contains("nsid, interrupts and sgls"));
        assert!(message("pcie://0000:01:00.0?interrupts=maybe").contains("1 or 0"));
        assert!(message("pcie://0000:01:00.0?sgls=1&sgls=0").contains("twice"));
        assert!(message("pcie://0000:01:00.0?nsid=0").contains("nsid"));
    }
}
