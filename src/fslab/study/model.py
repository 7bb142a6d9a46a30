"""The model of a valid study: frozen values, not yet expanded to combinations. Opens no file and no device.

A field with a description is a key of the study file. The documentation and the JSON Schema are generated from these
fields.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from fslab.cell import Cache, Fresh, Frozen, Geometry, Scalar, as_written
from fslab.claims.schema import Claim, Names, Published, Several, several
from fslab.machine import tunables
from fslab.scaling import Scaled
from fslab.stopping_settings import MARGIN, MOST_TRIALS, TAIL_MARGIN, StoppingRule, Until
from fslab.units import DURATION_SCHEMA, GuestSize, Share, parse_duration, some_time

DEFAULT_TIME_LIMIT_S = 600.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")
NAME_RULE = "A-Z, a-z, 0-9, '_', '+' and '-', and begin with a letter or digit"
_NAMED = "mapping of names"
_REFERENCES = "name, mapping or list"
SHORTEST_SLICE_S, LONGEST_SLICE_S = 0.01, 60.0


def _slices(value: object) -> str:
    text = as_written(value)
    if text in ("auto", "off", "False"):  # YAML reads off as false
        return "off" if text == "False" else text
    if not SHORTEST_SLICE_S <= parse_duration(some_time(text)) <= LONGEST_SLICE_S:
        raise ValueError(f"'{text}' must be from {SHORTEST_SLICE_S * 1000:g}ms to {LONGEST_SLICE_S:g}s")
    return text


def _tuning(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("is not a mapping such as {vm.dirty_bytes: 67108864}")  # noqa: TRY004 - for pydantic
    return {key: as_written(item) for key, item in value.items()}


def _tunings(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("is not a mapping such as {io_scheduler: [none, bfq]}")  # noqa: TRY004 - for pydantic
    listed = {key: item if isinstance(item, list | tuple) else [item] for key, item in value.items()}
    if empty := [key for key, items in listed.items() if not items]:
        raise ValueError(f"'{empty[0]}' has no value")
    return {key: tuple(map(as_written, items)) for key, items in listed.items()}


_SETTING = {"type": ["string", "number", "boolean"]}
_SETTINGS = {"anyOf": [_SETTING, {"type": "array", "items": _SETTING, "minItems": 1}]}
Duration = Annotated[float, BeforeValidator(lambda value: parse_duration(some_time(value))), DURATION_SCHEMA]
Slices = Annotated[
    str,
    BeforeValidator(_slices),
    WithJsonSchema({"title": "`off`, `auto` or duration", "type": ["string", "number", "boolean"]}),
]
OwnScale = Annotated[
    float | None,
    Field(gt=0, le=1000, allow_inf_nan=False),
    WithJsonSchema({"title": "number", "type": "number"}),
]
Values = Annotated[tuple[Scalar, ...], BeforeValidator(several)]
_GEOMETRY = {"enum": [geometry.value for geometry in Geometry]}
Geometries = Annotated[
    tuple[Geometry, ...],
    BeforeValidator(several),
    WithJsonSchema({"anyOf": [_GEOMETRY, {"type": "array", "items": _GEOMETRY, "minItems": 1}]}),
]


def _tunables(setting: dict[str, Any]) -> WithJsonSchema:
    properties = dict.fromkeys(tunables.NAMES, setting)
    return WithJsonSchema(
        {"title": "mapping", "type": "object", "properties": properties, "additionalProperties": False}
    )


Tuning = Annotated[dict[str, str], BeforeValidator(_tuning), _tunables(_SETTING)]
StackTuning = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_tunings), _tunables(_SETTINGS)]


class Written(Frozen):
    """Base of the models of a study file: aliases are the keys of the file, attribute names contain the unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StudyMedium(Written):
    """What the data lies on: a type and the keys of that type. A list in any of these keys is a matrix axis."""

    type: str = Field(description="kind of medium")
    scaled_by: OwnScale = Field(None, description="overrides the study's `scale`, but not `--scale`")
    options: dict[str, Values] = Field(default_factory=dict)


class StudyLayout(Written):
    """How the disks of a medium form one device: a type and the keys of that type."""

    type: str = Field("single", description="kind of layout")
    options: dict[str, Values] = Field(default_factory=dict)


