//! Reservations as the bytes that outlive a loss of power.
//!
//! ```text
//! version       1 byte
//! namespaces    2 bytes: how many follow
//!   NSID        4 bytes
//!   generation  4 bytes
//!   type        1 byte; 0: no reservation
//!   holder      2 bytes: place among the registrants
//!   registrants 2 bytes: how many follow
//!     width     1 byte: of the host identifier in bytes, 8 or 16
//!     host      16 bytes
//!     key       8 bytes
//! ```
//!
//! Integers are little-endian. Only namespaces whose reservations outlive a loss of
//! power are there.

use zonelab_nvme::reservation::ReservationType;

use super::{Held, HostId, REGISTRANTS_OF_DRIVE, Registrant, Reservations};

const VERSION: u8 = 1;
const NAMESPACE_BYTES: usize = 13;
const REGISTRANT_BYTES: usize = 25;
/// Most namespaces that have a record.
pub const NAMESPACES_MAX: usize = 64;

/// Most bytes that [`write()`] makes for as many namespaces as can have a record.
pub const RECORD_BYTES_MAX: usize =
    3 + NAMESPACES_MAX * NAMESPACE_BYTES + REGISTRANTS_OF_DRIVE * REGISTRANT_BYTES;

/// Bytes are not those of reservations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was kept of reservations holds something impossible: {what}")]
pub struct Impossible {
    /// What.
    pub what: &'static str,
}

/// The bytes of the reservations of namespaces, by identifier.
#[must_use]
pub fn write<'a>(all: impl Iterator<Item = (u32, &'a Reservations)>) -> Vec<u8> {
    let mut out = vec![VERSION, 0, 0];
    let mut count = 0_u16;
    for (nsid, of) in all.filter(|(_, of)| of.is_persistent) {
        count += 1;
        out.extend_from_slice(&nsid.to_le_bytes());
        out.extend_from_slice(&of.generation.to_le_bytes());
        out.push(of.rtype().0);
        let holder = of.held.and_then(|held| of.place(held.by)).unwrap_or(0);
        // Fit: registrants are bounded far below.
        out.extend_from_slice(&(holder as u16).to_le_bytes());
        out.extend_from_slice(&(of.registrants.len() as u16).to_le_bytes());
        for registrant in &of.registrants {
            let (width, host) = match registrant.host {
                HostId::Short(id) => (8, u128::from(id).to_le_bytes()),
                HostId::Extended(id) => (16, id),
            };
            out.push(width);
            out.extend_from_slice(&host);
            out.extend_from_slice(&registrant.key.to_le_bytes());
        }
    }
    out[1..3].copy_from_slice(&count.to_le_bytes());
    out
}

/// Reservations that were kept, by namespace identifier. Bytes that are empty or zeros are of
/// none.
///
/// # Errors
/// [`Impossible`].
pub fn read(bytes: &[u8]) -> Result<Vec<(u32, Reservations)>, Impossible> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Vec::new());
    }
    let mut reader = Reader(bytes);
    let [version] = reader.take()?;
    if version != VERSION {
        return Err(impossible("their version"));
    }
    let count = u16::from_le_bytes(reader.take()?);
    let mut all: Vec<(u32, Reservations)> = Vec::new();
    let mut registrants = 0;
    for _ in 0..count {
        let (nsid, of) = reader.namespace()?;
        registrants += of.registrants.len();
        if nsid == 0 || all.iter().any(|(other, _)| *other >= nsid) {
            return Err(impossible("the order of namespaces"));
        }
        if all.len() == NAMESPACES_MAX || registrants > REGISTRANTS_OF_DRIVE {
            return Err(impossible("how many there are"));
        }
        all.push((nsid, of));
    }
    match reader.0 {
        [] => Ok(all),
        _ => Err(impossible("their length")),
    }
}

const fn impossible(what: &'static str) -> Impossible {
    Impossible { what }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Impossible> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(impossible("their end"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn namespace(&mut self) -> Result<(u32, Reservations), Impossible> {
        let nsid = u32::from_le_bytes(self.take()?);
        let generation = u32::from_le_bytes(self.take()?);
        let rtype = ReservationType(u8::from_le_bytes(self.take()?));
        let holder = usize::from(u16::from_le_bytes(self.take()?));
        let count = usize::from(u16::from_le_bytes(self.take()?));
        let mut of = Reservations::new(count, true);
        for _ in 0..count {
            let [width] = self.take()?;
            let host = self.take::<16>()?;
            let host = match width {
                8 if host[8..] == [0; 8] => HostId::Short(u128::from_le_bytes(host) as u64),
                16 => HostId::Extended(host),
                _ => return Err(impossible("a host identifier")),
            };
            let key = u64::from_le_bytes(self.take()?);
            if key == 0 || of.place(host).is_some() {
                return Err(impossible("a registrant"));
            }
            of.registrants.push(Registrant { host, key });
        }
        of.generation = generation;
        of.is_persistent = true;
        if rtype != ReservationType::NONE {
            let by = of.registrants.get(holder).ok_or(impossible("a holder"))?;
            let by = by.host;
            rtype.name().ok_or(impossible("a type"))?;
            of.held = Some(Held { rtype, by });
        }
        Ok((nsid, of))
    }
}
