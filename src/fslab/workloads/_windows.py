"""When in a run each of its parts was measured. Pure."""

from collections.abc import Mapping


def in_sequence(
    took_s: Mapping[str, float | None], run_s: float, pauses_s: Mapping[str, float]
) -> Mapping[str, tuple[float, float]]:
    """Return begin and end of parts that follow each other, in seconds from the start of a run that took ``run_s``.

    ``pauses_s``: known pauses after parts. The rest of the run is divided equally: before, between and after the parts.
    Empty if the time of a part is unknown, or the parts took longer than the run.
    """
    known = {part: part_s for part, part_s in took_s.items() if part_s is not None}
    gap_s = (run_s - sum(known.values()) - sum(pauses_s.values())) / (len(took_s) + 1)
    if len(known) < len(took_s) or gap_s < 0:
        return {}
    found, now_s = dict[str, tuple[float, float]](), 0.0
    for part, part_s in known.items():
        begin_s = now_s + gap_s
        found[part] = (begin_s, begin_s + part_s)
        now_s = begin_s + part_s + pauses_s.get(part, 0.0)
    return found
