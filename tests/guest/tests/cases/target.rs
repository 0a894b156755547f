//! The kernel's own NVMe/TCP target, which an initiator on the host can reach.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::{Drive, Guest};

use crate::workload;

pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:5a4f4e45-4c41-4220-8755-455354000002";
pub(crate) const PORT: u16 = 4420;

/// Exports the zoned drive of the guest, with every host allowed.
pub(crate) fn export(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let device = drive.block();
    guest.ok(&format!(
        "set -e
        modprobe -a nvmet nvmet_tcp nvme_tcp
        mount -t configfs config /sys/kernel/config
        cd /sys/kernel/config/nvmet
        mkdir subsystems/{NQN}
        echo 1 > subsystems/{NQN}/attr_allow_any_host
        mkdir subsystems/{NQN}/namespaces/1
        echo -n {device} > subsystems/{NQN}/namespaces/1/device_path
        echo 1 > subsystems/{NQN}/namespaces/1/enable
        mkdir ports/1
        echo tcp > ports/1/addr_trtype
        echo ipv4 > ports/1/addr_adrfam
        echo 0.0.0.0 > ports/1/addr_traddr
        echo {PORT} > ports/1/addr_trsvcid
        ln -s /sys/kernel/config/nvmet/subsystems/{NQN} ports/1/subsystems/{NQN}"
    ))?;
    Ok(())
}

/// Takes it back.
pub(crate) fn withdraw(guest: &mut Guest) -> Result<()> {
    guest.ok(&format!(
        "set -e
        cd /sys/kernel/config/nvmet
        rm ports/1/subsystems/{NQN}
        rmdir ports/1
        echo 0 > subsystems/{NQN}/namespaces/1/enable
        rmdir subsystems/{NQN}/namespaces/1
        rmdir subsystems/{NQN}
        cd /
        umount /sys/kernel/config"
    ))?;
    Ok(())
}

/// The target answers on the host's loopback, and the kernel's own initiator
/// finds, uses and leaves it.
pub(crate) fn of_the_kernel(guest: &mut Guest) -> Result<()> {
    let drive = Drive::open(guest, "nvme0", 1, None)?;
    drive.reset_all(guest)?;
    export(guest, &drive)?;
    let address = guest.forward(PORT)?;
    let mut stream = TcpStream::connect(address).context("no target on the host's loopback")?;
    initialise(&mut stream)?;
    drop(stream);

    let at = format!("-t tcp -a 127.0.0.1 -s {PORT}");
    let found = guest.ok(&format!("nvme discover {at}"))?;
    ensure!(found.contains(NQN), "{found}");
    guest.ok(&format!("nvme connect {at} -n {NQN}"))?;
    let remote = Drive::open(guest, "nvme1", 1, None)?;
    ensure!(remote.zones == drive.zones, "{remote:?}");
    workload::sequential(guest, &remote)?;
    guest.ok(&format!("nvme disconnect -n {NQN}"))?;
    withdraw(guest)
}

/// Opens an NVMe/TCP connection: ICReq and ICResp, 128 bytes each.
fn initialise(stream: &mut TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let mut request = [0; 128];
    // Type 0, header of 128 bytes, PDU of 128 bytes; version 0, no digests.
    request[2] = 128;
    request[4] = 128;
    stream.write_all(&request)?;
    let mut response = [0; 128];
    stream
        .read_exact(&mut response)
        .context("the target does not answer")?;
    ensure!(
        response[..8] == [1, 0, 128, 0, 128, 0, 0, 0],
        "{:?}",
        &response[..8]
    );
    Ok(())
}
