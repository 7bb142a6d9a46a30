"""The names of fio's job options and I/O engines. Data only.

The names are those of ``fio --cmdhelp=all`` and ``fio --enghelp`` of 3.33, and those that its documentation adds up to
3.41. If the installed fio is too old for an option, fio itself reports an error.
"""

import re
from collections.abc import Mapping

NAME, DIRECTORY = "name", "directory"
EXITALL, EXIT_WHAT, GROUP = "exitall", "exit_what", "group"

KNOWN = frozenset(
    """
    allow_file_create atomic ba bs bs_is_seq_rand bs_unaligned bssplit bsrange buffer_compress_chunk
    buffer_compress_percentage buffer_pattern clocksource cmdprio cmdprio_bssplit cmdprio_class
    allrandrepeat cmdprio_percentage continue_on_error cpumask cpus_allowed cpus_allowed_policy create_fsync
    create_on_open create_serialize dedupe_global dedupe_mode dedupe_percentage
    dedupe_working_set_percentage description direct disable_bw_measurement disable_clat disable_lat
    disable_slat disk_util do_verify end_fsync error_dump exitall exitall_on_error exit_what
    experimental_verify fadvise_hint fallocate fdatasync file_append file_service_type filename filename_format
    filesize fixedbufs
    flow flow_id flow_sleep force_async fsync fsync_on_close gtod_cpu gtod_reduce hipri hipri_percentage
    hugepage-size ignore_error invalidate io_size io_submit_mode iodepth iodepth_batch
    iodepth_batch_complete_max iodepth_batch_complete_min iodepth_low ioengine iomem_align latency_percentile
    latency_run latency_target latency_window lockfile loops max_latency mem nice
    nonvectored norandommap nowait nrfiles number_ios numa_cpu_nodes numa_mem_policy numjobs offset
    offset_align offset_increment openfiles overwrite percentage_random pre_read prio prioclass ramp_size ramp_time
    randrepeat randseed
    random_distribution random_generator rate rate_cycle rate_ignore_thinktime
    rate_iops rate_iops_min rate_min rate_process refill_buffers registerfiles runtime rw rw_sequencer
    rwmixread rwmixwrite scramble_buffers serialize_overlap significant_figures size softrandommap
    sqthread_poll sqthread_poll_cpu startdelay steadystate steadystate_check_interval
    steadystate_duration steadystate_ramp_time sync sync_file_range thinktime thinktime_blocks
    thinktime_blocks_type thinktime_iotime thp thread time_based trim_backlog
    trim_backlog_batch trim_percentage trim_verify_zero uncached unlink unlink_each_loop userspace_reap
    verify verify_async verify_async_cpus verify_backlog verify_backlog_batch verify_dump verify_fatal
    verify_header_seed verify_interval verify_offset verify_only verify_pattern verify_write_sequence
    write_barrier write_hint zero_buffers zonemode zonerange zonesize zoneskip
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
    "mem_align": "iomem_align",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "readwrite": "rw",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_interval": "steadystate_check_interval",
    "ss_ramp": "steadystate_ramp_time",
    "wait_for_previous": "stonewall",
    "timeout": "runtime",
}

_COMMAND = (
    "a workload may not run commands of its own: delete the line ('cache: cold' of the study drops caches)"
)
_OF_COMMAND_LINE = "it is an option of fio's command line: delete the line"
_CREATE = "fslab itself makes the files before the run: delete the line, or the job if that is all it does"
_MACHINE = (
    "delete the line; set machine settings under 'tuning' of the study, which fslab restores afterwards"
)
_PINNED = (
    "locked memory can make the kernel kill other processes: delete the line; to test with less memory, use "
    "'guest_memory' of the study"
)
_REPLAY = "a trace names its own files, outside the test directory: describe the work with rw, bs and size"
_UNITS = "it changes the meaning of k and m: delete the line, and write sizes in powers of 1024"
_REMOTE = "fio runs on the machine on which fslab runs: delete the line; compare machines with 'fslab fleet'"
_IDENTITY = "fio runs as the user who started fslab: delete the line"
_SPACE = "give the size of the files with 'size' (of a job file: beside 'file'), and delete the line"
ZONED = "zones of a zoned device exist on raw devices only, not in files: delete the line"
_OF_ENGINE = "it belongs to an I/O engine that fslab does not support: delete the line"
# With 3.33, runs did not end; https://github.com/axboe/fio/issues/1588.
_SLEEPS = "fio before 3.36 can sleep without an end after it: delete the line, and use 'thinktime' alone"
_OTHER_FILES = "it opens files that are not part of the test: name the files with 'filename' or 'nrfiles'"

# What cannot be passed to fio → why, and what to do.
REFUSED = {
    name: reason
    for reason, names in {
        _COMMAND: "exec_prerun exec_postrun trigger trigger-file trigger-timeout trigger-remote profile",
        _OF_COMMAND_LINE: "section parse-only showcmd debug",
        _CREATE: "create_only",
        _PINNED: "lockmem",
        _MACHINE: "ioscheduler cgroup cgroup_weight cgroup_nodelete",
        _REPLAY: "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align"
        " replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters"
        " merge-blktrace-only",
        _UNITS: "kb_base",
        _REMOTE: "client server remote-config daemonize",
        _IDENTITY: "uid gid",
        ZONED: "zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits"
        " zone_reset_threshold zone_reset_frequency",
        _SPACE: "fill_device fill_fs",
        _OF_ENGINE: "arguments bindname blocking brick busy_poll chunk_size clientname clustername cmd_type cpuchunks"
        " cpuload cpumode cuda_io donorname exit_on_io_done gpu_dev_ids grace_time hostname hosts http_host http_mode"
        " http_pass http_s3_key http_s3_keyid http_s3_region http_swift_auth_token http_user http_verbose https"
        " inplace interface listen mss namenode nodelay object_class pingpong pool port program protocol rbdname"
        " readfua single_instance skip_bad svc_id touch_objects ttl uri verb volume window_size writefua",
        _SLEEPS: "thinktime_spin",
        _OTHER_FILES: "opendir aux-path verify_state_load",
    }.items()
    for name in names.split()
}

# What places or makes files, and has no meaning, or another one, on a block device.
OF_FILES = frozenset(
    """
    allow_file_create create_fsync create_on_open create_serialize fadvise_hint file_append file_service_type filename
    filename_format filesize lockfile nrfiles offset offset_align offset_increment openfiles pre_read unlink
    unlink_each_loop write_hint
    """.split()  # noqa: SIM905
)

# What determines the bytes that are written: fio(1), "Buffers and memory".
CONTENT = frozenset(
    """
    zero_buffers refill_buffers scramble_buffers buffer_compress_percentage buffer_compress_chunk buffer_pattern
    dedupe_percentage dedupe_mode dedupe_global dedupe_working_set_percentage
    """.split()  # noqa: SIM905
)

_SAYS_CONTENT = CONTENT - {"zero_buffers", "scramble_buffers"} | {"verify"}

# What limits how many requests there are at once: fio(1), "I/O rate" and "I/O latency". The queue depth is then what
# fits into it.
# What makes a job slower than the disk; with the two others its rate is what the disk can do.
HELD_BACK = frozenset({"thinktime", "rate", "rate_iops"})
PACED = HELD_BACK | {"latency_target", "flow"}

# What orders the jobs of a file: it has no meaning for a single job.
ORDER = frozenset({"stonewall", "wait_for"})

# What enlarges files until the device is full. A given size takes its place.
FILLS = frozenset({"fill_device", "fill_fs"})

# Places of files, logs, and what fio prints: fslab sets these itself. They are left out, as is what fio ignores.
LEFT_OUT = frozenset(
    """
    name directory unique_filename allow_mounted_write group_reporting new_group stats unit_base
    write_bw_log write_lat_log write_iops_log write_hist_log write_iolog per_job_logs bwavgtime iopsavgtime
    log_entries log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_offset log_prio log_compression
    log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id
    log_window_value log_issue_time bandwidth-log inflate-log verify_state_save
    output output-format minimal append-terse terse-version status-interval eta eta-interval eta-newline
    percentile_list clat_percentiles lat_percentiles slat_percentiles unified_rw_reporting
    block_error_percentiles idle-prof rwmixcycle flow_watermark
    """.split()  # noqa: SIM905
)

_ZERO = re.compile("0+|0[xX]0+")  # a pattern of which all bytes are zeros

MIXED = frozenset({"rw", "readwrite", "randrw"})
MODE = re.compile(r"(read|write|randread|randwrite|rw|readwrite|randrw)(:-?\d+[kmg]?)?", re.IGNORECASE)

# What places requests in the zones of zonemode=strided.
ZONES = frozenset({"zonerange", "zonesize", "zoneskip"})

# Synchronous engines have one request in flight: fio ignores iodepth with them.
MAPPING = "mmap"  # ignores sync and direct
SYNC_ENGINES = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", MAPPING})
ASYNC_ENGINES = frozenset({"libaio", "io_uring", "posixaio"})
_SYNCED = frozenset({"1", "sync", "dsync"})  # values of 'sync' with which each write reaches the device
METADATA_ENGINES = frozenset({"filecreate", "filestat", "filedelete", "falloc", "ftruncate"})


def read_share(mode: str, options: Mapping[str, str | None]) -> float:
    """Return the share of reads, from 0 to 1, of a mode (``rw`` without its offset modifier) with these options."""
    if mode not in MIXED:
        return 1.0 if mode in {"read", "randread"} else 0.0
    reads = 50
    for key, value in options.items():
        if key in {"rwmixread", "rwmixwrite"} and value and value.isdecimal():
            reads = int(value) if key == "rwmixread" else 100 - int(value)
    return reads / 100


def directions(mode: str, options: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return ``read``, ``write`` or both: what a mode does with these options."""
    reads = read_share(mode, options)
    return ("read",) * (reads > 0) + ("write",) * (reads < 1)


def writes_through(sync: str | None, engine: str | None) -> bool:
    """Return whether option ``sync`` makes each write reach the device. It has no effect on mmap."""
    return sync in _SYNCED and engine != MAPPING


def repeats_data(options: Mapping[str, str | None]) -> bool:
    """Return whether the job writes one buffer again and again, unless the options say what it writes."""
    given = _SAYS_CONTENT & {name for name, value in options.items() if value != "0"}
    return not given and not writes_zeros(options)


def writes_zeros(options: Mapping[str, str | None]) -> bool:
    """Return whether everything that the job writes is zeros."""
    pattern = options.get("buffer_pattern")
    return options.get("zero_buffers", "0") != "0" if pattern is None else bool(_ZERO.fullmatch(pattern))
