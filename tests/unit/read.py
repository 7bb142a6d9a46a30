"""Reads a tool's output as a campaign does: with the checks that apply to every tool."""

from __future__ import annotations

from typing import Any

from fslab.workloads import ParsedWorkload, Reading, ToolOutput, Workload


def read(tool: Workload[Any], parameters: Any, output: ToolOutput) -> Reading:
    return ParsedWorkload(tool=tool, parameters=parameters).read(output)
