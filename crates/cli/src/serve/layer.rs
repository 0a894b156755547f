//! `serve --ftl`: a conventional namespace on the zones of the drive.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use zonelab_config::units::fmt_size;
use zonelab_device::{DeviceInfo, NamespaceId};
use zonelab_ftl::{FormatSettings, FtlError, FtlSettings, Placement, Policy, map_memory_bytes};
use zonelab_lab::device::{ReportedZone, zones_of};
use zonelab_live::layer::{FtlLayer, LayerSettings, LayerState};
use zonelab_ssd::Drive;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::faults::FaultyDrive;

use super::memory::Measure;
use crate::exit::Failure;
use crate::ftl;
use crate::namespace::{self, Loss};

/// Options about the layer.
#[derive(clap::Args)]
pub(super) struct LayerArgs {
    /// Serve a conventional namespace, with random writes, that a translation layer keeps on
    /// the zones of the drive. A drive whose zones are all empty is formatted for it
    #[arg(long)]
    ftl: bool,
    /// Format the drive for the layer, whatever is on it: all of that is lost
    #[arg(long, requires = "ftl")]
    ftl_format: bool,
    /// The zoned namespace that the layer is on [default: the only zoned one]
    #[arg(long, value_name = "NSID", requires = "ftl")]
    ftl_namespace: Option<u32>,
    /// Of a format: data blocks beyond those that hosts see, as a share of the latter. 1% to
    /// 1000%
    #[arg(long, value_name = "PERCENT", requires = "ftl", value_parser = ftl::share)]
    ftl_spare: Option<f64>,
    /// Of a format: zones that are kept out of that count, open ones and those that must be
    /// free [default: as many as may be active, up to 16 and up to a quarter of the data
    /// zones]
    #[arg(long, value_name = "N", requires = "ftl")]
    ftl_reserved_zones: Option<u32>,
    /// How the layer's queues place what they write: write, append or shared-append
    /// [default: write]
    #[arg(long, value_name = "HOW", requires = "ftl")]
    ftl_placement: Option<String>,
    /// Which zone is emptied next: greedy, cost-benefit, fifo, d-choices:N or
    /// windowed-greedy:N [default: greedy]
    #[arg(long, value_name = "POLICY", requires = "ftl")]
    ftl_victims: Option<String>,
    /// Zones that the collector writes at a time, by how often what it moves was moved
    /// before: 1 to 4 [default: 1]
    #[arg(long, value_name = "N", requires = "ftl")]
    ftl_generations: Option<u32>,
    /// Free zones below which the collector works [default: half of the reserved zones]
    #[arg(long, value_name = "N", requires = "ftl")]
    ftl_collect_below: Option<u32>,
    /// Share of the map that is in memory, more than 0% and less than 100%: the rest is read
    /// from the drive when it is needed [default: all of it is in memory]
    #[arg(long, value_name = "PERCENT", requires = "ftl", value_parser = map_share)]
    ftl_map_share: Option<f64>,
    /// Queues of the layer, each of which writes a zone of its own; those of hosts are
    /// spread over them [default: 4, or as many as the drive allows]
    #[arg(
        long,
        value_name = "N",
        requires = "ftl",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    ftl_queues: Option<u32>,
    /// Log what hosts write to this file, which must not be there, in the format of Linux's
    /// dm-log-writes: tools that replay it make the states that the namespace had
    #[arg(long, value_name = "FILE", requires = "ftl")]
    ftl_log: Option<PathBuf>,
}

impl LayerArgs {
    /// The file that what hosts write is logged to, if there is to be one.
    pub(super) fn log(&self) -> Option<&Path> {
        self.ftl_log.as_deref()
    }

    /// What its map may take beyond what it has when it is mounted.
    pub(super) fn map_growth_bytes(&self, state: &LayerState) -> u64 {
        let blocks = u32::try_from(state.size_lbas).unwrap_or(u32::MAX);
        let share = self.ftl_map_share;
        share.map_or(0, |share| map_memory_bytes(blocks, Some(share)))
    }

    /// Starts the layer on the drive, if one was asked for.
    ///
    /// # Errors
    /// An option is out of its range, or what is on the drive cannot be mounted.
    pub(super) fn start(
        &self,
        profile: &str,
        drive: &mut FaultyDrive,
        measure: &Measure,
    ) -> Result<Option<FtlLayer>, Failure> {
        if !self.ftl {
            return Ok(None);
        }
        if drive.drive().config().data == DataStore::None {
            return Err(Failure::usage(
                "--ftl with --data none: the layer keeps its map on the drive".to_owned(),
            ));
        }
        let nsid = self.namespace(profile, drive.drive().info())?;
        let settings = self.settings(nsid, measure)?;
        // What could not be used afterwards is not emptied.
        let namespace = drive.drive().info().namespace(nsid);
        let limit = namespace.and_then(|of| of.zoned.as_ref()?.max_active);
        let usable = settings.mount.check_active(limit);
        usable.map_err(|error| refusal(profile, &error))?;
        if self.ftl_format {
            // Whoever asks for it has said that what is there may be lost.
            namespace::may_lose(profile, loss(drive.drive(), nsid), true)?;
        }
        let mut layer =
            FtlLayer::start(drive, settings).map_err(|error| refusal(profile, &error))?;
        if let Some(path) = &self.ftl_log {
            let logs = File::create_new(path)
                .and_then(|file| layer.log_to(Box::new(BufWriter::new(file))));
            logs.map_err(|error| {
                Failure::environment(anyhow::anyhow!("--ftl-log {}: {error}", path.display()))
            })?;
        }
        Ok(Some(layer))
    }

