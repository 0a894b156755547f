//! The conventional namespace of `zonelab serve --ftl`, when its drive loses power, its server
//! is killed or its zones fail.
//!
//! A host that reconnects by itself goes on as if nothing had been, and what was acknowledged
//! and not flushed is gone without its knowledge. So what goes on here over a loss is
//! synchronous, or a file system that is frozen; any other file system is mounted again.

use anyhow::{Context, Result, bail, ensure};
use zonelab_guest_tests::Guest;

use super::{
    EXT4, LIMIT, REPLACED, System, TRIES, XFS, few_zones, kept, of_pass, replacing, set_tries,
};
use crate::ServedCase;
use crate::killed::{IGNORE_SIGPIPE, PATIENCE, StoreFile};
use crate::served::Served;
use crate::served::control::Control;

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    ("served::ftl::losses::ext4_and_power_is_lost", |guest| {
        power_is_lost(guest, &EXT4)
    }),
    ("served::ftl::losses::xfs_and_power_is_lost", |guest| {
        power_is_lost(guest, &XFS)
    }),
    ("served::ftl::losses::a_frozen_ext4_goes_on", |guest| {
        frozen_goes_on(guest, &EXT4)
    }),
    ("served::ftl::losses::a_frozen_xfs_goes_on", |guest| {
        frozen_goes_on(guest, &XFS)
    }),
    (
        "served::ftl::losses::synchronous_writes_under_collection",
        synchronous_writes_under_collection,
    ),
    (
        "served::ftl::losses::without_its_cache_writes_are_durable",
        without_its_cache_writes_are_durable,
    ),
    (
        "served::ftl::losses::zones_become_read_only_under_ext4",
        zones_become_read_only_under_ext4,
    ),
];

/// The kernel forgets a drive that it loses, at once.
const NO_PATIENCE: &str = "--ctrl-loss-tmo=0";
/// Metrics that are looked at in several places.
const MOUNTS: &str = "zonelab_ftl_mounts_total";
const COLLECTED: &str = "zonelab_ftl_collected_zones_total";
const TRIMMED: &str = "zonelab_ftl_trimmed_bytes_total";
const HOST_BYTES: &str = "zonelab_ftl_written_bytes_total{purpose=\"host\"}";
/// Looks at a metric, ten a second.
const LOOKS: u32 = 3000;

/// What is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The server, by SIGKILL.
    Server,
    /// The power of the drive, while its server goes on.
    Power,
}

/// A drive in a file that is served with the layer, and takes orders.
struct Bench {
    served: Served,
    options: Vec<String>,
    control: Control,
    file: StoreFile,
}

impl Bench {
    /// Serves a new one, with more options.
    fn start(name: &str, more: &[&str]) -> Result<Self> {
        let control = Control::new();
        let options = ["--ftl", "--web", "127.0.0.1:0", "--control"];
        let options = [&options[..], &[control.name()?], more].concat();
        let file = StoreFile::new(name);
        let served = file.serve_with(0, &options)?;
        let options = options.into_iter().map(str::to_owned).collect();
        Ok(Self {
            served,
            options,
            control,
            file,
        })
    }

    /// Connects the guest, and gives the name of the controller.
    fn connect(&self, guest: &mut Guest, patience: &str) -> Result<String> {
        self.served.connect_with(guest, patience)
    }

    /// Something is lost, and is there again where it was, or will be soon.
    fn lose(&mut self, loss: Loss) -> Result<()> {
        match loss {
            Loss::Server => {
                let port = self.served.port();
                self.served.kill()?;
                let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
                self.served = self.file.serve_with(port, &options)?;
            }
            Loss::Power => {
                self.control.fault(&["power-cut", "--off", "1s"])?;
            }
        }
        Ok(())
    }

    /// Waits until a metric is at least so large.
    fn until(&self, guest: &mut Guest, metric: &str, least: u64) -> Result<()> {
        for _ in 0..LOOKS {
            if self.served.metric(metric)? >= least {
                return Ok(());
            }
            guest.ok("sleep 0.1")?;
        }
        let found = self.served.metric(metric)?;
        bail!("{metric} stays {found}, below {least}")
    }
}

