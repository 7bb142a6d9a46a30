"""What tests of probes share: a run, the values of a finding, and the warnings that the rules give for it."""

from __future__ import annotations

from fslab.probes import ProbeFinding, Work
from fslab.system.proc import Usage
from fslab.trial_record import ValidityWarning
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings

USAGE = Usage(user_s=0.5, system_s=1.5, max_rss_bytes=8192, voluntary_switches=3, involuntary_switches=4)
WORK = Work(
    read_bytes=0, written_bytes=0, duration_s=2.0, measured_s=2.0, usage=USAGE, direct=False, cold=True
)


def values(found: ProbeFinding) -> dict[str, float | None]:
    return {name: value.value for name, value in found.values.items()}


def warnings_of(found: ProbeFinding, work: Work = WORK) -> tuple[ValidityWarning, ...]:
    """Return the warnings that the rules give for this finding alone."""
    done = WorkFacts(read_bytes=work.read_bytes, written_bytes=work.written_bytes, direct=work.direct)
    return trial_warnings(
        TrialFacts(work=done, cold=work.cold, figures=found.values, texts=found.texts, cpus=2)
    )
