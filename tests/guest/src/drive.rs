//! A zoned namespace as the guest sees it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Guest;

/// Zones of the first report that are read at most.
const MAX_ZONES: u64 = 1 << 16;

/// State of a zone, by the codes of NVM Express (ZNS, zone descriptor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is written.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by a command.
    ExplicitlyOpen,
    /// Active and not open.
    Closed,
    /// Cannot be written any more.
    ReadOnly,
    /// Written or finished.
    Full,
    /// Neither readable nor writable.
    Offline,
}

impl State {
    /// The state by the name that nvme-cli prints.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "EMPTY" => Self::Empty,
            "IMP_OPENED" => Self::ImplicitlyOpen,
            "EXP_OPENED" => Self::ExplicitlyOpen,
            "CLOSED" => Self::Closed,
            "READONLY" => Self::ReadOnly,
            "FULL" => Self::Full,
            "OFFLINE" => Self::Offline,
            _ => return None,
        })
    }

    /// The code that `blkzone` and `zbd` print, which is that of the block layer.
    pub fn block_layer_code(self) -> u32 {
        match self {
            Self::Empty => 0x1,
            Self::ImplicitlyOpen => 0x2,
            Self::ExplicitlyOpen => 0x3,
            Self::Closed => 0x4,
            Self::ReadOnly => 0xd,
            Self::Full => 0xe,
            Self::Offline => 0xf,
        }
    }
}

/// A zone, by `nvme zns report-zones`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its first block.
    pub start_lba: u64,
    /// Where the next write goes. Means nothing in a full zone.
    pub write_pointer_lba: u64,
    /// Blocks that can be written.
    pub capacity_lbas: u64,
    /// Its state.
    pub state: State,
}

/// A status that a command ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Status code type and status code, as in `0x1bc`.
    pub code: u16,
    /// Whether the command must not be tried again.
    pub do_not_retry: bool,
}

impl Status {
    /// A field of the command is wrong.
    pub const INVALID_FIELD: u16 = 0x002;
    /// The blocks are of two zones.
    pub const ZONE_BOUNDARY: u16 = 0x1b8;
    /// The zone is full.
    pub const ZONE_FULL: u16 = 0x1b9;
    /// The write is not at the write pointer.
    pub const ZONE_INVALID_WRITE: u16 = 0x1bc;
    /// One more zone would be active.
    pub const TOO_MANY_ACTIVE: u16 = 0x1bd;
    /// One more zone would be open.
    pub const TOO_MANY_OPEN: u16 = 0x1be;
    /// The state of the zone does not allow it.
    pub const INVALID_TRANSITION: u16 = 0x1bf;

    /// The status in what nvme-cli printed: `NVMe status: ... (0x41bc)`.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.contains("NVMe status:"))?;
        let (_, rest) = line.rsplit_once("(0x")?;
        let (digits, _) = rest.split_once(')')?;
        let field = u16::from_str_radix(digits, 16).ok()?;
        Some(Self {
            code: field & 0x7ff,
            do_not_retry: field & 0x4000 != 0,
        })
    }
}

/// A zoned namespace in the guest.
#[derive(Clone, Debug)]
pub struct Drive {
    name: String,
    conventional: Option<String>,
    /// Bytes of a block.
    pub lba_bytes: u64,
    /// Blocks from one zone to the next.
    pub zone_lbas: u64,
    /// Number of zones.
    pub zones: u64,
    /// Most open zones, if there is a limit.
    pub max_open: Option<u32>,
    /// Most active zones, if there is a limit.
    pub max_active: Option<u32>,
}

impl Drive {
    /// Namespace `id` of a controller, as in `nvme0`; and a conventional one
    /// of the same controller, for file systems that need one.
    ///
    /// # Errors
    ///
    /// It is not there, or not zoned.
    pub fn open(
        guest: &mut Guest,
        controller: &str,
        id: u32,
        conventional: Option<u32>,
    ) -> Result<Self> {
        let name = namespace(guest, controller, id)?;
        let conventional = match conventional {
            Some(id) => Some(namespace(guest, controller, id)?),
            None => None,
        };
        let device = format!("/dev/{name}");
        let nvm = json(guest, &format!("nvme id-ns {device} -o json"))?;
        let zoned = json(guest, &format!("nvme zns id-ns {device} -o json"))?;
        let format = nvm["flbas"].as_u64().context("no format")? & 0xf;
        let format = usize::try_from(format)?;
        let shift = nvm["lbafs"][format]["ds"]
            .as_u64()
            .context("no block size")?;
        let zone_lbas = zoned["lbafe"][format]["zsze"].as_u64();
        let zone_lbas = zone_lbas.filter(|&lbas| lbas > 0).context("no zone size")?;
        let blocks = nvm["nsze"].as_u64().context("no size")?;
        let limit = |name: &str| -> Result<Option<u32>> {
            let last = zoned[name].as_u64().with_context(|| format!("no {name}"))?;
            // Zero-based, and all ones is none. nvme-cli prints that as it is.
            Ok(u32::try_from(last)?.checked_add(1))
        };
        Ok(Self {
            name,
            conventional,
            lba_bytes: 1 << shift,
            zone_lbas,
            zones: blocks / zone_lbas,
            max_open: limit("mor")?,
            max_active: limit("mar")?,
        })
    }

