"""The names of fio's job options and I/O engines. Data only.

The names are those of ``fio --cmdhelp=all`` and ``fio --enghelp`` of 3.33, and those that its documentation adds up to
3.41. If the installed fio is too old for an option, fio itself reports an error.
"""

KNOWN = frozenset(
    """
    allow_file_create atomic ba bs bs_is_seq_rand bs_unaligned bssplit bsrange buffer_compress_chunk
    buffer_compress_percentage buffer_pattern clocksource cmdprio cmdprio_bssplit cmdprio_class
    cmdprio_percentage continue_on_error cpumask cpus_allowed cpus_allowed_policy create_fsync
    create_on_open create_serialize dedupe_global dedupe_mode dedupe_percentage
    dedupe_working_set_percentage description direct disable_bw_measurement disable_clat disable_lat
    disable_slat disk_util do_verify end_fsync error_dump exitall exitall_on_error exit_what
    experimental_verify fadvise_hint fallocate fdatasync file_append file_service_type fixedbufs
    flow flow_id flow_sleep force_async fsync fsync_on_close gtod_cpu gtod_reduce hipri hipri_percentage
    hugepage-size ignore_error io_size io_submit_mode iodepth iodepth_batch
    iodepth_batch_complete_max iodepth_batch_complete_min iodepth_low ioengine latency_percentile
    latency_run latency_target latency_window lockfile loops max_latency mem new_group nice
    nonvectored norandommap nowait nrfiles number_ios numa_cpu_nodes numa_mem_policy numjobs offset
    offset_align offset_increment openfiles overwrite percentage_random prio prioclass
    random_distribution random_generator rate rate_cycle rate_ignore_thinktime
    rate_iops rate_iops_min rate_min rate_process refill_buffers registerfiles runtime rw rw_sequencer
    rwmixread rwmixwrite scramble_buffers serialize_overlap significant_figures size softrandommap
    sqthread_poll sqthread_poll_cpu startdelay sync sync_file_range thinktime thinktime_blocks
    thinktime_blocks_type thinktime_iotime thinktime_spin thp thread time_based trim_backlog
    trim_backlog_batch trim_percentage trim_verify_zero uncached unlink unlink_each_loop userspace_reap
    verify verify_async verify_async_cpus verify_backlog verify_backlog_batch verify_dump verify_fatal
    verify_header_seed verify_interval verify_offset verify_only verify_pattern verify_write_sequence
    write_barrier write_hint zero_buffers
    """.split()  # noqa: SIM905 - a list of 200 names reads better as words
)

# fio's aliases → the name to use. One spelling per option keeps cells comparable.
ALIASES = {
    "blockalign": "ba",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "buffered": "direct",
    "disable_bw": "disable_bw_measurement",
    "fileoffset": "offset",
    "io_limit": "io_size",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iodepth_batch_submit": "iodepth_batch",
    "iomem": "mem",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "readwrite": "rw",
    "timeout": "runtime",
}

_PLACE = "fslab sets the directory and the file names itself"
_SEED = "fslab sets the seed itself, so that all cells of a block use the same offsets"
_COMMAND = "a workload may not run commands of its own"
_LOG = "fslab stores fio's JSON document only, not its logs"
_READING = "it changes the document that fslab reads"
_MACHINE = "set machine settings under 'tuning' of the study; fslab restores them afterwards"
_PINNED = (
    "locked memory can make the kernel kill other processes; to test with less memory, use 'guest_memory'"
)
_REPLAY = "a trace names its own files, outside the test directory"
_ONE_JOB = "a workload is one job; write several workloads, or use a job file ('file')"
_UNITS = "it changes the meaning of k and m; fslab reads sizes as powers of 1024"
_REMOTE = "fio runs on the machine on which fslab runs; compare machines with 'fslab fleet'"
_IDENTITY = "fio runs as the user who started fslab"
_CACHE = "set the state of the page cache with 'cache' of the study: cold or warm"
_WINDOW = "fslab counts device I/O during the whole run, and fio would report only a part of it"
_SPACE = "set the size of the files with 'size', and the bytes to transfer with 'io_size'"
_ZONED = "zones exist on raw devices only, not in files"

REFUSED = {
    name: reason
    for reason, names in {
        _PLACE: "name filename directory filename_format unique_filename opendir aux-path"
        " allow_mounted_write",
        _SEED: "randseed randrepeat allrandrepeat",
        _COMMAND: "exec_prerun exec_postrun trigger trigger-file trigger-timeout trigger-remote profile",
        _LOG: "write_bw_log write_lat_log write_iops_log write_hist_log write_iolog per_job_logs bwavgtime"
        " iopsavgtime log_entries log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_offset"
        " log_prio log_compression log_compression_cpus log_store_compressed log_unix_epoch"
        " log_alternate_epoch log_alternate_epoch_clock_id log_window_value log_issue_time bandwidth-log"
        " inflate-log verify_state_save verify_state_load",
        _READING: "output output-format minimal append-terse terse-version status-interval eta eta-interval"
        " eta-newline group_reporting percentile_list clat_percentiles lat_percentiles slat_percentiles"
        " unified_rw_reporting stats block_error_percentiles debug showcmd parse-only idle-prof",
        _PINNED: "lockmem",
        _MACHINE: "ioscheduler cgroup cgroup_weight cgroup_nodelete",
        _REPLAY: "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align"
        " replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters"
        " merge-blktrace-only",
        _ONE_JOB: "stonewall wait_for include section create_only",
        _UNITS: "kb_base unit_base",
        _REMOTE: "client server remote-config daemonize",
        _IDENTITY: "uid gid",
        _ZONED: "zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones"
        " job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency cmd_type",
        _CACHE: "invalidate pre_read",
        _WINDOW: "ramp_time ramp_size steadystate steadystate_check_interval steadystate_duration"
        " steadystate_ramp_time ss ss_dur ss_ramp",
        _SPACE: "fill_device fill_fs filesize",
    }.items()
    for name in names.split()
}

# Synchronous engines have one request in flight: fio ignores iodepth with them.
SYNC_ENGINES = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
ASYNC_ENGINES = frozenset({"libaio", "io_uring", "posixaio"})
_SYNCED = frozenset({"1", "sync", "dsync"})  # values of 'sync' with which each write reaches the device
METADATA_ENGINES = frozenset({"filecreate", "filestat", "filedelete", "falloc", "ftruncate"})


def writes_through(sync: str | None, engine: str | None) -> bool:
    """Return whether option ``sync`` makes each write reach the device. It has no effect on mmap."""
    return sync in _SYNCED and engine != "mmap"
