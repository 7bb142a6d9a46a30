"""The tool of an application (``fslab.applications``): builds the commands of its process and reads its document."""

import json
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import create_model

from fslab import scaling, untrusted_text
from fslab.applications import AnyLoad, Application, Load, StepLoad
from fslab.filesystem_abilities import Needs
from fslab.trial_record import WHOLE, Metric
from fslab.units import Direction, Unit
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Traits, Workload, total

DIRECTORY = "application"
_PROCESS = (sys.executable, "-P", "-B", "-m", "fslab.applications._process")
_NAMES = {50: "transaction_p50", 95: "transaction_p95", 99: "transaction_p99"}
_RATE = "transaction_rate"
_OPERATIONS = "transactions.log"
_START_S = 1.0


class ApplicationTool(Workload[Any]):
    """Prepares an application's data, runs the application, then checks the data. ``logs``: it can log operations."""

    application: ClassVar[Application]
    logs: ClassVar[bool] = False

    def commands(self, parameters: AnyLoad, job: Job) -> Commands:
        """Return the commands of the application's process. Its files can be copied to trials that prepare the same."""
        run_s = parameters.run_s
        laid_out = parameters.model_dump(include=set(parameters.laid_out), by_alias=True, exclude_none=True)
        directory = str(job.directory / DIRECTORY)
        log = _OPERATIONS if self.logs and (job.each_operation or job.turns > 1) else None
        request = {
            "application": self.application.name,
            "directory": directory,
            "scratch": str(job.scratch),
            "seed": job.seed,
            "turns": job.turns,
            "operations": log,
        }

        def told(load: dict[str, Any], seconds: float | None) -> str:
            return json.dumps({**request, "load": load, "run_s": seconds})

        everything = parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Commands(
            prepare=((*_PROCESS, "prepare", told(laid_out, None)),),
            run=(*_PROCESS, "drive", told(everything, None if run_s is None else job.clock_s(run_s))),
            cleanup=(("rm", "-r", "-f", directory),),
            operations=log,
            prepared=(),
        )

    def needs(self, parameters: AnyLoad) -> Needs:  # noqa: ARG002
        return Needs(abilities=self.application.abilities)

    def why_whole(self, parameters: AnyLoad) -> str | None:  # noqa: ARG002
        return self.application.continues

    def scaled(self, parameters: AnyLoad, factor: float) -> scaling.Changes:
        return parameters.scaled(factor)

    def traits(self, parameters: AnyLoad) -> Traits:
        return Traits(
            reads=parameters.reads, writes=parameters.writes, direct=parameters.direct,
            parallel=parameters.at_once, held_back=parameters.is_held_back,
        )  # fmt: skip

    def space_bytes(self, parameters: AnyLoad) -> int:
        return self.application.laid_out_bytes + parameters.space_bytes

    def expected_s(self, parameters: AnyLoad) -> float:
        return _START_S + parameters.prepare_s + parameters.work_s


class TransactionTool(ApplicationTool):
    """Its figures are the rate and the latencies of transactions, as the application acknowledges them."""

    logs = True

    def metrics(self, parameters: Load) -> tuple[Metric, ...]:
        found = (
            Metric(name=_RATE, unit=Unit.OPERATIONS_PER_SECOND),
            *(
                Metric(name=name, unit=Unit.NANOSECONDS, better=Direction.LOWER)
                for name in reversed(_NAMES.values())
            ),
        )
        return self.headline_first(parameters, found)

    def headline(self, parameters: Load) -> tuple[str, ...]:
        """Return the rate and a percentile; before them, of a load that is held back, the median latency."""
        return (*([_NAMES[50]] if parameters.is_held_back else []), _RATE, _NAMES[99])

    def read(self, parameters: Load, output: ToolOutput) -> Reading:
        """Parse the document. What the application's own check finds is a wrong answer."""
        document: dict[str, Any] = untrusted_text.json_of(output.stdout)
        began, ended = float(document["began_s"]), float(document["ended_s"])
        measured_s = ended - began
        figures: dict[str, float | None] = {_RATE: document["transactions"] / measured_s}
        for percent, name in _NAMES.items():
            value = document["latencies_ns"][str(percent)]
            figures[name] = None if value is None else float(value)
        return Reading(
            metrics=figures,
            measured_s=measured_s,
            asked_s=parameters.run_s,
            windows=dict.fromkeys(figures, (began, ended)),
            # Before it, a server starts, and after it the data is checked.
            part_windows={WHOLE: (began, ended)},
            percentiles={name: float(percent) for percent, name in _NAMES.items()},
            wrong=_wrong(document),
            transactions=document["transactions"],
        )

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with this run time if they do not set a number of transactions."""
        return dict(raw) if "transactions" in raw else {"runtime": runtime, **raw}


class StepTool(ApplicationTool):
    """Its figures are how long each step takes, and how many files that are in a second."""

    def metrics(self, parameters: StepLoad) -> tuple[Metric, ...]:
        times = (
            Metric(name=f"{step}_time", unit=Unit.SECONDS, better=Direction.LOWER)
            for step in parameters.chosen
        )
        rates = (Metric(name=f"{step}_rate", unit=Unit.FILES_PER_SECOND) for step in parameters.chosen)
        return (*times, *rates)

    def headline(self, parameters: StepLoad) -> tuple[str, ...]:
        return tuple(f"{step}_time" for step in parameters.chosen)

    def read(self, parameters: StepLoad, output: ToolOutput) -> Reading:
        """Parse the document. A difference from what the seed says is a wrong answer."""
        document: dict[str, Any] = untrusted_text.json_of(output.stdout)
        steps = {step["name"]: step for step in document["steps"]}
        windows = {
            name: (float(steps[name]["began_s"]), float(steps[name]["ended_s"])) for name in parameters.chosen
        }
        seconds = {name: ended - began for name, (began, ended) in windows.items()}
        amounts = {name: steps[name]["amount"] for name in parameters.chosen}
        times: dict[str, float | None] = {f"{name}_time": took for name, took in seconds.items()}
        rates = {f"{name}_rate": amounts[name]["files"] / took for name, took in seconds.items()}
        return Reading(
            metrics=times | rates,
            read_bytes=total(each["read_bytes"] for each in amounts.values()),
            written_bytes=total(each["written_bytes"] for each in amounts.values()),
            measured_s=sum(seconds.values()),
            parts_s=seconds,
            part_windows=windows,
            windows={f"{name}_{what}": windows[name] for name in windows for what in ("time", "rate")},
            flushed=True if parameters.writes else None,
            wrong=_wrong(document),
        )


def _wrong(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    problem = document["problem"]
    return {} if problem is None else {"check": (str(problem), "no problem")}


def tool_of(application: Application) -> type[Workload[Any]]:
    """Return the tool of an application."""
    model = create_model(
        f"{type(application).__name__}Parameters",
        __base__=(application.Load, Parameters),
        __doc__=application.Load.__doc__,
    )
    kind = StepTool if issubclass(application.Load, StepLoad) else TransactionTool
    members = {
        "application": application,
        "summary": application.summary,
        "tools": application.tools,
        "Parameters": model,
    }
    return type(type(application).__name__, (kind,), members)
