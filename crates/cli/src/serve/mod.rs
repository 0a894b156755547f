//! `zonelab serve`.

mod authentication;
pub(crate) mod control;
mod hosts;
mod layer;
mod limits;
mod log_queue;
mod logs;
mod memory;
mod output;
mod reload;
mod sandbox;
mod shares;
mod store;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;

use zonelab_config::units::{parse_duration, parse_size};
use zonelab_device::Nanos;
use zonelab_live::http::{self, Listener};
use zonelab_live::layer::{FtlLayer, Served};
use zonelab_live::web;
use zonelab_nvme::tcp::Digests;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile;
use zonelab_target::controller::{DiscoveryAddress, SubsystemSettings, TransportLimits};
use zonelab_target::server::{LoopHandle, Server, ServerSettings, loop_calls};
use zonelab_target::tcp;

use authentication::AuthenticationArgs;
use memory::Measure;
use reload::Watched;
use shares::{Beside, Shares};

use crate::exit::{Exit, Failure};
use crate::{console, files, profiles, usage};

/// Writes up to this size bring their data along: those of 128 KiB, which file
/// systems send most, would else take another round trip.
pub(crate) const IN_CAPSULE: &str = "128KiB";

/// Options of `serve`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The drive: a built-in profile or a profile file
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Address to listen on. Without --host-key, other addresses than those of
    /// the loopback let in whoever reaches them
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:4420",
        value_parser = usage::address
    )]
    listen: SocketAddr,
    /// Name of the subsystem [default: nqn.2024-01.io.github.zonelab:PROFILE]
    #[arg(long, value_name = "NQN")]
    nqn: Option<String>,
    /// Let only hosts of this name in; may be repeated
    #[arg(long, value_name = "NQN")]
    allow_host: Vec<String>,
    /// Let only the hosts in this file in, and each to its namespaces: a TOML file, which is
    /// read again when it changes, see docs/serve.md
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Say that namespaces are shared (CMIC, NMIC): the connections of one Linux are paths to
    /// one block device, and one machine can be several hosts
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    authentication: AuthenticationArgs,
    #[command(flatten)]
    tls: tls::TlsArgs,
    /// Whether written data is kept
    #[arg(long, value_enum, default_value_t = Data::Memory)]
    data: Data,
    /// Keep data and zones in this file, which is made if it is not there: the
    /// drive comes back with them, however this program ended
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    store: Option<PathBuf>,
    /// Whether blocks of a new store get checksums [default: on]
    #[arg(long, value_enum, requires = "store")]
    store_checksums: Option<store::Checksums>,
    /// Most memory that data takes: a write beyond fails with Capacity Exceeded
    /// [default: half of what is available]
    #[arg(long, value_name = "SIZE", conflicts_with = "store")]
    data_limit: Option<String>,
    /// Answer as fast as possible instead of at the drive's times
    #[arg(long)]
    no_timing: bool,
    /// Most commands in flight of one queue
    #[arg(
        long,
        value_name = "N",
        default_value_t = 128,
        value_parser = clap::value_parser!(u16).range(2..=4096)
    )]
    queue_depth: u16,
    /// Most data in a command capsule of an I/O queue
    #[arg(long, value_name = "SIZE", default_value = IN_CAPSULE)]
    in_capsule: String,
    /// Digests that hosts may have
    #[arg(long, value_enum, default_value_t = Digest::Both)]
    digest: Digest,
    /// Spin instead of sleeping when the drive's next event is nearer than
    /// this; 0us never spins
    #[arg(long, value_name = "TIME", default_value = "50us")]
    spin: String,
    /// Fail if 1 % of the responses of a queue are later than this
    #[arg(long, value_name = "TIME")]
    max_lateness: Option<String>,
    #[command(flatten)]
    layer: layer::LayerArgs,
    #[command(flatten)]
    limits: limits::LimitArgs,
    /// Address for metrics, the state and a page over HTTP. Addresses other than
    /// those of the loopback show them to whoever reaches them
    #[arg(long, value_name = "ADDR:PORT", value_parser = usage::address)]
    web: Option<SocketAddr>,
    /// Whether the server gives away what it does not need before anybody can reach it: files
    /// and connections (Landlock), system calls (seccomp)
    #[arg(long, value_enum, default_value_t = sandbox::Sandbox::Auto)]
    sandbox: sandbox::Sandbox,
    #[command(flatten)]
    logs: logs::LogArgs,
    /// Faults and losses of power of the drive: a TOML file, see docs/models/faults.md
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
    /// Make a socket for `zonelab fault`, which only you can use
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Change a setting of the drive
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// As JSON: a line when it listens, a line at the end
    #[arg(long)]
    json: bool,
}

