//! The options there are, and what becomes of each.

use Treatment::{NoMeaning, Unsupported, Used};

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It does what it does in fio, or what an extension of fio does by it.
    Used,
    /// It has no meaning here, for this reason: a warning.
    NoMeaning(&'static str),
    /// Without it the job would be another one, and it is not there: an error.
    Unsupported(&'static str),
}

/// A known option.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What becomes of it.
    pub treatment: Treatment,
}

const fn used(name: &'static str) -> OptionInfo {
    also(name, &[])
}

const fn also(name: &'static str, aliases: &'static [&'static str]) -> OptionInfo {
    OptionInfo {
        name,
        aliases,
        treatment: Used,
    }
}

const DRIVE: &str = "there is one drive, and no file system on it";
const HOST: &str = "the host is modelled, not used";
const PRIORITY: &str = "commands have no priorities";
const DATA: &str =
    "buffers are filled at random, with zeros (zero_buffers) or with a pattern (buffer_pattern)";
const VERIFY: &str = "every block carries the number of its write, and all are read back";
const DUMP: &str = "the message says what was expected and found";
const SUBMIT: &str = "commands are submitted one by one, and completions taken as they come";
const STEADY: &str = "runs do not end by a steady state";
const LOG: &str = "logs are whole and plain text";
const TRACE: &str = "a job replays a trace as it is: traces are merged by fio or blkparse";
const FLUSH: &str = "flushes come from fsync, fdatasync and end_fsync";

/// Used options.
const USED: &[OptionInfo] = &[
    used("name"),
    used("description"),
    used("filename"),
    used("ioengine"),
    used("cmd_type"),
    also("rw", &["readwrite"]),
    also("bs", &["blocksize"]),
    also("bsrange", &["blocksize_range"]),
    used("bssplit"),
    used("iodepth"),
    used("numjobs"),
    used("size"),
    also("io_size", &["io_limit"]),
    used("offset"),
    used("offset_increment"),
    used("number_ios"),
    used("loops"),
    also("runtime", &["timeout"]),
    used("time_based"),
    used("ramp_time"),
    also("startdelay", &["start_delay"]),
    also("stonewall", &["wait_for_previous"]),
    used("new_group"),
    used("group_reporting"),
    used("exitall"),
    used("exit_what"),
    used("exitall_on_error"),
    used("thinktime"),
    used("thinktime_blocks"),
    used("thinktime_iotime"),
    used("rate"),
    used("rate_iops"),
    used("rate_process"),
    used("rwmixread"),
    used("rwmixwrite"),
    used("percentage_random"),
    used("random_distribution"),
    used("randseed"),
    used("percentile_list"),
    used("clat_percentiles"),
    used("lat_percentiles"),
    used("slat_percentiles"),
    used("zonemode"),
    used("zonesize"),
    used("max_open_zones"),
    used("job_max_open_zones"),
    used("read_beyond_wp"),
    used("zoneskip"),
    used("norandommap"),
    used("zonecapacity"),
    used("zonerange"),
    used("zone_reset_threshold"),
    used("zone_reset_frequency"),
    used("flow"),
    used("flow_id"),
    used("flow_sleep"),
    used("latency_target"),
    used("latency_window"),
    used("latency_percentile"),
    used("latency_run"),
    used("max_latency"),
    used("cpus_allowed"),
    used("cpumask"),
    used("cpus_allowed_policy"),
    used("numa_cpu_nodes"),
    used("fsync"),
    used("fdatasync"),
    used("end_fsync"),
    used("wait_for"),
    used("continue_on_error"),
    also("fill_device", &["fill_fs"]),
    used("rw_sequencer"),
    used("verify"),
    used("verify_pattern"),
    used("verify_interval"),
    used("verify_backlog"),
    used("verify_fatal"),
    used("verify_only"),
    used("do_verify"),
    used("zero_buffers"),
    used("refill_buffers"),
    used("scramble_buffers"),
    used("buffer_pattern"),
    used("verify_state_save"),
    used("verify_state_load"),
    used("initial_zone_reset"),
    also("zone_append", &["append"]),
    used("finish"),
    used("softfinish"),
    // The artifact of ConfZNS++ has it under the second name.
    also("softfinish_granularity", &["softfinish_chunk"]),
    used("softfinish_pause"),
    used("reset"),
    used("kb_base"),
    used("write_lat_log"),
    used("write_bw_log"),
    used("write_iops_log"),
    used("log_avg_msec"),
    used("log_offset"),
    used("bwavgtime"),
    used("iopsavgtime"),
    used("read_iolog"),
    used("write_iolog"),
    used("replay_no_stall"),
    used("replay_time_scale"),
    used("replay_align"),
    used("replay_scale"),
    used("replay_skip"),
    used("replay_redirect"),
    used("replay_zones"),
];

/// Options without meaning: reason, and names.
const NO_MEANING: &[(&str, &[&str])] = &[
    (
        DRIVE,
        &[
            "directory",
            "filename_format",
            "unique_filename",
            "lockfile",
            "nrfiles",
            "nr_files",
            "openfiles",
            "filesize",
            "file_service_type",
            "fallocate",
            "fadvise_hint",
            "pre_read",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "allow_mounted_write",
            "file_append",
            "overwrite",
            "unlink",
            "unlink_each_loop",
            "invalidate",
            "offset_align",
            "disk_util",
            "direct",
            "buffered",
            "atomic",
            "write_barrier",
            "write_hint",
            "bs_unaligned",
            "blocksize_unaligned",
            "ignore_zone_limits",
            "uncached",
        ],
    ),
    (
        HOST,
        &[
            "thread",
            "mem",
            "iomem",
            "hugepage-size",
            "mem_align",
            "iomem_align",
            "lockmem",
            "nice",
            "numa_mem_policy",
            "cgroup",
            "cgroup_weight",
            "cgroup_nodelete",
            "uid",
            "gid",
            "ioscheduler",
            "clocksource",
            "gtod_cpu",
            "gtod_reduce",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "disable_bw",
            "exec_prerun",
            "exec_postrun",
            "error_dump",
            "thinktime_spin",
            "job_start_clock_id",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "nonvectored",
            "nowait",
            "force_async",
            "hipri",
            "userspace_reap",
            "readfua",
            "writefua",
            "shm_id",
            "mem_mb",
            "enable_wrr",
            "json_spdk_conf",
            "spdk_conf",
            "hostnqn",
            "pi_act",
            "pi_chk",
            "md_per_io_size",
            "apptag",
            "apptag_mask",
            "digest_enable",
            "enable_vmd",
            "log_flags",
            "disable_pcie_sgl_merge",
            "print_qid_mappings",
            "spdk_tracing",
            "env_context",
            "verify_async",
            "verify_async_cpus",
        ],
    ),
    (
        PRIORITY,
        &[
            "prio",
            "prioclass",
            "priohint",
            "cmdprio",
            "cmdprio_class",
            "cmdprio_percentage",
            "cmdprio_bssplit",
            "cmdprio_hint",
            "arbitration_burst",
            "low_weight",
            "medium_weight",
            "high_weight",
            "wrr_priority",
            "log_prio",
        ],
    ),
    (
        DATA,
        &[
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_global",
            "dedupe_working_set_percentage",
        ],
    ),
    (
        VERIFY,
        &[
            "verify_backlog_batch",
            "verify_write_sequence",
            "verify_header_seed",
            "verify_pattern_interval",
            "verify_policy",
            "experimental_verify",
            "serialize_overlap",
            "trim_percentage",
            "trim_verify_zero",
            "trim_backlog",
            "trim_backlog_batch",
        ],
    ),
    (DUMP, &["verify_dump"]),
    (
        SUBMIT,
        &[
            "iodepth_batch",
            "iodepth_batch_submit",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "io_submit_mode",
        ],
    ),
    (
        LOG,
        &[
            "log_entries",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "log_hist_msec",
            "log_hist_coarseness",
            "write_hist_log",
            "log_max_value",
            "per_job_logs",
            "log_issue_time",
            "log_window_value",
        ],
    ),
    (FLUSH, &["sync_file_range", "sync", "fsync_on_close"]),
    (
        "random numbers are a function of --seed and randseed",
        &["randrepeat", "allrandrepeat", "random_generator"],
    ),
    (
        "positions are multiples of the smallest bs, and a map of them is in memory",
        &["softrandommap", "ba", "blockalign"],
    ),
    (
        "a job ends at its first failed operation, unless continue_on_error says otherwise",
        &["ignore_error"],
    ),
    (
        "a limit is only a limit from above",
        &[
            "rate_min",
            "rate_iops_min",
            "rate_cycle",
            "rate_ignore_thinktime",
        ],
    ),
    (
        "traces are read once, and kept in 24 bytes for each operation",
        &["read_iolog_chunked"],
    ),
    (
        "pauses are counted in operations issued",
        &["thinktime_blocks_type"],
    ),
    (
        "output is in fio's default form",
        &[
            "unit_base",
            "unified_rw_reporting",
            "significant_figures",
            "stats",
            "block_error_percentiles",
        ],
    ),
];

/// Options that are refused: reason, and names.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("headers are at the start of blocks", &["verify_offset"]),
    (
        TRACE,
        &[
            "merge_blktrace_file",
            "merge_blktrace_iters",
            "merge_blktrace_scalars",
        ],
    ),
    (
        STEADY,
        &[
            "steadystate",
            "ss",
            "steadystate_duration",
            "ss_dur",
            "steadystate_ramp_time",
            "ss_ramp",
            "steadystate_check_interval",
            "ss_interval",
        ],
    ),
    (
        "weights alone decide who goes on, as in fio 3.33, which does not have it either",
        &["flow_watermark"],
    ),
    ("the order within a zone is sequential", &["bs_is_seq_rand"]),
    (
        "there is one drive, and no file system on it",
        &["opendir", "create_only", "profile"],
    ),
    (
        "streams and data placement directives are no part of the zoned command set",
        &[
            "dataplacement",
            "fdp",
            "fdp_pli",
            "plids",
            "plid_select",
            "fdp_pli_select",
            "dp_scheme",
            "num_range",
            "stream_id",
            "write_mode",
            "write_zone_remainder",
        ],
    ),
];