    /// The same with the conventional namespace `id` of a controller.
    ///
    /// # Errors
    ///
    /// It is not there.
    pub fn beside(mut self, guest: &mut Guest, controller: &str, id: u32) -> Result<Self> {
        self.conventional = Some(namespace(guest, controller, id)?);
        Ok(self)
    }

    /// Its block device.
    pub fn block(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// Its character device, which passes commands through.
    pub fn generic(&self) -> String {
        format!("/dev/{}", self.name.replacen("nvme", "ng", 1))
    }

    /// The block device of the conventional namespace.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn conventional(&self) -> Result<String> {
        let name = self
            .conventional
            .as_ref()
            .context("no conventional namespace")?;
        Ok(format!("/dev/{name}"))
    }

    /// A limit of the block layer: a file of the queue's directory.
    ///
    /// # Errors
    ///
    /// There is no such file.
    pub fn queue(&self, guest: &mut Guest, file: &str) -> Result<String> {
        let text = guest.ok(&format!("cat /sys/block/{}/queue/{file}", self.name))?;
        Ok(text.trim().to_owned())
    }

    /// First block of a zone.
    pub fn start_lba(&self, zone: u64) -> u64 {
        zone * self.zone_lbas
    }

    /// First byte of a zone.
    pub fn start_byte(&self, zone: u64) -> u64 {
        self.start_lba(zone) * self.lba_bytes
    }

    /// First sector of a zone, and sectors of a zone: what `blkzone` counts in.
    pub fn sectors(&self, zone: u64) -> (u64, u64) {
        let per_block = self.lba_bytes / 512;
        (self.start_lba(zone) * per_block, self.zone_lbas * per_block)
    }

    /// Makes all zones empty through the block layer, which then knows it.
    ///
    /// # Errors
    ///
    /// The command fails.
    pub fn reset_all(&self, guest: &mut Guest) -> Result<()> {
        guest.ok(&format!("blkzone reset {}", self.block()))?;
        Ok(())
    }

    /// `count` zones from `first` on, as the drive reports them.
    ///
    /// # Errors
    ///
    /// The report fails or is not one.
    pub fn report(&self, guest: &mut Guest, first: u64, count: u64) -> Result<Vec<Zone>> {
        let slba = self.start_lba(first);
        let count = count.min(MAX_ZONES);
        let device = self.generic();
        let report = json(
            guest,
            &format!("nvme zns report-zones {device} -s {slba} -d {count} -o json"),
        )?;
        let list = report["zone_list"].as_array().context("no list of zones")?;
        list.iter().map(zone).collect()
    }

    /// One zone, as the drive reports it.
    ///
    /// # Errors
    ///
    /// As for [`Self::report`].
    pub fn zone(&self, guest: &mut Guest, index: u64) -> Result<Zone> {
        let zones = self.report(guest, index, 1)?;
        zones.first().copied().context("the report is empty")
    }

    /// Checks the state of a zone.
    ///
    /// # Errors
    ///
    /// It is another.
    pub fn expect(&self, guest: &mut Guest, index: u64, state: State) -> Result<Zone> {
        let zone = self.zone(guest, index)?;
        ensure!(
            zone.state == state,
            "zone {index} is not {state:?}: {zone:?}"
        );
        Ok(zone)
    }

    /// Sends a zone management action by its name in nvme-cli, to one zone.
    ///
    /// # Errors
    ///
    /// It fails.
    pub fn manage(&self, guest: &mut Guest, action: &str, zone: u64) -> Result<()> {
        guest.ok(&self.action(action, zone))?;
        Ok(())
    }

    /// The same to all zones that it concerns.
    ///
    /// # Errors
    ///
    /// It fails.
    pub fn manage_all(&self, guest: &mut Guest, action: &str) -> Result<()> {
        guest.ok(&format!("nvme zns {action} {} -a", self.generic()))?;
        Ok(())
    }

    /// Sends an action that the drive has to refuse with `code`.
    ///
    /// # Errors
    ///
    /// It does not, or with another status.
    pub fn refuses(&self, guest: &mut Guest, action: &str, zone: u64, code: u16) -> Result<()> {
        refused(guest, &self.action(action, zone), code)
    }

