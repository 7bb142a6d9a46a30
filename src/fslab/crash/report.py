"""Report the result of a trial as a JSON document, for the workload and for people."""

from __future__ import annotations

from typing import Any

from fslab.crash.findings import Finding
from fslab.crash.sources import Source
from fslab.crash.trial import Tally

VERSION = 1
SHOWN = 40


def document(tally: Tally, source: Source[Any], *, kept: str | None, filesystem: str) -> dict[str, Any]:
    """``findings``: the first of each sort, broken promises first. ``id``: the argument of ``fslab crash replay``."""
    sorts = sorted(
        tally.findings, key=lambda sort: (not tally.findings[sort].broken, list(tally.findings).index(sort))
    )
    return {
        "version": VERSION,
        "filesystem": filesystem,
        "sequences": len(source.steps),
        **source.extent(),
        "states": tally.states,
        "states_in_recovery": tally.again,
        "states_in_recovery_broken": tally.again_broken,
        "states_in_repair": tally.repaired,
        "states_in_repair_lost": tally.repaired_lost,
        "states_damaged": tally.damaged,
        "states_unrepeated": tally.unrepeated,
        "promises_kept": len(tally.promised - tally.broken),
        "promises_broken": len(tally.broken),
        "lost_operations": len(tally.lost),
        "findings_broken": sum(finding.broken for finding in tally.findings.values()),
        "recovery_ns": tally.recovery_ns,
        "loss_window_ns": tally.loss_window_ns,
        "findings": [
            {**shown(tally.findings[sort], source, kept), "count": tally.counts[sort]}
            for sort in sorts[:SHOWN]
        ],
    }


def shown(finding: Finding, source: Source[Any], kept: str | None) -> dict[str, Any]:
    """Return the part of the document about one finding."""
    number = finding.sequence
    return {
        "id": f"{kept}.{finding.state}" if kept else None,
        "kind": str(finding.kind),
        "broken": finding.broken,
        "detail": finding.detail,
        "source": finding.source,
        "state": finding.state,
        "sequence": None if number is None else source.words(number),
        "step": finding.step,
        "steps_broken": sorted(finding.broken_steps),
        "lost_rows": list(finding.lost_rows),
    }
