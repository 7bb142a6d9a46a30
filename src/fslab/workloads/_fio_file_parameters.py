"""Parameters of a job file of fio: its jobs, with what the study gives beside the file. Pure.

fio gets a new file that is made from the result, so that fslab and fio cannot read a line differently.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, count
from typing import ClassVar, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from fslab.cell import Scalar
from fslab.workloads import mistake
from fslab.workloads._fio_amounts import scaled
from fslab.workloads._fio_file_reading import MOST_JOBS, JobFile, read_jobs, refusal
from fslab.workloads._fio_one_job import JobParameters, OneJob
from fslab.workloads._fio_options import EXIT_WHAT, EXITALL, GROUP, LEFT_OUT
from fslab.workloads._fio_parameters import VARIABLES
from fslab.workloads._fio_refused_options import spelled

# fio reads a job file in pieces of 4,096 bytes, or 8,192 (OPT_LEN_MAX): what follows in a line is further lines to it.
LONGEST_LINE_BYTES = 4000
LONGEST_LABEL = (
    64  # a label is the prefix of a metric and of a file: PostgreSQL limits the one, Linux the other
)


class FioFileParameters(JobParameters):
    """A job file, and options that take the place of those of all its jobs."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"variables"})

    file: str = Field(description="a job file")
    file_text: str
    scale: float = Field(default=1.0, gt=0, le=1000)

    @property
    def given(self) -> dict[str, str]:
        """The options beside the file, in fio's spelling."""
        return {
            key: spelled(value)
            for key, value in (self.model_extra or {}).items()
            if not key.startswith(VARIABLES) and key not in LEFT_OUT
        }

    @property
    def read(self) -> JobFile:
        """What the file contains."""
        extra = self.model_extra or {}
        variables = tuple(
            (key.removeprefix(VARIABLES), spelled(value))
            for key, value in extra.items()
            if key.startswith(VARIABLES)
        )
        return _read(self.file, self.file_text, frozenset(self.given), variables)

    @cached_property
    def jobs(self) -> tuple[OneJob, ...]:
        return tuple(_labelled(self.read.sections, self.scale, self.given))

    @model_validator(mode="wrap")
    @classmethod
    def _check_together(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report all that is refused at once."""
        checked = handler(data)
        extra = {key: value for key, value in (checked.model_extra or {}).items() if key not in LEFT_OUT}
        wrong = {
            key: why
            for key, value in extra.items()
            if not key.startswith(VARIABLES) and (why := _refusal_beside(key, spelled(value)))
        }
        mistakes = [mistake((key,), extra[key], why) for key, why in wrong.items()]
        refused = checked.read.refused or [why for job in checked.jobs for why in _too_long(job)]
        mistakes += [mistake(("file",), checked.file, why) for why in refused]
        if mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return checked


@lru_cache(maxsize=256)
def _read(file: str, text: str, given: frozenset[str], variables: tuple[tuple[str, str], ...]) -> JobFile:
    return read_jobs(file, text, given=given, variables=dict(variables))


def _refusal_beside(key: str, value: str) -> str | None:
    if not value.isprintable() or re.search(r"[$`\\;#]", value):
        return "$, `, \\, ;, # and control characters are not allowed"
    if key == "size" and not value.strip("0"):
        return "must be greater than zero"
    return refusal(key, value)


def _too_long(job: OneJob) -> Iterator[str]:
    for line in job.lines:
        if len(line.encode("utf-8", "replace")) > LONGEST_LINE_BYTES:
            what = f"'{line[:40]}…' is longer than {LONGEST_LINE_BYTES} bytes: shorten it"
            yield f"job '{job.name[:40]}': {what}, or fio reads its end as other options"


def _labelled(sections: list[OneJob], scale: float, given: Mapping[str, str]) -> Iterator[OneJob]:
    exits = any(EXITALL in {**section.options, **given} for section in sections)  # whatever its value, to fio
    used = {"total", *(f"phase_{number}" for number in range(1, MOST_JOBS + 1))}
    for index, section in enumerate(sections):
        label = re.sub(r"[^a-z0-9]+", "_", section.name.lower())[:LONGEST_LABEL].strip("_") or "job"
        numbered = (f"{label}_{number}" for number in count(index + 1))
        label = next(each for each in chain((label,), numbered) if each not in used)
        used.add(label)
        changed = {} if scale == 1 else {k: str(v.value) for k, v in scaled(section.options, scale).items()}
        options = {**section.options, **changed, **given}
        options |= _exit(options) if exits else {}
        yield replace(section, label=label if len(sections) > 1 else "", options=options)


def _exit(options: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the options with which the end of a job ends the others. ``exitall`` of one job is one of all.

    ``exit_what=group``, the default, would end none, because each job is a group of its own here.
    """
    what = options.get(EXIT_WHAT) or GROUP
    return {EXITALL: None, EXIT_WHAT: "stonewall" if what == GROUP else what}
