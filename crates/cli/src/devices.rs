//! What `--device` names, and the way there.

use std::path::PathBuf;

use zonelab_config::units::parse_duration;
use zonelab_device::{NamespaceId, Nanos};
use zonelab_driver::linux::LinuxOptions;
use zonelab_driver::pcie::LocalOptions;
use zonelab_driver::url::{Address, TcpAddress};
use zonelab_driver::{AnyOptions, Controller, DriverError, HostSecrets, Options};
use zonelab_lab::experiment::Via;
use zonelab_target::controller::HostSecret;

use crate::conditions::ConditionArgs;
use crate::exit::{Exit, Failure};
use crate::{host_keys, nvme};

/// Who the host is to a drive over NVMe/TCP, and what a drive on PCIe may do to it.
#[derive(clap::Args)]
pub(crate) struct HostArgs {
    /// Keys to authenticate with, if the controller asks for it: lines HOSTNQN
    /// KEY [CONTROLLER-KEY], of which that of our own name counts (the URL's
    /// hostnqn)
    #[arg(long, value_name = "FILE", global = true)]
    host_key: Option<PathBuf>,
    /// Use a drive on PCIe that is behind no IOMMU (pcie://, bound to
    /// uio_pci_generic): a fault of the drive or of this program can then overwrite
    /// any memory of this machine
    #[arg(long, global = true)]
    unsafe_dma: bool,
    /// Longest time of a command of a real drive. Over pcie:// it is aborted then, and the
    /// controller is reset after as long again; over tcp:// the connection ends; on
    /// linux:// it is the kernel's limit of admin commands
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        value_parser = command_timeout,
        global = true
    )]
    command_timeout: Nanos,
}

/// What a command may take unless it is said otherwise.
const COMMAND_TIMEOUT: Nanos = Nanos::from_secs(30);

/// Shortest and longest limit of a command.
const COMMAND_TIMEOUTS: [Nanos; 2] = [Nanos::from_ms(1), Nanos::from_secs(86_400)];

fn command_timeout(text: &str) -> Result<Nanos, String> {
    let span = Nanos(parse_duration(text).map_err(|error| error.to_string())?);
    let [least, most] = COMMAND_TIMEOUTS;
    match (least..=most).contains(&span) {
        true => Ok(span),
        false => Err(format!("a command may take {least} to {most}")),
    }
}

impl HostArgs {
    /// How to connect to `address`: with these secrets, else as by default.
    ///
    /// # Errors
    /// The file of keys cannot be read, is wrong, or has no key of this host.
    pub(crate) fn options(&self, address: Address) -> Result<AnyOptions, Failure> {
        let is_tcp = matches!(address, Address::Tcp(_));
        if self.host_key.is_some() && !is_tcp {
            return Err(Failure::usage(format!(
                "--host-key is for drives over NVMe/TCP, and {address} is of this machine"
            )));
        }
        if self.unsafe_dma && !matches!(address, Address::Pcie(_)) {
            return Err(Failure::usage(format!(
                "--unsafe-dma is for drives on PCIe that this program drives itself \
                 (pcie://0000:01:00.0), and {address} is none"
            )));
        }
        let command_timeout = self.command_timeout;
        Ok(match address {
            Address::Tcp(address) => AnyOptions::Tcp(Box::new(Options {
                secrets: self.secrets(&address)?,
                command_timeout,
                ..Options::new(address)
            })),
            Address::Linux(address) => AnyOptions::Linux(LinuxOptions {
                command_timeout,
                ..LinuxOptions::new(address)
            }),
            Address::Pcie(address) => {
                let mut options = LocalOptions::new(address);
                options.is_unsafe_dma_allowed = self.unsafe_dma;
                options.pcie.command_timeout = command_timeout;
                AnyOptions::Pcie(Box::new(options))
            }
        })
    }

    /// Refuses options of the way to a real drive for one that is emulated in this process.
    ///
    /// # Errors
    /// One of them is given.
    pub(crate) fn refuse_on_emulated(&self, device: &str) -> Result<(), Failure> {
        let given = [
            ("--host-key", self.host_key.is_some()),
            ("--unsafe-dma", self.unsafe_dma),
            ("--command-timeout", self.command_timeout != COMMAND_TIMEOUT),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} is about the way to a real drive, and {device} is emulated in this \
                 program: leave it out"
            ))),
        }
    }

    /// The options that a command has to be given with again; keys are the host's own.
    pub(crate) fn words(&self) -> Vec<String> {
        match self.unsafe_dma {
            true => vec!["--unsafe-dma".to_owned()],
            false => Vec::new(),
        }
    }

    /// The secrets in the file of keys, if there is one.
    fn secrets(&self, address: &TcpAddress) -> Result<Option<HostSecrets>, Failure> {
        let Some(path) = &self.host_key else {
            return Ok(None);
        };
        let hostnqn = &address.hostnqn;
        let entries = host_keys::read(path)?;
        let own = entries.into_iter().find(|entry| entry.hostnqn == *hostnqn);
        let HostSecret {
            host, controller, ..
        } = own.ok_or_else(|| {
            let name = path.display();
            Failure::input(anyhow::anyhow!(
                "{name}: no key of this host, {hostnqn}; hostnqn= in the URL names another"
            ))
        })?;
        Ok(Some(HostSecrets { host, controller }))
    }
}

