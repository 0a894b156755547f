//! The one place where a namespace of a device is chosen and opened, and where what a verb
//! destroys in it is named.

use std::ops::Range;

use zonelab_config::units::fmt_size;
use zonelab_device::{DeviceInfo, NamespaceId, NamespaceInfo, NoNamespace};
use zonelab_driver::{AnyController, AnyOptions, Controller as _};
use zonelab_lab::device::{ReportedZone, report_zones};
use zonelab_nvme::zns::ZoneState;

use crate::devices;
use crate::exit::{Exit, Failure};
use crate::real_drive::{Drive, RealDrive, ranges};

/// The namespace of an emulated drive: the one that is named, or the only one.
///
/// # Errors
/// It is not there, or there are several: those that there are.
pub(crate) fn of_emulated(
    device: &str,
    info: &DeviceInfo,
    named: Option<NamespaceId>,
) -> Result<NamespaceId, Failure> {
    let chosen = info.choose(named);
    chosen.map_err(|why| refusal(device, info, &why, |_| None))
}

/// A namespace of a real drive that is open. Its queues take commands for no other, so that
/// what is looked at before is what is written.
pub(crate) struct OpenNamespace {
    pub(crate) drive: RealDrive,
    pub(crate) nsid: NamespaceId,
    /// What the drive was called.
    device: String,
}

impl OpenNamespace {
    /// Connects to a drive, and opens the namespace that its address names, or the only one.
    ///
    /// # Errors
    /// Nobody is there, or not what it should be; or there is no such namespace, or several
    /// and none is named: those that there are, and what of them is in use.
    pub(crate) fn open(device: &str, options: &AnyOptions) -> Result<Self, Failure> {
        let controller = AnyController::connect(options.clone()).map_err(devices::gone)?;
        Self::of(device, controller)
    }

    /// Opens the namespace that the address of a controller names, or the only one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of(device: &str, mut controller: AnyController) -> Result<Self, Failure> {
        let opened = controller.open_namespace();
        let mut drive = RealDrive(Drive::new(controller).map_err(devices::gone)?);
        match opened {
            Ok(nsid) => Ok(Self {
                drive,
                nsid,
                device: device.to_owned(),
            }),
            Err(why) => {
                let info = drive.0.info().as_ref().clone();
                let used = |nsid| used(&mut drive, &info, nsid);
                let refusal = refusal(device, &info, &why, used);
                if let Ok(controller) = drive.0.close() {
                    // What is wrong is known already.
                    let _left = controller.disconnect();
                }
                Err(refusal)
            }
        }
    }

    /// What is known of it.
    pub(crate) fn info(&self) -> NamespaceInfo {
        // It was there when it was opened.
        let info = self.drive.0.info().namespace(self.nsid);
        info.cloned().unwrap_or(NamespaceInfo {
            placements: None,
            lba_bytes: 512,
            size_lbas: 0,
            zoned: None,
            copy: None,
        })
    }

    /// What its zones hold; none if it has none.
    ///
    /// # Errors
    /// The drive does not report them, or is gone.
    pub(crate) fn zones(&mut self) -> Result<Vec<ReportedZone>, Failure> {
        match self.info().zoned {
            None => Ok(Vec::new()),
            Some(_) => report_zones(&mut self.drive, self.nsid).map_err(|what| {
                Failure::new(Exit::Device, anyhow::anyhow!("{}: {what}", self.device))
            }),
        }
    }
}

