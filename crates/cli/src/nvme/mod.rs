//! `zonelab nvme`.

mod bind;
mod discover;
mod fdp;
mod feature;
pub(crate) mod fields;
mod gen_key;
mod human;
mod identify;
mod io;
mod length;
mod lists;
mod log;
mod media;
mod raw;
mod reservations;
mod zone_report;
mod zones;

use zonelab_device::{NamespaceId, NoNamespace};
use zonelab_driver::url::Address;
use zonelab_driver::{AnyController, AnyQueue, Controller as _, DriverError, IoQueue as _, Reply};
use zonelab_nvme::Status;

use crate::console;
use crate::devices::HostArgs;
use crate::exit::{Exit, Failure};
use crate::namespace;

/// Options of `nvme`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    device: DeviceArgs,
}

const AFTER_HELP: &str = "\
A drive is tcp://HOST:PORT/NQN?nsid=1, with any of nsid, hostnqn, hostid, hdgst=1,
ddgst=1 behind the question mark; without NQN it is the discovery subsystem. Or it is
linux:///dev/ng0n1, a namespace of this machine that nobody else uses, or
pcie://0000:01:00.0?nsid=1, a controller that `zonelab nvme bind` has taken from the kernel.

Exit codes: 0 done, 2 usage, 3 input file, 4 no connection or in use, 5 the drive failed the
command, or violated the protocol.";

/// Options of all commands.
#[derive(clap::Args)]
struct DeviceArgs {
    /// The drive: tcp://HOST:PORT/NQN?nsid=1, linux:///dev/ng0n1 or pcie://0000:01:00.0?nsid=1
    #[arg(long, short = 'd', value_name = "URL", global = true)]
    device: Option<String>,
    /// Namespace, instead of the one in the URL; one of the two has to name it if the drive
    /// has several. 0xffffffff is all of them, for flush, get-log and passthrough
    #[arg(long, short = 'n', value_name = "NSID", global = true, value_parser = number32)]
    namespace_id: Option<u32>,
    #[command(flatten)]
    host: HostArgs,
    /// As JSON: the same as -o json
    #[arg(long, global = true)]
    json: bool,
    /// How results are shown
    #[arg(long, short = 'o', value_enum, global = true, value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
}

impl DeviceArgs {
    fn is_json(&self) -> bool {
        self.json || self.output_format == Some(OutputFormat::Json)
    }
}

/// Forms of results.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// For people
    Normal,
    /// JSON
    Json,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The subsystems that a discovery controller knows
    Discover,
    /// The namespaces of the drive
    List,
    /// The namespace identifiers that the controller has
    ListNs(lists::NamespaceArgs),
    /// The subsystem of the drive, and the path to it
    ListSubsys,
    /// Identify Controller
    IdCtrl,
    /// Identify Namespace
    IdNs(identify::NamespaceArgs),
    /// Zones: what zoned namespaces have besides
    #[command(subcommand)]
    Zns(zones::Command),
    /// Flexible data placement: reclaim units, their handles and events
    #[command(subcommand)]
    Fdp(fdp::Command),
    /// Read blocks
    Read(io::ReadArgs),
    /// Write blocks
    Write(io::WriteArgs),
    /// Write zeroes without sending them
    WriteZeroes(media::ZeroesArgs),
    /// Compare blocks with a file
    Compare(media::CompareArgs),
    /// See whether blocks can be read
    Verify(media::BlockArgs),
    /// Copy ranges of blocks inside the drive
    Copy(media::CopyArgs),
    /// Dataset management: what is going to happen to ranges of blocks
    Dsm(media::DsmArgs),
    /// Make written data durable
    Flush,
    /// Read any log page
    GetLog(log::GetArgs),
    /// Health
    SmartLog,
    /// The commands that failed last
    ErrorLog(log::ErrorArgs),
    /// Read a feature
    GetFeature(feature::GetArgs),
    /// Set a feature
    SetFeature(feature::SetArgs),
    /// Register, unregister or replace the reservation key of this host
    ResvRegister(reservations::RegisterArgs),
    /// Take a reservation of the namespace, or preempt other hosts
    ResvAcquire(reservations::AcquireArgs),
    /// Give the reservation back, or clear all registrations
    ResvRelease(reservations::ReleaseArgs),
    /// The hosts that are registered, and who holds the reservation
    ResvReport(reservations::ReportArgs),
    /// Send any I/O command
    IoPassthru(raw::Args),
    /// Send any admin command
    AdminPassthru(raw::Args),
    /// Take a controller from the kernel's driver, for pcie://; needs root
    Bind(bind::BindArgs),
    /// Give such a controller back to the kernel's driver
    Release(bind::ReleaseArgs),
    /// Make a key for authentication; needs no drive
    GenDhchapKey(gen_key::Args),
}

