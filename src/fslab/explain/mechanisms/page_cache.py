"""Absorption by the page cache: buffered I/O that does not reach the device in the measured time."""

from collections.abc import Iterator

from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import Mechanism
from fslab.explain.statement import Explanation
from fslab.explain.switch import Switch
from fslab.units import format_size
from fslab.workloads import Switchable


class PageCacheAbsorption(Mechanism):
    """Reading data again, or overwriting it before it is written back, costs no device I/O."""

    summary = "the page cache serves reads and absorbs writes"
    cause = "the page cache"
    alters = True

    def applies(self, evidence: Evidence) -> bool:
        return evidence.traits.direct is False and evidence.traits.few_files

    def switch(self, evidence: Evidence) -> Switch | None:
        direct = evidence.traits.switches.get(Switchable.DIRECT)
        return Switch(parameters=direct) if direct else None

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        written = _to_be_written(evidence)
        device = evidence.figure("device_written_bytes", "device bytes when the tool ended")
        if written and device is not None and device.value < 0.5 * written:
            yield self.explanation(
                evidence,
                f"When the tool ended, the device had received {format_size(device.value)} of {format_size(written)} "
                "written: the rest was in the page cache, or was never written back.",
                device,
                evidence.figure("volume_dirtied_bytes", "dirtied"),
                weight=written / max(device.value, 4096),
            )
        read = evidence.figure("read_amplification", "device bytes per byte read")
        if read is not None and read.value < 0.5:
            yield self.explanation(
                evidence,
                f"The device delivered {read.value:.2f} bytes for each byte read; the rest came from the page cache.",
                read,
                weight=1.0,
            )


def _to_be_written(evidence: Evidence) -> float | None:
    """Return how many bytes the device is to receive: those of the application. If data is compressed, or zeros are
    not stored, it receives fewer: those that it had received after the final flush."""
    if evidence.compresses or evidence.zeros:
        return evidence.value("device_written_bytes_flushed")
    return evidence.written_bytes