/// Why no namespace is opened, with those that there are; `used` says what of one is in use.
pub(crate) fn refusal(
    device: &str,
    info: &DeviceInfo,
    why: &NoNamespace,
    mut used: impl FnMut(NamespaceId) -> Option<String>,
) -> Failure {
    let said = match why {
        NoNamespace::Several { there } => format!(
            "{device}: it has {} namespaces: name one of them, as in nsid={}",
            there.len(),
            there.first().map_or(1, |nsid| nsid.0)
        ),
        NoNamespace::NoSuch { nsid, .. } => {
            format!("{device}: there is no namespace {}; there is", nsid.0)
        }
        NoNamespace::None => format!("{device}: it has no namespace"),
    };
    let line = |(nsid, of): (NamespaceId, &NamespaceInfo)| {
        let used = used(nsid).map_or_else(String::new, |used| format!("; {used}"));
        format!("\n  nsid={}: {}{used}", nsid.0, described(of))
    };
    let lines: String = info.present().map(line).collect();
    Failure::usage(said + &lines)
}

/// Kind and size of a namespace.
fn described(of: &NamespaceInfo) -> String {
    let bytes = |lbas: u64| fmt_size(lbas.saturating_mul(of.lba_bytes.into()));
    match of.zoned {
        None => format!("conventional, {}", bytes(of.size_lbas)),
        Some(zoned) => {
            let (zones, capacity) = (zoned.zones, zoned.zone_capacity_lbas);
            let all = bytes(capacity.saturating_mul(zones.into()));
            format!("zoned, {zones} zones of {}, {all}", bytes(capacity))
        }
    }
}

/// What of a namespace is in use, as far as the drive says it.
fn used(drive: &mut RealDrive, info: &DeviceInfo, nsid: NamespaceId) -> Option<String> {
    let namespace = info.namespace(nsid)?;
    if namespace.zoned.is_none() {
        let identity = drive.0.controller().identity().namespace(nsid.0)?;
        let lbas = identity.nvm.nuse.get();
        let bytes = lbas.saturating_mul(namespace.lba_bytes.into());
        return Some(format!("{} in use", fmt_size(bytes)));
    }
    let zones = report_zones(drive, nsid).ok()?;
    match Loss::of_zones(nsid, namespace, &zones, 0..u32::MAX) {
        None => Some("all of them empty".to_owned()),
        Some(loss) => Some(loss.amount()),
    }
}

/// What a verb is about to destroy in the namespace that it has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    nsid: NamespaceId,
    what: Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lost {
    /// Zones that are not empty, of so many, and what is written in them.
    Zones {
        numbers: Vec<u32>,
        of: u32,
        written_bytes: u64,
    },
    /// Bytes of a namespace without zones, of which nobody can say whether they are in use.
    Bytes(Range<u64>),
}

impl Loss {
    /// Of the zones `used` those that are not empty; `None`: all are.
    pub(crate) fn of_zones(
        nsid: NamespaceId,
        namespace: &NamespaceInfo,
        reported: &[ReportedZone],
        used: impl IntoIterator<Item = u32>,
    ) -> Option<Self> {
        let mut lbas = 0_u64;
        let mut numbers = Vec::new();
        for zone in used {
            let Some(of) = reported.get(zone as usize) else {
                break;
            };
            if of.state != ZoneState::EMPTY {
                lbas = lbas.saturating_add(of.written_lbas);
                numbers.push(zone);
            }
        }
        let of = reported.len() as u32;
        let written_bytes = lbas.saturating_mul(namespace.lba_bytes.into());
        (!numbers.is_empty()).then_some(Self {
            nsid,
            what: Lost::Zones {
                numbers,
                of,
                written_bytes,
            },
        })
    }

    /// Of a namespace without zones.
    pub(crate) const fn of_bytes(nsid: NamespaceId, bytes: Range<u64>) -> Self {
        Self {
            nsid,
            what: Lost::Bytes(bytes),
        }
    }

    /// How much it is.
    fn amount(&self) -> String {
        match &self.what {
            Lost::Zones {
                numbers,
                of,
                written_bytes,
            } => format!(
                "{} of {of} zones are not empty, {} written",
                numbers.len(),
                fmt_size(*written_bytes)
            ),
            Lost::Bytes(bytes) => fmt_size(bytes.end - bytes.start),
        }
    }