/// Options whose value may be left out, as fio has them: on its command line
/// these never take the next word as their value.
const WITHOUT_VALUE: &[&str] = &[
    "time_based",
    "group_reporting",
    "stonewall",
    "new_group",
    "exitall",
    "exitall_on_error",
    "thread",
    "norandommap",
    "refill_buffers",
    "zero_buffers",
    "bs_unaligned",
    "verify_only",
    // Extensions.
    "finish",
    "softfinish",
    "reset",
];

impl OptionInfo {
    /// Whether `--name` is complete on the command line, without a value.
    #[must_use]
    pub fn may_lack_value(&self) -> bool {
        WITHOUT_VALUE.contains(&self.name)
    }
}

/// Every option that is known.
pub fn all() -> impl Iterator<Item = OptionInfo> {
    let group = |rows: &'static [(&str, &[&str])], treatment: fn(&'static str) -> Treatment| {
        rows.iter().flat_map(move |(reason, names)| {
            names.iter().map(move |name| OptionInfo {
                name,
                aliases: &[],
                treatment: treatment(reason),
            })
        })
    };
    USED.iter()
        .copied()
        .chain(group(NO_MEANING, NoMeaning))
        .chain(group(UNSUPPORTED, Unsupported))
}

/// The option of that name or alias.
#[must_use]
pub fn find(name: &str) -> Option<OptionInfo> {
    all().find(|option| option.name == name || option.aliases.contains(&name))
}

/// The known name that is most likely meant by `name`.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = all().flat_map(|option| {
        [option.name]
            .into_iter()
            .chain(option.aliases.iter().copied())
    });
    zonelab_config::nearest(name, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<&str> = all()
            .flat_map(|option| {
                [option.name]
                    .into_iter()
                    .chain(option.aliases.iter().copied())
            })
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn options_without_values_are_known() {
        for name in WITHOUT_VALUE {
            assert_eq!(find(name).map(|option| option.name), Some(*name));
        }
    }

    #[test]
    fn names_are_found_and_typing_errors_too() {
        assert_eq!(find("blocksize").map(|o| o.name), Some("bs"));
        assert_eq!(find("direct").map(|o| o.treatment), Some(NoMeaning(DRIVE)));
        assert!(find("iodeph").is_none());
        assert_eq!(nearest("iodeph"), Some("iodepth"));
        assert_eq!(nearest("stonewal"), Some("stonewall"));
    }
}