impl Command {
    /// Whether an identifier can be meant that is of no single namespace.
    fn takes_namespace(&self, nsid: u32) -> bool {
        match self {
            Self::IoPassthru(_) | Self::AdminPassthru(_) => true,
            Self::Flush | Self::GetLog(_) | Self::SmartLog | Self::ErrorLog(_) => nsid != 0,
            _ => (1..ALL_NAMESPACES).contains(&nsid),
        }
    }
}

/// Does what the command line says.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn nvme(args: &Args) -> Result<Exit, Failure> {
    let device = &args.device;
    let is_json = device.is_json();
    if let Some(text) = match &args.command {
        Command::Bind(args) => Some(bind::bind(args, is_json)?),
        Command::Release(args) => Some(bind::release(args, is_json)?),
        Command::GenDhchapKey(args) => Some(gen_key::generate(args, is_json)?),
        _ => None,
    } {
        console::print(&text)?;
        return Ok(Exit::Done);
    }
    if let Some(nsid) = device.namespace_id
        && !args.command.takes_namespace(nsid)
    {
        let message = format!(
            "--namespace-id {nsid} is none: 1 to 4294967294 is valid, and 0xffffffff (all) for \
             flush, get-log, io-passthru and admin-passthru"
        );
        return Err(Failure::usage(message));
    }
    let mut session = Session::connect(device)?;
    let text = match &args.command {
        Command::Discover => discover::discover(&mut session),
        Command::List => discover::refuse(&mut session).and_then(|()| identify::list(&session)),
        Command::ListNs(args) => lists::namespaces(&mut session, args),
        Command::ListSubsys => Ok(lists::subsystems(&session)),
        Command::IdCtrl => Ok(identify::controller(&session)),
        Command::IdNs(args) => identify::namespace(&session, args),
        Command::Zns(command) => zones::zones(&mut session, command),
        Command::Fdp(command) => fdp::fdp(&mut session, command),
        Command::Read(args) => io::read(&mut session, args),
        Command::Write(args) => io::write(&mut session, args),
        Command::WriteZeroes(args) => media::write_zeroes(&mut session, args),
        Command::Compare(args) => media::compare(&mut session, args),
        Command::Verify(args) => media::verify(&mut session, args),
        Command::Copy(args) => media::copy(&mut session, args),
        Command::Dsm(args) => media::dsm(&mut session, args),
        Command::ResvRegister(args) => reservations::register(&mut session, args),
        Command::ResvAcquire(args) => reservations::acquire(&mut session, args),
        Command::ResvRelease(args) => reservations::release(&mut session, args),
        Command::ResvReport(args) => reservations::report(&mut session, args),
        Command::IoPassthru(args) => raw::io(&mut session, args),
        Command::AdminPassthru(args) => raw::admin(&mut session, args),
        Command::Flush => io::flush(&mut session),
        Command::GetLog(args) => log::get(&mut session, args),
        Command::SmartLog => log::smart(&mut session),
        Command::ErrorLog(args) => log::errors(&mut session, args),
        Command::GetFeature(args) => feature::get(&mut session, args),
        Command::SetFeature(args) => feature::set(&mut session, args),
        Command::Bind(_) | Command::Release(_) | Command::GenDhchapKey(_) => Ok(String::new()),
    };
    // Print what there is before leaving, whether or not leaving goes well.
    let printed = text.and_then(|text| console::print(&text));
    let left = session.controller.disconnect().map_err(failure);
    printed.and(left)?;
    Ok(Exit::Done)
}

/// The namespace identifier of all namespaces.
const ALL_NAMESPACES: u32 = u32::MAX;

/// A drive that is connected, and how to speak of it.
struct Session {
    controller: AnyController,
    queue: Option<AnyQueue>,
    address: Address,
    /// The namespace that the command line names.
    named: Option<NamespaceId>,
    /// The namespace of `--namespace-id`, which may be all of them.
    stated: Option<u32>,
    json: bool,
}