    /// Which part of which namespace.
    fn place(&self) -> String {
        let nsid = self.nsid.0;
        match &self.what {
            Lost::Zones { numbers, .. } => {
                let zones = if numbers.len() == 1 { "zone" } else { "zones" };
                format!("{zones} {} of namespace {nsid}", ranges(numbers))
            }
            Lost::Bytes(bytes) => {
                let Range { start, end } = bytes;
                format!(
                    "bytes {start} to {end} of namespace {nsid}, of which nobody can say whether \
                     they are in use"
                )
            }
        }
    }
}

/// Data are destroyed only if the user says so (`--overwrite`), and it is said which.
///
/// # Errors
/// Something would be lost, and the user has not said that it may.
pub(crate) fn may_lose(
    device: &str,
    losses: impl IntoIterator<Item = Loss>,
    overwrite: bool,
) -> Result<(), Failure> {
    for loss in losses {
        let (place, amount) = (loss.place(), loss.amount());
        if !overwrite {
            return Err(Failure::usage(format!(
                "{device}: this resets or writes {place}: {amount}; say --overwrite if what they \
                 hold may be lost"
            )));
        }
        tell!("zonelab: {device}: what {place} hold will be lost: {amount}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use zonelab_device::ZonedInfo;

    use super::*;

    fn namespace() -> NamespaceInfo {
        NamespaceInfo {
            placements: None,
            lba_bytes: 4096,
            size_lbas: 1024,
            zoned: Some(ZonedInfo {
                zones: 4,
                zone_size_lbas: 256,
                zone_capacity_lbas: 128,
                max_active: None,
                max_open: None,
                read_across_zones: false,
                descriptor_extension_bytes: 0,
                zrwa: None,
            }),
            copy: None,
        }
    }

    fn zone(state: ZoneState, written_lbas: u64) -> ReportedZone {
        ReportedZone {
            state,
            written_lbas,
        }
    }

    #[test]
    fn what_is_lost_is_named() {
        let reported = [
            zone(ZoneState::FULL, 128),
            zone(ZoneState::EMPTY, 0),
            zone(ZoneState::CLOSED, 2),
            zone(ZoneState::FULL, 128),
        ];
        let nsid = NamespaceId(2);
        let of = |used: Range<u32>| Loss::of_zones(nsid, &namespace(), &reported, used);
        assert_eq!(of(1..2), None);
        let loss = of(0..3);
        let refused = may_lose("drive", loss.clone(), false).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert_eq!(
            refused.error.to_string(),
            "drive: this resets or writes zones 0, 2 of namespace 2: 2 of 4 zones are not empty, \
             520KiB written; say --overwrite if what they hold may be lost"
        );
        assert!(may_lose("drive", loss, true).is_ok());
        assert!(may_lose("drive", None, false).is_ok());
        let bytes = may_lose("drive", [Loss::of_bytes(nsid, 0..8192)], false).unwrap_err();
        let text = bytes.error.to_string();
        assert!(text.contains("bytes 0 to 8192 of namespace 2"), "{text}");
    }

    #[test]
    fn a_refusal_lists_the_namespaces() {
        let conventional = NamespaceInfo {
            placements: None,
            zoned: None,
            ..namespace()
        };
        let info = DeviceInfo {
            model: String::new(),
            namespaces: vec![namespace(), conventional],
            max_transfer_bytes: u32::MAX,
            max_append_bytes: u32::MAX,
            has_volatile_cache: false,
        };
        let of = |named| of_emulated("drive", &info, named).map_err(|f| f.error.to_string());
        let list = "\n  nsid=1: zoned, 4 zones of 512KiB, 2MiB\n  nsid=2: conventional, 4MiB";
        let several = "drive: it has 2 namespaces: name one of them, as in nsid=1";
        assert_eq!(of(None), Err(format!("{several}{list}")));
        let none = "drive: there is no namespace 3; there is";
        assert_eq!(of(Some(NamespaceId(3))), Err(format!("{none}{list}")));
        assert_eq!(of(Some(NamespaceId(2))), Ok(NamespaceId(2)));
    }
}