    /// The command that writes the first `blocks` blocks of a file, past the
    /// block layer.
    pub fn write(&self, lba: u64, blocks: u64, file: &str) -> String {
        self.transfer("write", lba, blocks, file)
    }

    /// The script that reads blocks to a file, past the block layer.
    pub fn read(&self, lba: u64, blocks: u64, file: &str) -> String {
        // nvme-cli leaves the rest of a file that was longer.
        let read = self.transfer("read", lba, blocks, file);
        format!("rm -f {file} && {read}")
    }

    /// The command that appends the first `blocks` blocks of a file to a zone.
    pub fn append(&self, zone_start_lba: u64, blocks: u64, file: &str) -> String {
        let bytes = blocks * self.lba_bytes;
        let device = self.generic();
        format!("nvme zns zone-append {device} -s {zone_start_lba} -z {bytes} -d {file}")
    }

    /// The script that makes a file of random blocks.
    pub fn random(&self, blocks: u64, file: &str) -> String {
        format!("head -c {} /dev/urandom > {file}", blocks * self.lba_bytes)
    }

    fn action(&self, action: &str, zone: u64) -> String {
        let slba = self.start_lba(zone);
        format!("nvme zns {action} {} -s {slba}", self.generic())
    }

    fn transfer(&self, name: &str, lba: u64, blocks: u64, file: &str) -> String {
        let bytes = blocks * self.lba_bytes;
        // Zero-based.
        let count = blocks.saturating_sub(1);
        let device = self.generic();
        format!("nvme {name} {device} -s {lba} -c {count} -z {bytes} -d {file}")
    }
}

/// Name of a namespace's block device, once it is there. Its number is not that
/// of the namespace: the kernel counts in the order in which it finds them.
///
/// # Errors
///
/// It does not appear.
pub fn namespace(guest: &mut Guest, controller: &str, id: u32) -> Result<String> {
    let script = format!(
        "for look in $(seq 200); do
            for path in /sys/block/{controller}n*; do
                # What matches nothing stays a pattern, and must not match a moment later.
                [ -e \"$path/nsid\" ] || continue
                name=${{path##*/}}
                [ \"$(cat \"$path/nsid\" 2> /dev/null)\" = {id} ] && [ -b /dev/$name ] && \
                    [ -c /dev/ng${{name#nvme}} ] && echo $name && exit
            done
            sleep 0.1
        done
        ls /sys/block
        exit 1"
    );
    let text = guest.ok(&script)?;
    Ok(text.trim().to_owned())
}

/// Runs a script that nvme-cli has to end with a status that says not to try again.
///
/// # Errors
///
/// It ends otherwise.
pub fn refused(guest: &mut Guest, script: &str, code: u16) -> Result<()> {
    let text = guest.fails(script)?;
    let status = Status::parse(&text);
    let expected = Status {
        code,
        do_not_retry: true,
    };
    ensure!(
        status == Some(expected),
        "`{script}` ends with {status:x?} instead of {expected:x?}:\n{text}"
    );
    Ok(())
}

/// The JSON that a script prints.
fn json(guest: &mut Guest, script: &str) -> Result<Value> {
    let text = guest.ok(script)?;
    serde_json::from_str(&text).with_context(|| format!("`{script}` printed\n{text}"))
}

fn zone(value: &Value) -> Result<Zone> {
    let number = |key: &str| value[key].as_u64();
    let zone = || {
        Some(Zone {
            start_lba: number("slba")?,
            write_pointer_lba: number("wp")?,
            capacity_lbas: number("cap")?,
            state: State::parse(value["state"].as_str()?)?,
        })
    };
    zone().with_context(|| format!("not a zone: {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_the_words_of_nvme_cli() {
        let text = "NVMe status: Zone Invalid Write: The write (at 5) failed(0x41bc)\n";
        let expected = Status {
            code: Status::ZONE_INVALID_WRITE,
            do_not_retry: true,
        };
        assert_eq!(Status::parse(text), Some(expected));
        let text = "NVMe status: Namespace Not Ready(0x82)\n";
        assert_eq!(
            Status::parse(text).map(|status| status.do_not_retry),
            Some(false)
        );
        for other in [
            "write: Success",
            "write: Input/output error",
            "NVMe status: (0x",
            "",
        ] {
            assert_eq!(Status::parse(other), None);
        }
    }

    #[test]
    fn a_zone_is_read_from_a_report() {
        let value = serde_json::json!({ "slba": 4096, "wp": 4098, "cap": 4000, "state": "CLOSED" });
        let zone = zone(&value).unwrap();
        assert_eq!((zone.start_lba, zone.write_pointer_lba), (4096, 4098));
        assert_eq!((zone.capacity_lbas, zone.state), (4000, State::Closed));
        assert!(
            super::zone(&serde_json::json!({ "slba": 1, "wp": 1, "cap": 1, "state": "?" }))
                .is_err()
        );
    }
}
