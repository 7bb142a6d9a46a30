"""The tool of an application (``fslab.applications``): builds the commands of its process and reads its document."""

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import create_model

from fslab import scaling, texts
from fslab.applications import Application, Load
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload
from fslab.workloads._traits import Traits

DIRECTORY = "application"
_PROCESS = (sys.executable, "-P", "-B", "-m", "fslab.applications._process")
_NAMES = {50: "transaction_p50", 95: "transaction_p95", 99: "transaction_p99"}
_RATE = "transaction_rate"
_START_S = 1.0


class ApplicationTool(Workload[Any]):
    """Prepares an application's data, runs transactions, then checks the data."""

    application: ClassVar[Application]

    def metrics(self, parameters: Load) -> tuple[Metric, ...]:  # noqa: ARG002
        """Return the rate and the latencies of transactions, as the application acknowledges them."""
        return (
            Metric(name=_RATE, unit=Unit.OPERATIONS_PER_SECOND),
            *(
                Metric(name=name, unit=Unit.NANOSECONDS, better=Direction.LOWER)
                for name in reversed(_NAMES.values())
            ),
        )

    def headline(self, parameters: Load) -> tuple[str, ...]:  # noqa: ARG002
        return (_RATE, _NAMES[99])

    def commands(self, parameters: Load, job: Job) -> Commands:
        """Return the commands of the application's process. Its files can be copied to trials that prepare the same."""
        run_s = parameters.run_s
        laid_out = parameters.model_dump(include=set(parameters.laid_out), by_alias=True, exclude_none=True)
        directory = str(job.directory / DIRECTORY)
        request = {
            "application": self.application.name,
            "directory": directory,
            "scratch": str(job.scratch),
            "seed": job.seed,
        }

        def told(load: dict[str, Any], seconds: float | None) -> str:
            return json.dumps({**request, "load": load, "run_s": seconds})

        everything = parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Commands(
            prepare=((*_PROCESS, "prepare", told(laid_out, None)),),
            run=(*_PROCESS, "drive", told(everything, None if run_s is None else job.clock_s(run_s))),
            cleanup=(("rm", "-r", "-f", directory),),
            prepared=(),
        )

    def read(self, parameters: Load, output: ToolOutput) -> Reading:
        """Parse the document. What the application's own check finds is a wrong answer."""
        document: dict[str, Any] = texts.json_of(output.stdout)
        began, ended = float(document["began_s"]), float(document["ended_s"])
        measured_s, problem = ended - began, document["problem"]
        figures: dict[str, float | None] = {_RATE: document["transactions"] / measured_s}
        for percent, name in _NAMES.items():
            value = document["latencies_ns"][str(percent)]
            figures[name] = None if value is None else float(value)
        return Reading(
            metrics=figures,
            measured_s=measured_s,
            asked_s=parameters.run_s,
            windows=dict.fromkeys(figures, (began, ended)),
            wrong={} if problem is None else {"check": (str(problem), "no problem")},
        )

    def why_whole(self, parameters: Load) -> str | None:  # noqa: ARG002
        return self.application.continues

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with this run time if they do not set a number of transactions."""
        return dict(raw) if "transactions" in raw else {"runtime": runtime, **raw}

    def scaled(self, parameters: Load, factor: float) -> scaling.Changes:
        return parameters.scaled(factor)

    def traits(self, parameters: Load) -> Traits:
        return Traits(
            reads=parameters.reads, writes=parameters.writes, direct=False, parallel=parameters.at_once
        )

    def space_bytes(self, parameters: Load) -> int:
        return self.application.laid_out_bytes + parameters.space_bytes

    def expected_s(self, parameters: Load) -> float:
        run_s = parameters.run_s
        took_s = parameters.most / parameters.guessed_rate if run_s is None else run_s
        return _START_S + parameters.prepare_s + took_s


def tool_of(application: Application) -> type[Workload[Any]]:
    """Return the tool of an application."""
    tool: tuple[Tool, ...] = (application.tool,) if application.tool else ()
    model = create_model(
        f"{type(application).__name__}Parameters",
        __base__=(application.Load, Parameters),
        __doc__=application.Load.__doc__,
    )
    members = {"application": application, "summary": application.summary, "tools": tool, "Parameters": model}
    return type(type(application).__name__, (ApplicationTool,), members)