/// Whether written data is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Data {
    /// No: reads return zeros
    None,
    /// In memory; what is not written takes none
    Memory,
}

/// Digests that hosts may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Digest {
    /// None
    None,
    /// Of headers
    Header,
    /// Of data
    Data,
    /// Of both
    Both,
}

const HELP: &str = "\
It serves until it is interrupted, and then prints how much later than the drive's
times responses were sent. Exit code 1: later than --max-lateness; 3: the store
is of another drive, or damaged; 4: it cannot be written any more.

  zonelab serve zn540
  zonelab serve zn540 --web 127.0.0.1:8420      # a page, and /metrics
  zonelab serve small-zones --listen 127.0.0.1:0 --json
  zonelab serve zn540 --store drive.zonelab
  zonelab serve zn540 --store drive.zonelab --ftl   # random writes: ext4, XFS
  zonelab serve profiles/zn540.toml --set zones.count=64 --data none --no-timing
  zonelab serve zn540 --faults faults.toml --control zn540.sock

docs/serve.md says how to connect, what is honoured and what is not.";

/// Serves a drive until interrupted.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn serve(args: &mut Args) -> Result<Exit, Failure> {
    args.fit_descriptors()?;
    let args = &*args;
    let measure = Measure::new();
    shares::one_arena(&measure);
    let max_lateness = args
        .max_lateness
        .as_deref()
        .map(|text| duration("--max-lateness", text))
        .transpose()?;
    let settings = server_settings(args, &measure)?;
    let config = config(args)?;
    let plan = faults(args, &config)?;
    // Before the files are read, so that no change is missed.
    let mut watched = watched(args);
    let keys = args.authentication.read()?;
    let rules = args.hosts.as_deref().map(hosts::read).transpose()?;
    let nqn = nqn(args, &config);
    let tls = args.tls.check(&nqn)?;
    let mut logs = args.logs.start()?;
    let (drive, found) = store::drive(args, &config, &measure)?;
    let control = args.control.as_deref().map(control::bind).transpose()?;
    // Before the first thread that deals with what peers send.
    sandbox::enter(args)?;
    logs.write()?;
    let mut server = Server::bind(args.listen, settings)
        .map_err(|error| Failure::environment(anyhow::anyhow!("{}: {error}", args.listen)))?;
    let address = server.local_addr().map_err(Failure::environment)?;
    let tls = tls.map(tls::Checked::bind).transpose()?;
    let tls_address = tls.as_ref().map(|bound| bound.address);
    let places = (address, tls_address);
    let mut subsystem = subsystem(args, (drive, plan, &measure), (&nqn, &settings), places)?;
    authentication::require(&mut subsystem, keys)?;
    if let Some(file) = &args.hosts {
        let set = subsystem.set_hosts(Nanos::ZERO, rules);
        set.map_err(|error| Failure::input(anyhow::anyhow!("{}: {error}", file.display())))?;
    }
    let stop = console::interruptible("what is being sent")?;
    let (handle, calls) = loop_calls().map_err(Failure::environment)?;
    let control = control.map(|bound| bound.answer(handle.clone()));
    let _socket = control.transpose()?;
    let limits = &settings.limits;
    let tls = tls.map(|bound| tls::answer(bound, limits, &mut server, handle.clone()));
    let (_front, keys) = tls.transpose()?.unzip();
    watched.extend(keys);
    let _watching = reload::watch(watched, handle.clone())?;
    let web = args.web.map(|web| listen(web, handle)).transpose()?;
    // All threads that are always there have their memory by now.
    share_memory(args, &settings, &measure, (&mut server, &mut subsystem))?;
    let places = (address, tls_address, web.as_ref().map(Listener::address));
    let config = subsystem.drive().drive().config();
    let found = found.map(|found| store::Summary::new(args, &found));
    let layer = subsystem.layer().map(FtlLayer::state);
    let about = (subsystem.settings(), found.as_ref(), layer.as_ref());
    output::announce(args, config, about, places)?;
    server
        .run_with_calls(&mut subsystem, &stop, calls)
        .map_err(|error| store::ended(args.store.as_deref(), error))?;
    let off = subsystem.switch_off().map_err(std::io::Error::other);
    off.map_err(|error| store::ended(args.store.as_deref(), error))?;
    let report = server.report();
    let late = max_lateness.map_or_else(Vec::new, |most| output::late(&report, most));
    output::conclude(args, &report, &late)?;
    Ok(if late.is_empty() {
        Exit::Done
    } else {
        Exit::ExpectationFailed
    })
}