/// Waits until the program of [`replacing`] has replaced so many files.
fn until_told(guest: &mut Guest, files: u32) -> Result<()> {
    let told = "$(cat /scratch/told 2> /dev/null | wc -l)";
    let script = format!("until [ \"{told}\" -ge {files} ]; do sleep 0.1; done");
    guest.ok_for(LIMIT, &script)?;
    Ok(())
}

/// Makes a file system, and mounts it at /mnt.
fn make(guest: &mut Guest, system: &System, block: &str) -> Result<()> {
    guest.ok_for(LIMIT, &format!("{} {block}", system.make))?;
    mount(guest, system, block)?;
    guest.ok("mkdir /mnt/kept")?;
    Ok(())
}

/// Mounts it, with blocks of files that are replaced deallocated at once.
fn mount(guest: &mut Guest, system: &System, block: &str) -> Result<()> {
    let name = system.name;
    let script = format!("modprobe {name}; mount -t {name} -o discard {block} /mnt");
    guest.ok_for(LIMIT, &script)?;
    Ok(())
}

/// Every synchronised file is there, and the file system is sound. It is unmounted then.
fn is_whole(guest: &mut Guest, system: &System, block: &str) -> Result<()> {
    guest.ok_for(LIMIT, &kept())?;
    guest.ok_for(LIMIT, "umount /mnt")?;
    guest.ok_for(LIMIT, &format!("{} {block}", system.check))?;
    Ok(())
}

/// Power is lost under load, and the host forgets the drive. The server goes on, and mounts
/// the layer again when power is back.
fn power_is_lost(guest: &mut Guest, system: &System) -> Result<()> {
    let mut bench = Bench::start(&format!("power-{}", system.name), &[])?;
    let mut controller = bench.connect(guest, NO_PATIENCE)?;
    make(guest, system, &format!("/dev/{controller}n1"))?;
    for turn in 0..2 {
        guest.ok("rm -f /scratch/told")?;
        let writer = guest.spawn(&replacing())?;
        until_told(guest, REPLACED)?;
        bench.until(guest, TRIMMED, 1)?;
        bench.lose(Loss::Power)?;
        let gone = format!("while [ -e /sys/class/nvme/{controller} ]; do sleep 0.1; done");
        guest.ok_for(LIMIT, &gone)?;
        guest.wait(&writer, LIMIT)?;
        guest.ok_for(LIMIT, "umount /mnt")?;
        bench.until(guest, MOUNTS, turn + 2)?;
        controller = bench.connect(guest, NO_PATIENCE)?;
        let block = format!("/dev/{controller}n1");
        // The journal of the file system is replayed by a mount.
        mount(guest, system, &block)?;
        is_whole(guest, system, &block).with_context(|| format!("turn {turn}"))?;
        mount(guest, system, &block)?;
    }
    guest.ok_for(LIMIT, "umount /mnt")?;
    bench.served.disconnect(guest)
}

/// A frozen file system has flushed everything: the kernel reconnects by itself, and the file
/// system goes on as it is, without another mount.
fn frozen_goes_on(guest: &mut Guest, system: &System) -> Result<()> {
    let mut bench = Bench::start(&format!("frozen-{}", system.name), &[])?;
    let controller = bench.connect(guest, PATIENCE)?;
    let block = format!("/dev/{controller}n1");
    make(guest, system, &block)?;
    let writer = guest.spawn(&replacing())?;
    for (turn, loss) in (1..).zip([Loss::Server, Loss::Power]) {
        until_told(guest, turn * REPLACED)?;
        guest.ok_for(LIMIT, "fsfreeze --freeze /mnt")?;
        guest.ok("dmesg -c > /dev/null")?;
        bench.lose(loss)?;
        let back = "until dmesg | grep -q 'Successfully reconnected'; do sleep 0.1; done";
        let back = guest.ok_for(LIMIT, back);
        back.with_context(|| format!("{loss:?}"))?;
        guest.ok_for(LIMIT, "fsfreeze --unfreeze /mnt")?;
    }
    until_told(guest, 3 * REPLACED)?;
    guest.ok("touch /scratch/stop")?;
    let ended = guest.wait(&writer, LIMIT)?;
    ensure!(ended.code == 0, "no file failed to be replaced: {ended:?}");
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    is_whole(guest, system, &block)?;
    // What an unmounted file system has written was flushed.
    bench.lose(Loss::Server)?;
    mount(guest, system, &block)?;
    is_whole(guest, system, &block)?;
    bench.served.disconnect(guest)
}