impl Session {
    fn connect(args: &DeviceArgs) -> Result<Self, Failure> {
        let Some(url) = &args.device else {
            return Err(Failure::usage(
                "--device is missing: name the drive, as in --device tcp://127.0.0.1:4420/NQN or \
                 --device linux:///dev/ng0n1"
                    .to_owned(),
            ));
        };
        let address = Address::parse(url);
        let address = address.map_err(|e| Failure::usage(explained(url, &e.to_string())))?;
        let options = args.host.options(address.clone())?;
        let controller = AnyController::connect(options).map_err(failure)?;
        let named = args.namespace_id.map(NamespaceId);
        Ok(Self {
            named: named.or(controller.named()),
            stated: args.namespace_id,
            controller,
            queue: None,
            address,
            json: args.is_json(),
        })
    }

    /// The namespace of the command line, or the only one.
    ///
    /// # Errors
    /// The controller does not have it, or has several and none is named.
    fn namespace(&self) -> Result<&zonelab_driver::Namespace, Failure> {
        let identity = self.controller.identity();
        // Not all that there are have a place among those that workloads plan with.
        let named = self.named.and_then(|nsid| identity.namespace(nsid.0));
        if let Some(namespace) = named {
            return Ok(namespace);
        }
        let (device, info) = (self.address.to_string(), self.controller.info());
        let refused = |why: NoNamespace| namespace::refusal(&device, info, &why, |_| None);
        let nsid = info.choose(self.named).map_err(refused)?;
        let chosen = identity.namespace(nsid.0);
        chosen.ok_or_else(|| refused(NoNamespace::None))
    }

    /// Its identifier.
    ///
    /// # Errors
    /// As [`Self::namespace`].
    fn nsid(&self) -> Result<u32, Failure> {
        Ok(self.namespace()?.nsid)
    }

    /// The I/O queue, opened at the first use.
    fn queue(&mut self) -> Result<&mut AnyQueue, Failure> {
        self.controller.keep_alive().map_err(failure)?;
        let queue = match self.queue.take() {
            Some(queue) => queue,
            None => self.controller.open_queue().map_err(failure)?,
        };
        Ok(self.queue.insert(queue))
    }

    /// Sends an I/O command that must succeed.
    fn io(
        &mut self,
        what: &'static str,
        entry: zonelab_nvme::queue::SubmissionEntry,
        transfer: zonelab_driver::tcp::Transfer,
    ) -> Result<Reply, Failure> {
        let reply = self.queue()?.passthrough(entry, transfer);
        reply.and_then(|reply| reply.ok(what)).map_err(failure)
    }
}

/// Why `--device` is refused, with what scripts for nvme-cli mean by the short form of it.
fn explained(device: &str, why: &str) -> String {
    match device.contains(':') {
        true => why.to_owned(),
        false => format!("{why}. -d is --device here: {SHORT_DATA}"),
    }
}

/// What nvme-cli has `-d` for.
pub(crate) const SHORT_DATA: &str = "write --descs or --data for what is -d of nvme-cli";

/// The exit code that goes with an error of a drive.
pub(crate) fn failure(error: DriverError) -> Failure {
    let exit = match error.is_unreachable() || error.is_of_machine() {
        true => Exit::Environment,
        false => Exit::Device,
    };
    Failure::new(exit, error)
}

/// A command of the tool that makes no sense for this drive.
fn refused(message: String) -> Failure {
    Failure::new(Exit::Device, anyhow::anyhow!(message))
}

/// A value on the command line that no entry holds.
fn out_of_range(error: zonelab_nvme::command::OutOfRange) -> Failure {
    Failure::usage(error.to_string())
}

/// The name of a status for tables.
fn status_name(status: Status) -> &'static str {
    status.name().unwrap_or("a status without a name")
}

/// A number as people write it: decimal, or hexadecimal with 0x.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a number is decimal, or hexadecimal behind 0x".to_owned())
}

/// The same of 32 bits.
pub(crate) fn number32(text: &str) -> Result<u32, String> {
    let wide = number(text)?;
    u32::try_from(wide).map_err(|_| "at most 0xffffffff".to_owned())
}

/// The same of 16 bits.
fn number16(text: &str) -> Result<u16, String> {
    let wide = number(text)?;
    u16::try_from(wide).map_err(|_| "at most 0xffff".to_owned())
}

/// The same of 8 bits.
fn number8(text: &str) -> Result<u8, String> {
    let wide = number(text)?;
    u8::try_from(wide).map_err(|_| "at most 0xff".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("4096"), Ok(4096));
        assert_eq!(number("0xBf"), Ok(0xbf));
        assert_eq!(number8("0xff"), Ok(255));
        assert!(number8("256").is_err() && number32("0x100000000").is_err());
        assert!(number("bf").is_err() && number("").is_err() && number("-1").is_err());
    }
}