impl Args {
    /// Has no more connections than there can be descriptors for.
    fn fit_descriptors(&mut self) -> Result<(), Failure> {
        let clients = |is_there: bool, most: usize| if is_there { most as u64 } else { 0 };
        let web = clients(self.web.is_some(), http::Limits::default().connections);
        let control = clients(self.control.is_some(), control::CLIENTS);
        self.limits
            .fit_descriptors(web + control, self.tls.is_wanted())
    }
}

/// Bounds what takes memory by what this process may have.
fn share_memory(
    args: &Args,
    settings: &ServerSettings,
    measure: &Measure,
    (server, subsystem): (&mut Server, &mut Served),
) -> Result<(), Failure> {
    let tcp = &settings.tcp;
    let layer = subsystem.layer().map(FtlLayer::state);
    let map_bytes = layer.map_or(0, |state| args.layer.map_growth_bytes(&state));
    let clients = |is_there: bool, most: usize| if is_there { most as u64 } else { 0 };
    let beside = Beside {
        connections: args.limits.connections(),
        connection_bytes: limits::connection_bytes(tcp, args.tls.is_wanted()),
        map_bytes,
        client_threads: clients(args.web.is_some(), http::Limits::default().connections)
            + clients(args.control.is_some(), control::CLIENTS),
    };
    let Some(shares) = Shares::now(measure, beside)? else {
        return Ok(());
    };
    let memory = args
        .limits
        .memory(Some(shares.whole_bytes()), tcp.transfer_bytes)?;
    let limited = server.limit_memory(memory, shares.kept_bytes());
    limited.map_err(|error| Failure::usage(format!("--max-memory...: {error}")))?;
    subsystem.limit_buffers(shares.kept_bytes());
    if args.store.is_none() && args.data_limit.is_none() {
        let drive = subsystem.drive_mut().drive_mut();
        drive.limit_data(Some(shares.data_bytes()));
    }
    Ok(())
}

/// The files that are read again when they change.
fn watched(args: &Args) -> Vec<Watched> {
    let hosts = args.hosts.as_deref().map(|path| {
        Watched::new(path, |path| {
            let rules = hosts::read(path)?;
            Ok(Box::new(|present| {
                let set = present.backend.set_hosts(present.now, Some(rules));
                set.map_err(|error| error.to_string())
            }))
        })
    });
    hosts
        .into_iter()
        .chain(args.authentication.watched())
        .collect()
}

/// Shows what the drive does, until what it returns is dropped.
fn listen(address: SocketAddr, handle: LoopHandle<Served>) -> Result<Listener, Failure> {
    web::serve(address, handle)
        .map_err(|error| Failure::environment(anyhow::anyhow!("--web {address}: {error}")))
}

fn duration(option: &str, text: &str) -> Result<Nanos, Failure> {
    parse_duration(text)
        .map(Nanos)
        .map_err(|problem| Failure::usage(format!("{option}: {problem}")))
}