/// Server and power are lost in turn while the collector works, once in each pass over all
/// blocks, and the kernel goes on by itself. Each block is as that pass wrote it.
fn synchronous_writes_under_collection(guest: &mut Guest) -> Result<()> {
    let more = [&["--no-timing"], &few_zones()[..]].concat();
    let mut bench = Bench::start("ftl-collection", &more)?;
    let controller = bench.connect(guest, PATIENCE)?;
    let fio = |pass: u32, more: &str| {
        format!(
            "fio --name=synchronous --filename=/dev/{controller}n1 --rw=randwrite --bs=16k \
             --direct=1 --size=100% {} --randseed={pass} --allrandrepeat=1 {more}",
            of_pass(pass)
        )
    };
    guest.ok_for(
        LIMIT,
        &fio(1, "--ioengine=libaio --iodepth=8 --do_verify=0"),
    )?;
    let size = bench.served.metric("zonelab_ftl_size_bytes")?;
    set_tries(guest, u8::MAX)?;
    for (pass, loss) in (2..).zip([Loss::Power, Loss::Server, Loss::Power]) {
        let written = bench.served.metric(HOST_BYTES)?;
        let synchronous = fio(pass, "--ioengine=psync --sync=1 --do_verify=0");
        let writer = guest.spawn(&format!("{IGNORE_SIGPIPE} {synchronous}"))?;
        bench.until(guest, HOST_BYTES, written + size / 4)?;
        bench.lose(loss)?;
        let ended = guest.wait(&writer, LIMIT)?;
        ensure!(ended.code == 0, "{loss:?}: {ended:?}");
        // Since the loss, as the counters begin again with each mount.
        let counts = (
            bench.served.metric(HOST_BYTES)?,
            bench.served.metric(COLLECTED)?,
        );
        ensure!(counts.0 < size && counts.1 > 0, "{loss:?}: {counts:?}");
        guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
        let found = guest.ok_for(LIMIT, &fio(pass, "--verify_only"));
        found.with_context(|| format!("{loss:?}"))?;
    }
    set_tries(guest, TRIES)?;
    bench.served.disconnect(guest)
}

/// A host that switches the volatile write cache off need not flush.
fn without_its_cache_writes_are_durable(guest: &mut Guest) -> Result<()> {
    let mut bench = Bench::start("ftl-cache", &["--no-timing"])?;
    let controller = bench.connect(guest, PATIENCE)?;
    let block = format!("/dev/{controller}n1");
    guest.ok("head -c 1048576 /dev/urandom > /scratch/data")?;
    // Volatile Write Cache.
    guest.ok(&format!("nvme set-feature /dev/{controller} -f 6 -v 0"))?;
    guest.ok(&format!(
        "dd if=/scratch/data of={block} bs=16k oflag=direct"
    ))?;
    bench.lose(Loss::Server)?;
    let read = "bs=16k count=64 iflag=direct && cmp /scratch/data /scratch/read";
    guest.ok_for(LIMIT, &format!("dd if={block} of=/scratch/read {read}"))?;
    bench.served.disconnect(guest)
}

/// Zones that can only be read lose nothing: writes go to others, and the file system does
/// not hear of it.
fn zones_become_read_only_under_ext4(guest: &mut Guest) -> Result<()> {
    let mut bench = Bench::start("read-only", &["--no-timing"])?;
    let controller = bench.connect(guest, PATIENCE)?;
    let block = format!("/dev/{controller}n1");
    make(guest, &EXT4, &block)?;
    let writer = guest.spawn(&replacing())?;
    until_told(guest, REPLACED)?;
    // Some of them hold what was written, some are written, and some are empty.
    bench
        .control
        .fault(&["zone", "8..=11", "30", "--state", "read-only"])?;
    until_told(guest, 2 * REPLACED)?;
    guest.ok("touch /scratch/stop")?;
    let ended = guest.wait(&writer, LIMIT)?;
    ensure!(ended.code == 0, "no file failed to be replaced: {ended:?}");
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    is_whole(guest, &EXT4, &block)?;
    bench.lose(Loss::Server)?;
    mount(guest, &EXT4, &block)?;
    is_whole(guest, &EXT4, &block)?;
    bench.served.disconnect(guest)
}
