"""Parameters of a workload in Filebench's language. Values only; runs nothing, reads no file."""

import re
from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from fslab import scaling
from fslab.errors import nearest
from fslab.units import Size, SomeTime, parse_duration, parse_size
from fslab.workloads import MOST_AT_ONCE, Parameters

# Default number of files and bytes in all filesets of each personality. The engine defines the personalities.
PERSONALITIES: Mapping[str, tuple[int, int]] = {
    "copyfiles": (2000, 2000 * 16384),
    "createfiles": (50000, 50000 * 16384),
    "deletefiles": (50000, 50000 * 16384),
    "fileserver": (10000, 10000 * 131072),
    "listdirs": (50000, 0),
    "makedirs": (10000, 0),
    "mongo": (2000, 2000 * 16384),
    "oltp": (11, 11 * 10485760),
    "openfiles": (50000, 0),
    "randomread": (1, 5368709120),
    "randomrw": (1, 5368709120),
    "randomwrite": (1, 5368709120),
    "removedirs": (10000, 0),
    "singlestreamread": (1, 5368709120),
    "singlestreamwrite": (1, 5368709120),
    "statfiles": (10000, 0),
    "varmail": (1000, 1000 * 16384),
    "videoserver": (226, 226 * 10737418240),
    "webproxy": (10000, 10000 * 16384),
    "webserver": (1001, 1001 * 16384),
    "writefsync": (1, 1073741824),
}
# The variables that set the number of files, with their defaults; of all others, nfiles.
COUNTED: Mapping[str, Mapping[str, int]] = {
    "makedirs": {"ndirs": 10000},
    "removedirs": {"ndirs": 10000},
    "videoserver": {"numactivevids": 32, "numpassivevids": 194},
}
# The variables of the personalities that are an amount of work: numbers, each with the least, and sizes.
_LEAST_FILES = 100
_LEAST_BYTES = 4 << 20
_NUMBERS: Mapping[str, int] = {
    "nfiles": _LEAST_FILES, "ndirs": _LEAST_FILES, "numactivevids": 1, "numpassivevids": 1, "fsynccount": 1,
}  # fmt: skip
_OF_ONE_FILE = frozenset({"filesize", "workingset"})  # else a size is that of each file
# The variables of a workload of one's own of which it is known what they are, as they have keys; nfiles is an amount.
_KNOWN = frozenset({"nfiles", "meanfilesize", "nthreads"})
_SETTING = re.compile(r"^\$?[A-Za-z0-9_]+=\S+$")