fn server_settings(args: &Args, measure: &Measure) -> Result<ServerSettings, Failure> {
    let usage = |what: String| Failure::usage(format!("--in-capsule: {what}"));
    let in_capsule = parse_size(&args.in_capsule).map_err(|problem| usage(problem.to_string()))?;
    let in_capsule_bytes = u32::try_from(in_capsule)
        .ok()
        .filter(|bytes| bytes % 16 == 0 && *bytes <= 1 << 20)
        .ok_or_else(|| usage("valid: multiples of 16 bytes up to 1MiB".to_owned()))?;
    let (hdgst, ddgst) = match args.digest {
        Digest::None => (false, false),
        Digest::Header => (true, false),
        Digest::Data => (false, true),
        Digest::Both => (true, true),
    };
    let defaults = tcp::Settings::default();
    let settings = ServerSettings {
        tcp: tcp::Settings {
            in_capsule_bytes,
            queue_depth: args.queue_depth,
            digests: Digests::default().with_hdgst(hdgst).with_ddgst(ddgst),
            ..defaults
        },
        limits: args
            .limits
            .limits(measure.available_bytes(), defaults.transfer_bytes)?,
        spin: duration("--spin", &args.spin)?,
    };
    settings
        .tcp
        .check()
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(settings)
}

fn config(args: &Args) -> Result<DriveConfig, Failure> {
    if let (Some(limit), Data::None) = (&args.data_limit, args.data) {
        return Err(Failure::usage(format!(
            "--data-limit {limit}: with --data none the drive keeps no data that could be limited"
        )));
    }
    let mut config = profiles::load(&args.profile, &args.set)?.config;
    config.data = match args.data {
        Data::None => DataStore::None,
        Data::Memory => DataStore::Memory,
    };
    if args.no_timing {
        config = profile::untimed(&config);
    }
    profile::check(&config)
        .map_err(|broken| Failure::input(anyhow::anyhow!("{}: {}", args.profile, broken[0])))?;
    Ok(config)
}

/// The faults that the drive starts with.
fn faults(args: &Args, config: &DriveConfig) -> Result<FaultPlan, Failure> {
    let Some(file) = &args.faults else {
        return Ok(FaultPlan::default());
    };
    let text = files::read(file)?;
    let plan = FaultPlan::parse(file, &text, &[]).map_err(Failure::input)?;
    plan.check(config)
        .map_err(|problem| Failure::input(anyhow::anyhow!("{file}: {problem}")))?;
    Ok(plan)
}

/// The name of the subsystem.
fn nqn(args: &Args, config: &DriveConfig) -> String {
    let default = || format!("nqn.2024-01.io.github.zonelab:{}", config.name);
    args.nqn.clone().unwrap_or_else(default)
}

fn subsystem(
    args: &Args,
    (drive, plan, measure): (Drive, FaultPlan, &Measure),
    (nqn, server): (&str, &ServerSettings),
    (address, tls): (SocketAddr, Option<SocketAddr>),
) -> Result<Served, Failure> {
    let mut settings = SubsystemSettings::new(nqn);
    settings.is_shared = args.shared;
    settings.limits = TransportLimits {
        in_capsule_bytes: server.tcp.in_capsule_bytes,
        queue_depth: server.tcp.queue_depth,
    };
    settings.max_transfer_bytes = server.tcp.transfer_bytes;
    // Connections are what is bounded: each controller has one at least.
    let connections = args.limits.connections().min(16384) as u16;
    settings.controllers = connections;
    settings.discovery_controllers = connections;
    if !args.allow_host.is_empty() {
        settings.allowed_hosts = Some(args.allow_host.clone());
    }
    let places = [(Some(address), false), (tls, true)];
    for (at, has_tls) in places.into_iter().filter_map(|(at, tls)| Some((at?, tls))) {
        if !at.ip().is_unspecified() {
            settings.addresses.push(DiscoveryAddress {
                address: at.ip(),
                port: at.port(),
                has_tls,
            });
        }
    }
    let mut drive = FaultyDrive::new(drive, plan);
    let layer = args.layer.start(&args.profile, &mut drive, measure)?;
    let made = Served::with_layer(drive, layer, settings);
    made.map_err(|error| Failure::usage(error.to_string()))
}
