"""Reads a tool's output as a campaign does: with the checks that apply to every tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fslab.workloads import ParsedWorkload, Reading, ToolOutput, Workload


def read(tool: Workload[Any], parameters: Any, output: ToolOutput) -> Reading:
    return ParsedWorkload(tool=tool, parameters=parameters).read(output)


def read_whole(tool: Workload[Any], raw: Mapping[str, Any], output: ToolOutput) -> Reading:
    """Read the output of a run with these parameters. It must have each declared metric, and no other."""
    parameters = tool.parse_parameters(raw)
    found = read(tool, parameters, output)
    assert set(found.metrics) == {metric.name for metric in tool.metrics(parameters)}
    return found