/// A device that a program runs on.
#[derive(Debug)]
pub(crate) enum Named<'a> {
    /// An emulated drive in this process: `zn540?nsid=2&clock=real`.
    Emulated {
        /// Name or file of its profile.
        profile: &'a str,
        /// The namespace, if it is named.
        nsid: Option<NamespaceId>,
        /// Its time is real; else virtual.
        is_real: bool,
        /// How programs reach it, in virtual time.
        via: Via,
    },
    /// A real drive, over NVMe/TCP or of this machine, in real time.
    Real(Address),
}

impl<'a> Named<'a> {
    /// Reads the name of a device.
    ///
    /// # Errors
    /// It names none, or one of a kind that is yet to come: what would be valid.
    pub(crate) fn parse(device: &'a str) -> Result<Self, Failure> {
        if Address::is_meant(device) {
            let address = Address::parse(device).map_err(|e| Failure::usage(e.to_string()))?;
            if address.is_discovery() {
                return Err(Failure::usage(format!(
                    "{device}: this is a discovery subsystem; `zonelab nvme discover` lists the \
                     drives that it knows, and one of them is tcp://HOST:PORT/NQN?nsid=1"
                )));
            }
            return Ok(Self::Real(address));
        }
        if device.starts_with("/dev/") {
            return Err(Failure::usage(format!(
                "{device}: a drive of this machine is named with its scheme: linux://{device}"
            )));
        }
        if device.contains("://") {
            return Err(Failure::usage(format!(
                "{device}: programs run on emulated drives, over NVMe/TCP and on drives of this \
                 machine: name a profile (--device confznspp), tcp://HOST:PORT/NQN?nsid=1, \
                 linux:///dev/ng0n1 or pcie://0000:01:00.0?nsid=1"
            )));
        }
        let (profile, query) = device.split_once('?').unwrap_or((device, ""));
        let (mut nsid, mut is_real, mut via) = (None, false, Via::Direct);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("clock", "virtual")) => is_real = false,
                Some(("clock", "real")) => is_real = true,
                Some(("via", "pcie")) => via = Via::Pcie,
                Some(("via", "ftl")) => via = Via::Ftl,
                Some(("nsid", number)) => {
                    let number = nvme::number32(number).map_err(|_| {
                        let message =
                            format!("{device}: a namespace is a number: {profile}?nsid=1");
                        Failure::usage(message)
                    })?;
                    nsid = Some(NamespaceId(number));
                }
                _ => {
                    return Err(Failure::usage(format!(
                        "{device}: \"{part}\" is unknown behind a profile; it takes \
                         {profile}?nsid=1, {profile}?clock=real, {profile}?clock=virtual, \
                         {profile}?via=pcie or {profile}?via=ftl"
                    )));
                }
            }
        }
        if is_real && via != Via::Direct {
            let via = via.name();
            return Err(Failure::usage(format!(
                "{device}: via={via} is for virtual time so far: leave out clock=real"
            )));
        }
        Ok(Self::Emulated {
            profile,
            nsid,
            is_real,
            via,
        })
    }
}

/// Refuses a drive that is to be reached in another way than those that a program knows.
///
/// # Errors
/// It is such a drive.
pub(crate) fn refuse_via(device: &str, via: Via, known: &[Via]) -> Result<(), Failure> {
    let programs = match via {
        Via::Direct => return Ok(()),
        _ if known.contains(&via) => return Ok(()),
        Via::Pcie => "`zonelab fio`, `zonelab kv` and `zonelab run`",
        Via::Ftl => "`zonelab run`",
    };
    let via = via.name();
    Err(Failure::usage(format!(
        "{device}: via={via} is for {programs} so far: leave it out"
    )))
}

/// Leaves a controller in order, and says if it was not in order itself.
///
/// # Errors
/// It could not be left in order.
pub(crate) fn leave(controller: impl Controller) -> Result<(), DriverError> {
    let times = match controller.resets() {
        0 => return controller.disconnect(),
        1 => "once".to_owned(),
        resets => format!("{resets} times"),
    };
    tell!(
        "zonelab: warning: the controller was reset {times}: commands took too long, or it \
         failed; those in flight were aborted"
    );
    controller.disconnect()
}

/// A device that cannot be used, or not any more.
pub(crate) fn gone(error: DriverError) -> Failure {
    let advice = match error.is_unreachable() {
        true => "; is the drive served there? (`zonelab serve PROFILE` serves one)",
        false => "",
    };
    let exit = match error.is_of_machine() {
        true => Exit::Environment,
        false => Exit::Device,
    };
    Failure::new(exit, anyhow::anyhow!("{error}{advice}"))
}

/// Refuses what makes or changes an emulated drive on a real one;
/// `restore` says what the program does instead of restoring a drive.
///
/// # Errors
/// One of the options is given.
pub(crate) fn refuse_making(
    device: &str,
    set: &[String],
    conditions: &ConditionArgs,
    restore: &str,
) -> Result<(), Failure> {
    let first = set.first().map_or(String::new(), |set| format!(" {set}"));
    let settings = "a drive that is served gets its settings from `zonelab serve --set`";
    refuse(device, &format!("--set{first}"), !set.is_empty(), settings)?;
    let faults = "`zonelab fault` makes a drive fail that is served";
    refuse(device, "--faults", conditions.has_faults(), faults)?;
    refuse(device, "--restore", conditions.has_restore(), restore)
}

/// Refuses `option` on a device that is not emulated in this process; `why` says
/// what would be valid.
///
/// # Errors
/// The option is given.
pub(crate) fn refuse(device: &str, option: &str, is_given: bool, why: &str) -> Result<(), Failure> {
    match is_given {
        true => Err(Failure::usage(format!(
            "{option} is for emulated drives, and {device} is none: {why}"
        ))),
        false => Ok(()),
    }
}