class FilebenchParameters(Parameters):
    """Give exactly one of ``personality``, ``script`` and ``file``. ``nfiles``, ``meanfilesize``, ``nthreads`` and
    ``set`` set variables of the workload. A variable that the workload does not have is an error.
    """

    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})

    personality: str | None = Field(
        None, description="a built-in workload, such as varmail; 'fslab-engine wml --list' shows all"
    )
    script: str | None = Field(None, description="the text of a workload in Filebench's language")
    file: str | None = Field(
        None,
        description="a .f file, relative to the study",
    )
    file_text: str | None = None
    digest: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="BLAKE3 digest of the file's text; a file with another digest is an error",
    )
    runtime: SomeTime = Field("60s", description="how long it runs; takes precedence over the workload")
    nfiles: int | None = Field(None, ge=1, description="the variable $nfiles: number of files")
    meanfilesize: Size | None = Field(None, description="the variable $meanfilesize: mean size of a file")
    nthreads: int | None = Field(
        None, ge=1, le=MOST_AT_ONCE, description="the variable $nthreads: threads that work at once"
    )
    set: str = Field("", description="further variables, separated by spaces: name=value name=value")
    syncfs: bool = Field(False, description="call syncfs(2) at the end, in the measured time")
    space: Size | None = Field(
        None, description="space that it needs; default: estimated for a personality, 1g otherwise"
    )

    @property
    def runtime_s(self) -> float:
        return parse_duration(self.runtime)

    @property
    def settings(self) -> tuple[str, ...]:
        """The variables that the study sets, as ``name=value``."""
        own = (("nfiles", self.nfiles), ("meanfilesize", self.meanfilesize), ("nthreads", self.nthreads))
        return (*(f"{name}={value}" for name, value in own if value is not None), *self.set.split())

    def scaled(self, factor: float) -> scaling.Changes:
        """Return the run time, at least one second, and the amounts among the variables that the study sets."""
        found = {"runtime": scaling.duration(self.runtime, factor)}
        if self.nfiles is not None:
            found["nfiles"] = scaling.count(self.nfiles, factor, least=_LEAST_FILES)
        changes = {setting: self._scaled_setting(setting, factor) for setting in self.set.split()}
        share = max((change.share for change in changes.values() if change), default=0.0)
        if share:
            words = (
                f"{setting.partition('=')[0]}={change.value}" if change else setting
                for setting, change in changes.items()
            )
            found["set"] = scaling.ScaledAmount(value=" ".join(words), share=share)
        return found

    @property
    def unscaled(self) -> tuple[str, ...]:
        """The variables in ``set`` that may be an amount of work, but are not scaled."""
        names = {setting.lstrip("$").partition("=")[0]: setting for setting in self.set.split()}
        return tuple(
            name
            for name, setting in names.items()
            if self._scaled_setting(setting, 0.5) is None
            and (name in _NUMBERS or (self.personality is None and name not in _KNOWN))
        )

    def _scaled_setting(self, setting: str, factor: float) -> scaling.ScaledAmount | None:
        """Return the scaled value of a variable; None if it is not known to be an amount, or is an expression, which
        the engine evaluates."""
        name, _, value = setting.lstrip("$").partition("=")
        one_file = self.personality is not None and PERSONALITIES[self.personality][0] == 1
        try:
            if not parse_size(value):  # 0 means none, or everything
                return scaling.ScaledAmount(value=value, share=0.0)
            if name == "nfiles" or (name in _NUMBERS and self.personality is not None):
                return scaling.count(parse_size(value), factor, least=_NUMBERS[name])
            if name in _OF_ONE_FILE and one_file:
                return scaling.size(value, factor, least_bytes=_LEAST_BYTES)
        except ValueError:
            pass
        return None

    @property
    def files_and_bytes(self) -> tuple[int, int] | None:
        """Approximate number of files and bytes of a personality with these settings; None if unknown."""
        if self.personality is None:
            return None
        usual, size = PERSONALITIES[self.personality]
        pairs = (setting.lstrip("$").partition("=") for setting in self.settings)
        given = {name: value for name, _, value in pairs}
        counted = COUNTED.get(self.personality, {"nfiles": usual})
        files = sum(_count(given.get(name, ""), default) for name, default in counted.items())
        mean = given.get("meanfilesize", given.get("filesize"))
        return files, int(files * (size / usual if mean is None else parse_size(mean)))

    @field_validator("personality")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in PERSONALITIES:
            raise ValueError(f"unknown personality '{value}': {nearest(value, PERSONALITIES)}")
        return value

    @field_validator("set")
    @classmethod
    def _set(cls, value: str) -> str:
        for setting in value.split():
            if not _SETTING.match(setting):
                raise ValueError(f"'{setting}' is not name=value")
        return value

    @model_validator(mode="after")
    def _one_workload(self) -> Self:
        given = [name for name in ("personality", "script", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of personality, script and file, not {' and '.join(given) or 'none'}")
        if self.digest is not None and self.file is None:
            raise ValueError("'digest' needs 'file'")
        return self


def _count(value: str, default: int) -> int:
    """Return a number such as 50k; the default for none, and for an expression, which the engine evaluates."""
    try:
        return parse_size(value)
    except ValueError:
        return default
