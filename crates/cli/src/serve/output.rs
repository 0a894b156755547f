//! What `serve` prints.

use std::net::SocketAddr;

use zonelab_config::units::fmt_size;
use zonelab_device::Nanos;
use zonelab_lab::table::{Column, Table};
use zonelab_live::layer::LayerState;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::profile;
use zonelab_target::controller::SubsystemSettings;
use zonelab_target::server::{QueueLateness, ServerReport};

use super::store::Summary;
use super::{Args, layer};
use crate::console;
use crate::exit::Failure;

/// Says what is served, and how to connect.
pub(super) fn announce(
    args: &Args,
    config: &DriveConfig,
    (settings, store, layer): (&SubsystemSettings, Option<&Summary>, Option<&LayerState>),
    (address, tls, web): (SocketAddr, Option<SocketAddr>, Option<SocketAddr>),
) -> Result<(), Failure> {
    let authenticates = args.authentication.is_required();
    // What hosts see of a drive under a layer has no zones.
    let refused = layer.is_none().then(|| profile::refused_by_linux(config));
    let refused = refused.flatten();
    warn(authenticates, (address, web), refused.as_deref());
    let web = web.map(|web| match web.ip().is_unspecified() {
        true => format!("http://localhost:{}/", web.port()),
        false => format!("http://{web}/"),
    });
    let nqn = &settings.nqn;
    if args.json {
        let line = serde_json::json!({
            "schema": 1, "event": "listening", "address": address.ip().to_string(),
            "port": address.port(), "nqn": nqn, "profile": config.name,
            "authentication": authenticates,
            "tls_port": tls.map(|tls| tls.port()),
            "web": web,
            "store": store.map(Summary::as_json),
            "ftl": layer.map(layer::as_json),
            "refused_by_linux": refused,
        });
        return console::print(&format!("{line}\n"));
    }
    let zones = &config.zones;
    let block = u64::from(config.lba_bytes);
    let (count, size) = (zones.count, fmt_size(zones.size_lbas * block));
    let capacity = fmt_size(zones.capacity_lbas * block);
    let where_to = format!("-t tcp -a {} -s {}", address.ip(), address.port());
    let timing = if args.no_timing {
        ", without its times"
    } else {
        ""
    };
    let key = if authenticates {
        " --dhchap-secret KEY"
    } else {
        ""
    };
    let on_them = layer.map_or_else(String::new, layer::line);
    let page = web.map_or_else(String::new, |web| format!("What it does: {web}\n"));
    let secure = tls.map_or_else(String::new, |tls| {
        let (ip, port) = (tls.ip(), tls.port());
        format!("With TLS: nvme connect -t tcp -a {ip} -s {port} -n {nqn} --tls\n")
    });
    console::print(&format!(
        "{}{}{timing}: {count} zones of {size}, {capacity} writable; blocks of {}\n\
         {on_them}{nqn} listens on {address}; on a Linux host:\n\n  \
         modprobe nvme-tcp\n  \
         nvme discover {where_to}\n  \
         nvme connect {where_to} -n {nqn}{key}\n\n\
         {secure}{page}Interrupt it (Ctrl-C) to end.\n",
        store.map_or_else(String::new, Summary::line),
        config.name,
        fmt_size(block),
    ))
}

/// Says what may be a mistake.
fn warn(
    authenticates: bool,
    (address, web): (SocketAddr, Option<SocketAddr>),
    refused_by_linux: Option<&str>,
) {
    if !address.ip().is_loopback() && !authenticates {
        tell!(
            "zonelab: {address} is no address of the loopback, and without --host-key there is no \
             authentication: whoever reaches it may read and write the drive"
        );
    }
    if let Some(web) = web.filter(|web| !web.ip().is_loopback()) {
        tell!(
            "zonelab: {web} is no address of the loopback: whoever reaches it sees what the \
             drive does"
        );
    }
    if let Some(why) = refused_by_linux {
        tell!(
            "zonelab: Linux makes no block device of this drive, only /dev/ngXnY: {why}; \
             --set zones.size=SIZE changes that"
        );
    }
}

/// Queues with responses later than `most`.
pub(super) fn late(report: &ServerReport, most: Nanos) -> Vec<QueueLateness> {
    let queues = report.lateness.iter().copied();
    queues.filter(|queue| queue.p99 > most).collect()
}

/// Says what the server did.
pub(super) fn conclude(
    args: &Args,
    report: &ServerReport,
    late: &[QueueLateness],
) -> Result<(), Failure> {
    if args.json {
        return console::print(&format!("{}\n", as_json(report, late)));
    }
    let mut table = Table::new([
        Column::number("queue"),
        Column::number("commands"),
        Column::number("late P50"),
        Column::number("P99"),
        Column::number("P99.9"),
        Column::number("most"),
    ]);
    for queue in &report.lateness {
        let times = [queue.p50, queue.p99, queue.p999, queue.max];
        let numbers = [queue.qid.to_string(), queue.commands.to_string()];
        let row = numbers
            .into_iter()
            .chain(times.map(|time| time.to_string()));
        table.push(row.map(Into::into));
    }
    let connections = report.connections;
    let mut text = format!(
        "\n{} connections, {} turned away, {} broken\n",
        connections.accepted, connections.turned_away, connections.broken
    );
    if !report.lateness.is_empty() {
        text.push_str(&table.to_text(&console::style()));
    }
    for queue in late {
        text.push_str(&format!(
            "too late: queue {}, P99 {} is beyond {}\n",
            queue.qid,
            queue.p99,
            args.max_lateness.as_deref().unwrap_or_default()
        ));
    }
    console::print(&text)
}

fn as_json(report: &ServerReport, late: &[QueueLateness]) -> serde_json::Value {
    let connections = report.connections;
    let queues: Vec<_> = report
        .lateness
        .iter()
        .map(|queue| {
            serde_json::json!({
                "queue": queue.qid, "commands": queue.commands,
                "lateness_ns": {
                    "p50": queue.p50.0, "p99": queue.p99.0,
                    "p99_9": queue.p999.0, "max": queue.max.0,
                },
                "is_too_late": late.iter().any(|one| one.qid == queue.qid),
            })
        })
        .collect();
    serde_json::json!({
        "schema": 1, "event": "ended", "connections": connections.accepted,
        "turned_away": connections.turned_away, "broken": connections.broken, "queues": queues,
    })
}
