"""Packs large, rarely read data into a page: raw output as gzip in base64, up to a limit. Pure."""

import base64
import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field

from fslab.analysis import disk_request_map
from fslab.report.page.model import RawOutput
from fslab.trial_record import TrialRecord
from fslab.units import format_size

ONE_BYTES = 256 << 10  # limit of one text, before packing
ALL_BYTES = 1536 << 10  # limit of all packed texts of a campaign


def packed(text: str) -> str:
    """Return a text as gzip in base64. A browser unpacks it with DecompressionStream. The result is deterministic."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@dataclass(kw_only=True, slots=True)
class Packer:
    """Packs raw output until the space is used up. ``skipped``: number of texts that did not fit."""

    left_bytes: int = field(default_factory=lambda: ALL_BYTES)
    skipped: int = 0

    def pack(self, trial: TrialRecord) -> Iterator[RawOutput]:
        """Yield the tools' output of a trial, without empty texts. Cuts long texts, and skips what does not fit."""
        for name, text in trial.raw.items():
            if name == disk_request_map.NAME or not text.strip():  # the map is drawn
                continue
            kept = text.encode()[:ONE_BYTES].decode(errors="ignore")
            content = packed(kept)
            if len(content) > self.left_bytes:
                self.skipped += 1
                continue
            self.left_bytes -= len(content)
            cut = len(text.encode()) - len(kept.encode())
            yield RawOutput(
                name=name, trial=f"trial {trial.key.block + 1}", size=format_size(len(text.encode())), packed=content,
                left_out=format_size(cut) if cut else "",
            )  # fmt: skip
