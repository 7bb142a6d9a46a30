"""The log of XFS and its buffers: Documentation/admin-guide/xfs.rst, logbsize, logbufs."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size


class XfsLog(Mechanism):
    """Transactions wait when all in-core log buffers are full."""

    summary = "log writes and log buffers"
    cause = "small log buffers"
    filesystems = frozenset({"xfs"})
    off = Switch(mount=("logbsize=256k",))

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        log, written = evidence.figure("xfs_log_bytes", "bytes written to the log"), evidence.written_bytes
        waits = evidence.figure("xfs_log_no_buffer", "waits for a log buffer")
        if log is not None and written and log.value > 0.05 * written:
            waited = f"; waits for a log buffer: {waits.value:.0f}" if waits and waits.value else ""
            yield self.explanation(
                evidence,
                f"{format_size(log.value)} were written to the log for {format_size(written)} of data{waited}.",
                log,
                waits,
                evidence.figure("xfs_log_writes"),
                evidence.figure("xfs_log_forces"),
                weight=log.value / written,
            )
