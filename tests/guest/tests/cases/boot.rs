//! The guest itself.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::{Result, ensure};
use zonelab_guest_tests::{Guest, HOST, Image};

/// The kernel that runs is that of the image.
pub(crate) fn release(guest: &mut Guest, image: &Image) -> Result<()> {
    let release = guest.ok("uname -r")?;
    ensure!(release.trim() == image.release, "{release}");
    Ok(())
}

/// Everything that the cases need can be loaded.
pub(crate) fn modules(guest: &mut Guest, _: &Image) -> Result<()> {
    let modules =
        "nvme nvme_fabrics nvme_tcp nvmet nvmet_tcp null_blk zonefs f2fs btrfs ext4 xfs loop";
    guest.ok(&format!("modprobe -a {modules}"))?;
    let systems = guest.ok("cat /proc/filesystems")?;
    for system in ["zonefs", "f2fs", "btrfs", "ext4", "xfs", "configfs"] {
        ensure!(systems.contains(system), "no {system}:\n{systems}");
    }
    guest.ok("test -c /dev/nvme-fabrics")?;
    Ok(())
}

/// Every program finds its libraries.
pub(crate) fn programs(guest: &mut Guest, _: &Image) -> Result<()> {
    for script in [
        "nvme version",
        "/later/nvme version",
        "/later/tlshd --version",
        "keyctl --version",
        "fio --version",
        "blkzone --version",
        "zbd help | grep Usage",
        "mkfs.btrfs --version",
        "btrfs --version",
        "mkfs.ext4 -V",
        "mkfs.xfs -V",
        "xfs_repair -V",
        // The shell would take its own.
        "/bin/blkdiscard --version",
        "/bin/blkid --version",
        "lsblk --version",
        // These have no option that does nothing but succeed.
        "mkfs.f2fs 2>&1 | grep Usage",
        "fsck.f2fs 2>&1 | grep Usage",
        "fsck.ext4 2>&1 | grep Usage",
    ] {
        guest.ok(script)?;
    }
    Ok(())
}

/// Exit codes, output, limits and jobs of the channel.
pub(crate) fn scripts_and_limits(guest: &mut Guest, _: &Image) -> Result<()> {
    let output = guest.run("echo out; echo err >&2; exit 7")?;
    ensure!(
        output.code == 7 && output.text == "out\nerr\n",
        "{output:?}"
    );
    let large = guest.ok("yes 0123456 | head -c 4194304")?;
    ensure!(large.len() == 4 << 20, "{} bytes came", large.len());
    let error = guest.run_for(Duration::from_secs(12), "echo before; sleep 1000");
    let error = format!("{:#}", error.expect_err("it sleeps longer"));
    // The last is the console's: where the kernel keeps what sleeps.
    for part in ["took longer", "before", "sleep 1000", "nanosleep"] {
        ensure!(error.contains(part), "no {part}: {error}");
    }
    let job = guest.spawn("until [ -e /run/flag ]; do sleep 0.1; done; echo seen; exit 3")?;
    guest.ok("touch /run/flag")?;
    let output = guest.wait(&job, Duration::from_secs(120))?;
    ensure!(output.code == 3 && output.text == "seen\n", "{output:?}");
    Ok(())
}

/// The guest connects to a port of the host's loopback.
pub(crate) fn loopback_of_the_host(guest: &mut Guest, _: &Image) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let peer = std::thread::spawn(move || -> Result<String> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut word = [0; 5];
        stream.read_exact(&mut word)?;
        stream.write_all(b"world\n")?;
        Ok(String::from_utf8_lossy(&word).into_owned())
    });
    let answer = guest.ok(&format!("echo hello | nc -w 120 {HOST} {port}"))?;
    ensure!(answer == "world\n", "{answer:?}");
    let word = peer.join().expect("the peer does not panic")?;
    ensure!(word == "hello", "{word:?}");
    Ok(())
}
