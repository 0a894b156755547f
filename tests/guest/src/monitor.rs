//! QEMU's machine protocol: JSON, one message a line.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// What a capture is called.
const CAPTURE: &str = "capture";
/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the machine around the guest.
pub(crate) struct Monitor {
    stream: BufReader<TcpStream>,
}

impl Monitor {
    pub(crate) fn open(stream: TcpStream) -> Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut monitor = Self {
            stream: BufReader::new(stream),
        };
        let greeting = monitor.receive()?;
        ensure!(greeting.get("QMP").is_some(), "QEMU greets with {greeting}");
        monitor.call("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Makes a port of the guest reachable, and tells by which of the host's
    /// loopback, which the system chooses.
    pub(crate) fn forward(&mut self, guest_port: u16) -> Result<SocketAddr> {
        let answer = self.human(&format!("hostfwd_add tcp:127.0.0.1:0-:{guest_port}"))?;
        ensure!(answer.trim().is_empty(), "QEMU forwards no port: {answer}");
        let table = self.human("info usernet")?;
        let port = forwarded(&table, guest_port);
        let port = port.with_context(|| format!("QEMU forwards no port:\n{table}"))?;
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }

    /// Writes what crosses the guest's network to a file from now on.
    pub(crate) fn capture(&mut self, file: &str) -> Result<()> {
        // Whole segments, as the guest hands them over.
        let arguments = json!({
            "qom-type": "filter-dump", "id": CAPTURE, "netdev": "net", "file": file,
            "maxlen": 1 << 17,
        });
        self.call("object-add", arguments).map(drop)
    }

    /// Ends that.
    pub(crate) fn end_capture(&mut self) -> Result<()> {
        self.call("object-del", json!({ "id": CAPTURE })).map(drop)
    }

    /// Takes a device out of the machine. The guest is told, and lets go of it.
    pub(crate) fn remove(&mut self, id: &str) -> Result<()> {
        self.call("device_del", json!({ "id": id })).map(drop)
    }

    /// Lets a disk do so many writes a second; 0: as many as it can.
    pub(crate) fn throttle(&mut self, disk: &str, writes_per_s: u32) -> Result<()> {
        let arguments = json!({
            "device": disk, "iops_wr": writes_per_s,
            "bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0,
        });
        self.call("block_set_io_throttle", arguments).map(drop)
    }

    /// Writes each of these events of QEMU to a file from now on, one a line; without a
    /// name, ends that.
    pub(crate) fn trace(&mut self, event: Option<(&str, &str)>) -> Result<()> {
        let lines = match event {
            Some((event, file)) => [format!("logfile {file}"), format!("log trace:{event}")],
            None => ["log none".to_owned(), "trace-event * off".to_owned()],
        };
        for line in lines {
            let answer = self.human(&line)?;
            ensure!(answer.trim().is_empty(), "QEMU, to `{line}`: {answer}");
        }
        Ok(())
    }

    /// How many writes a disk has done.
    pub(crate) fn writes(&mut self, disk: &str) -> Result<u64> {
        let disks = self.call("query-blockstats", json!({}))?;
        let mut disks = disks.as_array().into_iter().flatten();
        let found = disks.find(|found| found["device"] == disk);
        let count = found.and_then(|found| found["stats"]["wr_operations"].as_u64());
        count.with_context(|| format!("QEMU has no disk {disk}"))
    }

    fn human(&mut self, line: &str) -> Result<String> {
        let answer = self.call("human-monitor-command", json!({ "command-line": line }))?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    fn call(&mut self, method: &str, arguments: Value) -> Result<Value> {
        let message = json!({ "execute": method, "arguments": arguments });
        writeln!(self.stream.get_mut(), "{message}")?;
        loop {
            let message = self.receive()?;
            if let Some(error) = message.get("error") {
                bail!("QEMU refuses {method}: {error}");
            }
            if let Some(result) = message.get("return") {
                return Ok(result.clone());
            }
            // Otherwise an event, of which none concerns us.
        }
    }

    fn receive(&mut self) -> Result<Value> {
        let mut line = String::new();
        let count = self
            .stream
            .read_line(&mut line)
            .context("QEMU does not answer")?;
        ensure!(count > 0, "QEMU is gone");
        serde_json::from_str(&line).with_context(|| format!("QEMU said {line:?}"))
    }
}

/// The host's port of the last rule for a guest's port, in the table of
/// `info usernet`.
fn forwarded(table: &str, guest_port: u16) -> Option<u16> {
    let rules = table
        .lines()
        .rev()
        .filter(|line| line.contains("HOST_FORWARD"));
    rules
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, host, _, guest, ..] = words[..] else {
                return None;
            };
            (guest.parse() == Ok(guest_port)).then(|| host.parse().ok())?
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_table_of_rules() {
        let table = "Hub -1 (net0):\r\n\
            \x20 Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n\
            \x20 TCP[ESTABLISHED]   30       10.0.2.15  4420       127.0.0.1 40001     0     0\r\n\
            \x20 TCP[HOST_FORWARD]  12       127.0.0.1 37017       10.0.2.15  4420     0     0\r\n";
        assert_eq!(forwarded(table, 4420), Some(37017));
        assert_eq!(forwarded(table, 4421), None);
    }
}