    /// The zoned namespace that the layer is on.
    ///
    /// # Errors
    /// There is none, or there are several and none is named.
    fn namespace(&self, profile: &str, info: &DeviceInfo) -> Result<NamespaceId, Failure> {
        let mut info = info.clone();
        for of in info.namespaces.iter_mut().filter(|of| of.zoned.is_none()) {
            of.size_lbas = 0;
        }
        if info.present().next().is_none() {
            return Err(Failure::usage(format!(
                "--ftl: {profile} has no zoned namespace"
            )));
        }
        let named = self.ftl_namespace.map(NamespaceId);
        namespace::of_emulated(&format!("--ftl-namespace: {profile}"), &info, named)
    }

    fn settings(&self, nsid: NamespaceId, measure: &Measure) -> Result<LayerSettings, Failure> {
        let mut uuid = [0; 16];
        getrandom::fill(&mut uuid).map_err(Failure::environment)?;
        let of_option = |error: FtlError| refusal("--ftl", &error);
        let placement = self.ftl_placement.as_deref().map(Placement::parse);
        let victims = self.ftl_victims.as_deref().map(Policy::parse);
        let defaults = (
            FtlSettings::default(),
            FormatSettings::new(u128::from_le_bytes(uuid)),
        );
        Ok(LayerSettings {
            mount: FtlSettings {
                nsid,
                placement: placement
                    .transpose()
                    .map_err(of_option)?
                    .unwrap_or(defaults.0.placement),
                victims: victims
                    .transpose()
                    .map_err(of_option)?
                    .unwrap_or(defaults.0.victims),
                generations: self.ftl_generations.unwrap_or(defaults.0.generations),
                collect_below: self.ftl_collect_below,
                map_share: self.ftl_map_share,
                // The rest is for hosts, and for the data of a drive in memory.
                map_memory_max_bytes: measure.available_bytes().map(|bytes| bytes / 2),
                ..defaults.0
            },
            format: FormatSettings {
                nsid,
                spare: self.ftl_spare.unwrap_or(defaults.1.spare),
                reserved_zones: self.ftl_reserved_zones,
                ..defaults.1
            },
            formats: self.ftl_format,
            queues: self.ftl_queues,
        })
    }
}

/// What a format of the layer destroys on an emulated drive.
fn loss(drive: &Drive, nsid: NamespaceId) -> Option<Loss> {
    let mine = drive.config().zones_of(nsid)?;
    let reported: Vec<ReportedZone> = zones_of(drive, mine);
    let namespace = drive.info().namespace(nsid)?;
    Loss::of_zones(nsid, namespace, &reported, 0..u32::MAX)
}

/// A share of the map, in percent.
fn map_share(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    number
        .filter(|percent: &f64| *percent > 0.0 && *percent < 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a share of the map is more than 0% and less than 100%".to_owned())
}

/// Why the layer cannot be started, in terms of the options of `serve`.
fn refusal(profile: &str, error: &FtlError) -> Failure {
    match error {
        FtlError::Setting { key, value, valid } => {
            let option = key.replace('_', "-");
            Failure::usage(format!("--ftl-{option} {value}: valid: {valid}"))
        }
        FtlError::TooManyQueues { .. } => Failure::usage(format!("--ftl-queues: {error}")),
        FtlError::MapMemory { .. } => Failure::environment(anyhow::anyhow!(
            "{profile}: --ftl: {error}, half of what this process may have: --ftl-map-share \
             PERCENT has a share of it in memory"
        )),
        FtlError::NotFormatted => Failure::input(anyhow::anyhow!(
            "{profile}: zones hold data, and none of it is the layer's; --ftl-format if all of it \
             may be lost"
        )),
        error => ftl::failure(profile, error),
    }
}

/// A line about the layer, for people.
pub(super) fn line(state: &LayerState) -> String {
    let bytes = state.size_lbas * u64::from(state.lba_bytes);
    format!(
        "with a conventional namespace of {} on them\n",
        fmt_size(bytes)
    )
}

/// The layer's part of the line that says where the server listens.
pub(super) fn as_json(state: &LayerState) -> serde_json::Value {
    serde_json::json!({
        "blocks": state.size_lbas, "block_bytes": state.lba_bytes,
        "bytes": state.size_lbas * u64::from(state.lba_bytes),
    })
}
