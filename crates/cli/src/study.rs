//! What verbs share that study a drive as a whole: `characterize` and `fit`.

use zonelab_device::{DeviceInfo, NamespaceId};
use zonelab_lab::experiment::Via;
use zonelab_lab::run::{Point, Profiles as _};
use zonelab_search::characterize::{Effort, Reach};

use crate::devices::{HostArgs, Named};
use crate::exit::Failure;
use crate::files::ProfileFiles;
use crate::namespace;
use crate::on_device::{self, Remote};
use crate::session::Work;

/// Options of such a verb.
#[derive(clap::Args)]
pub(crate) struct StudyArgs {
    /// The drive may be reset and written as a whole: what it holds is lost. Only a real
    /// drive with zones that are not empty needs it
    #[arg(long)]
    overwrite: bool,
    /// Measure ten times as long
    #[arg(long)]
    full: bool,
    /// Runs of what is measured [default: 3, with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    pub(crate) work: Work,
}

impl StudyArgs {
    pub(crate) const fn effort(&self) -> Effort {
        match self.full {
            true => Effort::Full,
            false => Effort::Quick,
        }
    }

    pub(crate) fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(self.effort().repeats())
    }

    /// As they are written in a command.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.full.then(|| "--full".to_owned()));
        let repeats = self.repeats.iter();
        words.extend(repeats.flat_map(|n| ["--repeats".to_owned(), n.to_string()]));
        words.extend(self.overwrite.then(|| "--overwrite".to_owned()));
        words.extend(self.host.words());
        words.extend(["--seed".to_owned(), self.work.seed.to_string()]);
        words
    }

    /// Opens the drive that `--device` names. `what` is about the drive itself, and so not
    /// about what stands between it and a host.
    ///
    /// # Errors
    /// There is no such drive, or it cannot be reached.
    pub(crate) fn open(
        &self,
        name: &str,
        profiles: &ProfileFiles<'_>,
        what: &str,
    ) -> Result<Opened, Failure> {
        match Named::parse(name)? {
            Named::Emulated {
                profile,
                nsid,
                is_real,
                via,
            } => {
                if via != Via::Direct {
                    return Err(Failure::usage(format!(
                        "--device {name}: {what}: leave out via="
                    )));
                }
                let profile = on_device::from_here(profile)?;
                let loaded = profiles.load(&profile, &[]).map_err(Failure::input)?;
                let info = zonelab_ssd::Drive::info_of(&loaded.config);
                Ok(Opened {
                    nsid: namespace::of_emulated(name, &info, nsid)?,
                    info,
                    reach: match is_real {
                        true => Reach::RealTime,
                        false => Reach::Virtual,
                    },
                    granted: None,
                    about: zonelab_ssd::profile::to_toml(&loaded.config),
                    how: How::Emulated { profile, is_real },
                })
            }
            Named::Real(address) => {
                let scheme = name.split(':').next().unwrap_or_default().to_owned();
                let (mut remote, nsid) = Remote::open(name, &self.host, address)?;
                Ok(Opened {
                    nsid,
                    granted: Some(remote.granted()?),
                    info: remote.info().clone(),
                    reach: Reach::Transport(scheme),
                    about: remote.describe(),
                    how: How::Connected(Box::new(remote)),
                })
            }
        }
    }

    /// Refuses options of the way to a real drive if all drives are emulated.
    ///
    /// # Errors
    /// One of them is given.
    pub(crate) fn fits(&self, devices: &[String]) -> Result<(), Failure> {
        let is_emulated = |name: &String| matches!(Named::parse(name), Ok(Named::Emulated { .. }));
        match devices {
            [first, ..] if devices.iter().all(is_emulated) => self.host.refuse_on_emulated(first),
            _ => Ok(()),
        }
    }

    /// Whether a drive that is connected has what the points need, and may be written: what
    /// is lost is said.
    ///
    /// # Errors
    /// It has not, or it holds data and nothing says that they may go.
    pub(crate) fn permit(&self, remote: &mut Remote, points: &[Point]) -> Result<(), Failure> {
        remote.fits(points)?;
        remote.may_destroy(points, self.overwrite)
    }
}

/// How points are run.
pub(crate) enum How {
    /// On drives of this profile.
    Emulated { profile: String, is_real: bool },
    /// On the drive that is connected.
    Connected(Box<Remote>),
}

/// A drive, and what is known of it before anything is measured.
pub(crate) struct Opened {
    pub(crate) how: How,
    pub(crate) info: DeviceInfo,
    /// The namespace that is studied.
    pub(crate) nsid: NamespaceId,
    pub(crate) reach: Reach,
    /// Queues that the drive granted, and their depth; `None`: as many as are asked for.
    pub(crate) granted: Option<(u32, u32)>,
    /// What results depend on besides what is measured.
    pub(crate) about: String,
}
