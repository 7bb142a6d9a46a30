"""Finds workloads whose expected run time is longer than their time limit. Pure: runs nothing."""

from collections.abc import Mapping

from fslab.study import matrix
from fslab.study.mistakes import Mistakes
from fslab.study.model import StudyWorkload
from fslab.study.read import Draft
from fslab.study.source import Node
from fslab.units import format_duration
from fslab.workloads import parsed

LONGEST_UNASKED_S = 2 * 86400.0  # longest expected time of one trial if no 'time_limit' is set


def check(draft: Draft, workloads: Mapping[str, StudyWorkload], root: Node, mistakes: Mistakes) -> None:
    """Note each workload that is expected to exceed its ``time_limit``: every trial of it would be ended.

    If no limit is set, an expected time above ``LONGEST_UNASKED_S`` is noted as a probable mistake. The default limit
    follows the expected time, so it would not end such a trial.
    """
    for name, workload in workloads.items():
        limit_s = workload.time_limit_s or draft.values.get("time_limit")
        for spec in matrix.workload_specs(name, workload):
            expected_s = parsed(spec).expected_s()
            if expected_s <= (limit_s or LONGEST_UNASKED_S):
                continue
            node = root.at(("workloads", name))
            what = f"'{spec.name}' takes about {format_duration(expected_s)}"
            remedy = "; if it may, set 'time_limit'"
            if limit_s is not None:
                remedy = f" and would be ended after {format_duration(limit_s)}: raise 'time_limit'"
            mistakes.add(node.place, node.path, what + remedy)