class StudyStack(Written):
    """Medium ▸ layout ▸ file system ▸ mkfs and mount options. A list in any key is a matrix axis.

    ``filesystem`` is empty on a ``directory`` medium. ``workloads`` None means all.
    """

    medium: tuple[str, ...] = Field(
        title=_REFERENCES, description="a medium's name, or a medium written here"
    )
    layout: tuple[StudyLayout, ...] = Field(
        (StudyLayout(type="single"),),
        title=_REFERENCES,
        description="a layout's name, or `{type: NAME, …}` with the keys of that layout",
    )
    filesystem: Several = Field(
        (), description="a file system; not on a medium that is not formatted (`directory`)"
    )
    mkfs_options: Several = Field(("",), description="as on mkfs's command line")
    mount_options: Several = Field(("defaults",), description="as for `mount -o`")
    geometry: Geometries = Field(
        (Geometry.DEFAULT,),
        title="`default`, `aligned`, `none` or list",
        description="stripe options for mkfs: none, so that mkfs may read them from the device (`default`), "
        "the layout's chunk and number of data disks (`aligned`), or options to ignore stripes (`none`)",
    )
    attributes: Several = Field(
        ("",),
        description="attributes of the work directory, which its files inherit, as for `chattr +`, such as `C` or "
        '`["", C]`',
    )
    fill: Several = Field(
        ("",),
        description="how full the file system is before the workload, such as `80%`: files of many sizes, of which "
        "some were deleted again",
    )
    after_mount: Several = Field(
        ("",),
        description="a command of your own, run after each mount in the work directory (`{directory}`), such as "
        "`'btrfs property set {directory} compression zstd'`. It needs the consent of `tool: command`",
    )
    tuning: StackTuning = Field(
        {},
        title="mapping",
        description="the study's `tuning`, for this stack; a list in a key is a matrix axis (`{io_scheduler: [none, "
        "mq-deadline]}`)",
    )
    workloads: Several | None = Field(None, description="names of the workloads that run on it; default: all")
    on: Several = Field((), description="overrides the study's `on`")
    kernel: Several = Field((), description="overrides the study's `kernel`")
    modules: Several = Field((), description="overrides the study's `modules`")
    guest_memory: GuestSize | None = Field(None, description="overrides the study's `guest_memory`")

    @field_validator("mount_options")
    @classmethod
    def _none_are_defaults(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """``""`` means none, as in the other keys."""
        return tuple(each.strip() or "defaults" for each in value)

    def runs(self, workload: str) -> bool:
        return self.workloads is None or workload in self.workloads


class StudyWorkload(Written):
    """A tool and the keys of that tool. A list in any of these keys is a matrix axis.

    ``cache``, ``fresh`` and ``time_limit_s`` are None if the values of the study apply. ``files`` holds the texts of
    the files that the parameters name, by key and path.
    """

    tool: str = Field(description="tool that generates the load")
    scaled_by: OwnScale = Field(None, description="overrides the study's `scale`, but not `--scale`")
    extends: str | None = Field(None, description="another workload, whose keys are copied to this one")
    cache: Cache | None = Field(None, description="overrides the study's `cache`")
    fresh: Fresh | None = Field(None, description="overrides the study's `fresh`")
    time_limit_s: Duration | None = Field(
        None, alias="time_limit", description="overrides the study's `time_limit`"
    )
    parameters: dict[str, Values] = Field(default_factory=dict)
    files: dict[str, dict[str, str]] = Field(default_factory=dict, repr=False)


class StudyFile(Written):
    """The keys of a study file."""

    title: str = Field(description="the question of the study, in a few words", min_length=1)
    source: str | None = Field(None, description="the publication that it repeats: a citation")
    description: str | None = Field(None, description="what a reader should know about the study")
    media: dict[str, StudyMedium] = Field({}, title=_NAMED, description="what the data lies on, by name")
    stacks: dict[str, StudyStack] = Field(title=_NAMED, description="what is compared, by name")
    workloads: dict[str, StudyWorkload] = Field(
        title=_NAMED, description="what is run on each stack, by name"
    )
    scale: float = Field(
        1.0,
        description="factor for all sizes, counts and run times in the study, such as 0.05; values given with `--set` "
        "are not scaled",
        gt=0,
        le=1000,
        allow_inf_nan=False,
    )
    trials: int = Field(
        5,
        description="repetitions of each cell (stack × workload); with `precision`, the number to begin with",
        ge=1,
        le=MOST_TRIALS,
    )
    precision: Share | None = Field(
        None,
        description="repeat until the ranking is clear, or stacks are known to differ by less than this, such as 5%; "
        "default: exactly `trials` repetitions",
    )
    until: Until = Field(
        Until.DECIDED,
        description="when to stop: `decided`: in each row of the table it is known which of two stacks is better, or "
        "that they differ by less than `precision`; `precise`: each ratio is known to within `precision`; `claims` "
        "(the default with claims): each claim is decided, or without claims, the best stack of each workload is "
        "known, or those that are alike",
    )
    max_trials: int = Field(
        40,
        description="with `precision` or claims, the most repetitions of a cell; what is open then stays undecided",
        ge=1,
        le=MOST_TRIALS,
    )
    cache: Cache = Field(
        Cache.COLD,
        description="page cache at the start of the run: `cold`: without the data; `warm`: every file was read once",
    )
    fresh: Fresh = Field(
        Fresh.TRIAL,
        description="how long a file system is used before a new one is made; `block`: for one trial, as copies of one "
        "that the trials of a block share (docs/measuring.md)",
    )
    slices: Slices = Field(
        "off",
        title="`off`, `auto` or duration",
        description="measure the stacks of a workload at once, their tools in turns, where that is possible; duration: "
        "of a turn, such as 30ms",
    )
    seed: int = Field(
        1, description="seed of the order of trials and of the tools' random offsets", ge=0, lt=1 << 63
    )
    budget_s: Duration | None = Field(
        None, alias="budget", description="start no new trial after this time, such as 10m; default: no limit"
    )
    time_limit_s: Duration = Field(
        DEFAULT_TIME_LIMIT_S,
        alias="time_limit",
        description="end a command of a trial that runs longer than this; default: 10 minutes, or four times the "
        "expected time if that is longer",
    )
    on: Several = Field(
        (),
        description="where trials run: `host`, a guest (`uml`, `qemu`), `auto`, `best` or `guest` (docs/machines.md); "
        "default: `host`",
    )
    kernel: Several = Field(
        (), description="file of the guest's kernel; a list compares kernels; default: an installed one"
    )
    modules: Several = Field(
        (),
        description="directory of the kernel's modules, one for each `kernel`; default: found beside the kernel",
    )
    guest_memory: GuestSize | None = Field(
        None,
        description=(
            "memory of a guest, such as 512m (default: 1g); on the host, of the tool and its page cache (no limit)"
        ),
    )
    tuning: Tuning = Field(
        {},
        description="settings of the machine during each trial, each within bounds, verified, and set back afterwards: "
        "`vm.*` sysctls, `cpu_governor`, `cpu_turbo` and `cpu_smt` (on, off), `cpu_dma_latency` (in µs; 0: "
        "idle CPUs poll; `auto`: they wake up at once: 2 on hardware, 0 in a virtual machine, nothing where the kernel "
        "has no limit or only root may set it), `transparent_hugepage`; of the devices in use `io_scheduler`, "
        "`nr_requests`, `read_ahead_kib`, `max_sectors_kib`, `wbt_lat_usec` and `rotational`, and of md RAID 5 and 6 "
        "`stripe_cache_size`; `stop_timers`: systemd timers, separated by spaces",
    )

    margin: Share = Field(
        MARGIN,
        description="smallest difference of interest, in tables and in the verdicts on `claims`: two stacks are alike "
        "if the interval of their ratio contains 1 and lies within it",
    )
    tail_margin: Share = Field(
        TAIL_MARGIN,
        description="the same for tails of latencies (percentiles from the 95th on, and the longest); never "
        "less than `margin` or `precision`",
    )
    known_limits: Names = Field(
        {},
        description="kinds of warnings that are inherent in what the study measures, such as `fits_in_memory`, with "
        "the reasons; they are notes, and are listed once with the claims",
    )
    claims: tuple[Claim, ...] = Field(
        (),
        title="list of claims",
        description="statements about the figures, which `fslab claims` judges",
    )
    published: Published | None = Field(
        None,
        title="mapping",
        description="the figures of the publication, which are judged and shown beside those of this machine",
    )


class Study(StudyFile):
    """A complete and checked study: every reference is resolved and every combination is valid.

    ``id`` is the file's name without suffix. ``text``, ``overrides`` and ``files`` reproduce the study
    (``load_text(study.text, study.id, study.overrides, study.files)``), so a resume needs no file. Media and workloads
    have their scaled values; ``scaled`` lists the changes. ``files`` holds the texts of the files that the study names,
    by path.
    """

    id: str
    text: str = Field(repr=False)
    overrides: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict, repr=False)
    scaled: tuple[Scaled, ...] = Field((), repr=False)

    @property
    def for_claims(self) -> bool:
        """Whether trials are added for undecided claims: true if the study has claims and no other goal is set."""
        other = {"until", "precision"} & self.model_fields_set or "trials" in self._overridden
        return bool(self.claims) and (self.until is Until.CLAIMS or not other)

    @property
    def stopping(self) -> StoppingRule:
        until, precision = self.until, self.precision
        if self.for_claims or until is Until.CLAIMS:
            # Without claims: until each workload has a best stack or a tie.
            until = Until.CLAIMS if self.for_claims else Until.DECIDED
            precision = precision or self.margin
        return StoppingRule(
            trials=self.trials,
            precision=precision,
            margin=self.margin,
            tail_margin=self.tail_margin,
            until=until,
            max_trials=self.max_trials,
        )

    @property
    def limit_s(self) -> float | None:
        """The effective budget, in seconds. ``--set`` with ``precision`` or ``until`` lifts the study's own budget."""
        asked = self._overridden
        return None if asked & {"precision", "until"} and "budget" not in asked else self.budget_s

    @property
    def _overridden(self) -> set[str]:
        return {override.partition("=")[0].strip() for override in self.overrides}
