//! The engines of fio, and what each comes to on a drive.

use super::value::{Wrong, shorten, wrong};

/// Engines that wait for each operation: their depth is 1.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "sg"];

/// Engines that hand commands to the device as they are, besides those of SPDK, which are named
/// by a path. All others go through the kernel's block layer, which sends in parts what is longer
/// than one command.
const PASSING: &[&str] = &["io_uring_cmd", "xnvme", "libzbc", "sg"];

/// The others that read and write a block device, or memory as one.
const OTHERS: &[&str] = &[
    "libaio",
    "io_uring",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "splice",
    "guasi",
    "libblkio",
    "dev-dax",
    "pmemblk",
    "libpmem",
    "mtd",
    "libcufile",
    "spdk",
    "external",
];

/// Engines that do nothing, to measure fio itself.
const NOTHING: &[&str] = &["null", "cpp_null"];

/// Engines that are no access to a drive, and what they do instead.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "sends data to another host",
        "net netsplice rdma librpma_apm_client librpma_apm_server librpma_gpspm_client \
         librpma_gpspm_server",
    ),
    (
        "reads and writes a store on the network",
        "rados rbd http gfapi gfapi_async libhdfs dfs nfs nbd libiscsi ime_psync ime_psyncv ime_aio",
    ),
    ("uses a processor, and no drive", "cpuio exec"),
    (
        "works on files, and a drive has none",
        "falloc ftruncate e4defrag filecreate filestat filedelete dircreate dirstat dirdelete",
    ),
];

/// Whether it waits for each operation.
pub(super) fn is_synchronous(name: &str) -> bool {
    SYNCHRONOUS.contains(&name)
}

/// Whether a block layer is between it and the device.
pub(super) fn has_block_layer(name: &str) -> bool {
    !(PASSING.contains(&name) || name.contains("spdk"))
}

/// Whether it would do nothing in fio.
pub(super) fn does_nothing(name: &str) -> bool {
    NOTHING.contains(&name)
}

/// What an engine does that is no access to a drive.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    let found = ELSEWHERE
        .iter()
        .find(|(_, names)| names.split(' ').any(|of| of == name));
    found.map(|(what, _)| *what)
}

/// Whether jobs with this engine can be run.
///
/// # Errors
/// It is no access to a drive, or unknown.
pub(super) fn check(name: &str) -> Result<(), Wrong> {
    // An engine of its own is named by its file.
    let is_file = name.contains('/') || name.starts_with("external:") || name.ends_with(".so");
    let known = || {
        [SYNCHRONOUS, PASSING, OTHERS, NOTHING]
            .into_iter()
            .flatten()
            .copied()
    };
    if is_file || known().any(|of| of == name) {
        return Ok(());
    }
    let valid = "for example libaio, io_uring, psync";
    if let Some(what) = elsewhere(name) {
        let what = format!("{name} is not supported: it {what}");
        return Err(wrong(what, valid));
    }
    let all = known().chain(ELSEWHERE.iter().flat_map(|(_, names)| names.split(' ')));
    let near = zonelab_config::nearest(name, all);
    Err(wrong(
        format!("there is no engine `{}`", shorten(name)),
        near.map_or_else(
            || valid.to_owned(),
            |near| format!("did you mean `{near}`?"),
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_of_drives_are_taken_and_others_say_what_they_do() {
        for name in [
            "psync",
            "sg",
            "io_uring_cmd",
            "mtd",
            "null",
            "/opt/spdk/build/fio/spdk_nvme",
        ] {
            check(name).unwrap();
        }
        for name in ["external:/lib/own.so", "libspdk.so"] {
            check(name).unwrap();
        }
        let (what, _) = check("http").unwrap_err();
        assert!(what.contains("a store on the network"), "{what}");
        let (_, valid) = check("libiao").unwrap_err();
        assert_eq!(valid, "did you mean `libaio`?");
    }
}
