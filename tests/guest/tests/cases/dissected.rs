//! What our target says, as tshark reads it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::{Drive, Guest};

use crate::served::Served;

/// The types of PDU that the two ends of such a session send: ICReq, ICResp,
/// both requests to terminate, capsules, data both ways, R2T.
const TYPES: [&str; 9] = ["0", "1", "2", "3", "4", "5", "6", "7", "9"];
/// Frames in which tshark finds what should not be there.
const MALFORMED: &str = "_ws.malformed || _ws.expert.group == \"Malformed\" \
                         || _ws.expert.severity == \"Error\" || nvme-tcp.unknown_data";
/// What tshark says of a digest that is right.
const GOOD: &str = "1";

/// Every PDU of a session with Linux has the fields of its type and nothing
/// else, and the digests that it should have.
pub(crate) fn by_tshark(guest: &mut Guest) -> Result<()> {
    let served = Served::start()?;
    let file = guest.capture()?;
    guest.ok("modprobe nvme_tcp")?;
    guest.ok(&format!("nvme discover {}", served.at()))?;
    for digests in [
        "",
        "--hdr-digest",
        "--data-digest",
        "--hdr-digest --data-digest",
    ] {
        session(guest, &served, digests)?;
    }
    break_off(guest, &served)?;
    guest.end_capture()?;

    let port = served.port();
    let pdus = dissect(&file, port, "nvme-tcp")?;
    let types: BTreeSet<&str> = pdus.iter().flat_map(|pdu| pdu.types()).collect();
    ensure!(types == BTreeSet::from(TYPES), "types of PDUs: {types:?}");
    let wrong: Vec<_> = pdus.iter().filter(|pdu| !pdu.has_good_digests()).collect();
    ensure!(wrong.is_empty(), "wrong digests: {wrong:?}");
    let digests = pdus.iter().filter(|pdu| !pdu.digests().is_empty()).count();
    ensure!(digests > 50, "only {digests} frames with digests");
    let malformed = dissect(&file, port, MALFORMED)?;
    ensure!(malformed.is_empty(), "malformed: {malformed:?}");
    Ok(())
}

/// Reads, writes and appends of all sizes, admin commands, and errors.
fn session(guest: &mut Guest, served: &Served, digests: &str) -> Result<()> {
    let controller = served.connect_with(guest, digests)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    let (start, last) = (drive.start_lba(3), drive.start_lba(4) - 1);
    guest.ok(&drive.random(64, "/scratch/data"))?;
    // In the capsule, and asked for.
    guest.ok(&drive.write(start, 1, "/scratch/data"))?;
    guest.ok(&drive.write(start + 1, 64, "/scratch/data"))?;
    guest.ok(&drive.append(start, 2, "/scratch/data"))?;
    guest.ok(&drive.read(start + 1, 64, "/scratch/back"))?;
    guest.ok("cmp /scratch/data /scratch/back")?;
    guest.fails(&drive.write(last, 1, "/scratch/data"))?;
    for command in [
        "id-ctrl",
        "id-ns -n 1",
        "smart-log",
        "error-log",
        "effects-log",
        "list-ns",
    ] {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        guest.ok(&format!("nvme {name} /dev/{controller} {rest}"))?;
    }
    guest.ok(&format!("nvme flush /dev/{controller} -n 1"))?;
    drive.manage(guest, "finish-zone", 3)?;
    drive.reset_all(guest)?;
    served.disconnect(guest)
}

/// A host that breaks the protocol, and one that says that we do.
fn break_off(guest: &mut Guest, served: &Served) -> Result<()> {
    let request = "\\000\\000\\200\\000\\200\\000\\000\\000";
    // Two connection requests; a request, and a request to terminate with the
    // header of a response.
    let again = format!("printf '{request}'; head -c 120 /dev/zero");
    let terminate = "printf '\\002\\000\\030\\000\\040\\000\\000\\000\\001\\000\\002\\000'; \
                     head -c 12 /dev/zero; printf '\\005\\000\\030\\000\\030\\000\\000\\000'";
    let (host, port) = (served.host(), served.port());
    guest.ok(&format!("{{ {again}; }} > /scratch/request"))?;
    for second in [&again[..], terminate] {
        // At once, since we end as soon as we know.
        // Open until the other end has closed it, so that its last words are captured.
        guest.ok(&format!(
            "{{ {second}; }} > /scratch/second
             rm -f /scratch/closed
             {{
                 cat /scratch/request; sleep 1; cat /scratch/second
                 until [ -e /scratch/closed ]; do sleep 0.1; done
             }} | {{ nc {host} {port} > /dev/null; touch /scratch/closed; }}"
        ))?;
    }
    Ok(())
}

/// What tshark says of a frame with PDUs.
#[derive(Debug)]
struct Frame(Vec<String>);

impl Frame {
    fn types(&self) -> impl Iterator<Item = &str> {
        self.values(1)
    }

    fn digests(&self) -> Vec<&str> {
        self.values(2).chain(self.values(3)).collect()
    }

    fn has_good_digests(&self) -> bool {
        self.digests().iter().all(|status| *status == GOOD)
    }

    fn values(&self, column: usize) -> impl Iterator<Item = &str> {
        let values = self.0.get(column).map_or("", |values| values);
        values.split(',').filter(|value| !value.is_empty())
    }
}

/// The frames of a capture that a filter lets through.
fn dissect(file: &Path, port: u64, filter: &str) -> Result<Vec<Frame>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).arg("-2");
    command.args(["-d", &format!("tcp.port=={port},nvme-tcp"), "-Y", filter]);
    for preference in ["check_hdgst", "check_ddgst"] {
        command.args(["-o", &format!("nvme-tcp.{preference}:TRUE")]);
    }
    command.args(["-T", "fields", "-E", "separator=;"]);
    for field in [
        "frame.number",
        "nvme-tcp.type",
        "nvme-tcp.hdgst.status",
        "nvme-tcp.ddgst.status",
        "_ws.col.Info",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output().context("cannot run tshark")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tshark: {errors}");
    let text = String::from_utf8(output.stdout)?;
    let fields = |line: &str| Frame(line.split(';').map(str::to_owned).collect());
    Ok(text.lines().map(fields).collect())
}
