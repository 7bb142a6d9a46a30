"""Parameters of the load engine, for each of its operations. Values only; runs nothing."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from fslab.errors import nearest
from fslab.units import Size, parse_size
from fslab.workloads import MOST_AT_ONCE, Parameters, Text

FILES = ("create", "stat", "read", "delete")
META = (
    "create", "open-close", "stat", "chmod", "truncate", "rename", "link", "symlink", "readdir", "mkdir", "rmdir",
    "unlink",
)  # fmt: skip
TREE = ("analyze", "classify", "duplicates", "search", "sync-read", "sync-write", "delete")
OPERATIONS = ("small-files", "meta", *TREE)
STEPS: Mapping[str, tuple[str, ...]] = {"small-files": FILES, "meta": META}

# The operations that support a key. All operations support the keys that are not listed.
APPLIES: Mapping[str, Iterable[str]] = {
    "operations": ("small-files", "meta"),
    "files": ("small-files", "meta"),
    "dirs": ("small-files", "meta"),
    "size": ("small-files",),
    "max_size": ("small-files",),
    "fsync": ("small-files",),
    "syncfs": ("small-files", "meta", "delete"),
    "order": ("small-files", "meta", *TREE),
    "scale": TREE,
    "classes": TREE,
    "compressibility": TREE,
    "duplicate_share": TREE,
    "data_seed": TREE,
    "plant": TREE,
    "by": ("classify",),
    "hash": ("duplicates",),
    "pattern": ("search",),
    "regex": ("search",),
    "buffer": ("search", "sync-read", "sync-write"),
    "direct": ("sync-read",),
    "method": ("sync-write",),
    "sync": ("sync-write",),
}

# The data set of the file-management study (nas-file-management): files and mean bytes of each class.
STUDY_CLASSES = ((450_000, 32 << 10), (50_000, 4 << 20), (1_000, 100 << 20))

_CLASS = re.compile(r"[^:]*:([0-9]+):([^:.]+)(?::(?:lognormal|uniform|fixed))?")
_PLANT = re.compile(r"([^:]*):([^:]+)(?::0*[1-9][0-9]*)?")
_PLANTED_BYTES = (6, 100)  # engine/PROTOCOL.md, populate


class EngineParameters(Parameters):
    """Options of ``fslab-engine``, by their own names.

    ``small-files`` and ``meta`` create the files that they work on. Only the steps in ``operations`` are measured;
    the files that the first step needs are created before the measurement. To read files with a cold cache, leave
    ``create`` out of ``operations``: files that the measured run created are still cached. The other operations work
    on a tree that ``fslab-engine populate`` makes together with a ground-truth manifest; an answer that differs from it
    makes the trial invalid.
    """

    operation: Literal[
        "small-files",
        "meta",
        "analyze",
        "classify",
        "duplicates",
        "search",
        "sync-read",
        "sync-write",
        "delete",
    ] = Field(default="small-files", description="the command of fslab-engine")
    threads: int = Field(default=1, ge=1, le=MOST_AT_ONCE, description="threads that work at once")
    latency: Literal["off", "operation", "syscalls"] = Field(
        default="operation",
        description="latency to record: none, of each operation, or also of each class of system call",
    )
    operations: str = Field(
        default="",
        description="small-files, meta: comma-separated steps to measure, in the order of the engine; default: all",
    )
    files: int = Field(default=10_000, ge=1, description="small-files, meta: number of files")
    size: Size = Field(default="4k", description="small-files: size of each file; 0: empty files")
    max_size: Size | None = Field(
        default=None,
        alias="max-size",
        description="small-files: size of the largest file; sizes are uniform between `size` and this; default: `size`",
    )
    dirs: int = Field(
        default=1, ge=1, description="small-files, meta: directories that the files are spread over"
    )
    fsync: bool = Field(default=False, description="small-files: fsync each file before it is closed")
    syncfs: bool = Field(
        default=True,
        description="small-files, meta, delete: each step that changes the file system ends with syncfs(2), "
        "measured too",
    )
    order: Text | None = Field(
        default=None,
        description="small-files, meta: the order in which created files are visited: created, reverse or random; "
        "trees: depth or breadth first; default: created, depth",
    )
    scale: float = Field(
        default=0.002,
        gt=0,
        description="trees: factor by which the number of files of each class is multiplied",
    )
    classes: str | None = Field(
        default=None,
        description="trees: size classes, comma-separated, each name:files:mean size[:distribution]; distributions: "
        "lognormal (default), uniform, fixed; default: 450000 files of 32k, 50000 of 4m and 1000 of 100m",
    )
    compressibility: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="trees: share of the contents that repeats; default: 0.5",
    )
    duplicate_share: float = Field(
        default=0.1,
        ge=0,
        le=0.9,
        description="trees: share of the files that are exact copies of other files",
    )
    data_seed: int = Field(default=1, ge=0, description="trees: random seed of the data set")
    plant: str | None = Field(
        default=None,
        description="trees: text:share[:hits]: text to insert (6 to 100 bytes), into this share of the files, "
        "this often in each (default: once)",
    )
    by: Literal["name", "content", "both"] = Field(
        default="both", description="classify: determine the type by name, by content, or by both"
    )
    hash: Literal["blake3", "xxh3"] | None = Field(
        default=None, description="duplicates: hash that groups files whose contents differ; default: xxh3"
    )
    pattern: str = Field(
        default="fslab-needle",
        description="search: text to find; without `plant` and `regex` it is inserted into a tenth of the files, and "
        "must have 6 to 100 bytes and no ':'",
    )
    regex: bool = Field(default=False, description="search: the pattern is a regular expression over bytes")
    buffer: Size | None = Field(
        default=None, description="search, sync-read, sync-write: size of a read or write; default: 256k"
    )
    direct: bool = Field(default=False, description="sync-read: bypass the page cache (O_DIRECT)")
    method: Literal["read-write", "copy-file-range", "reflink"] = Field(
        default="read-write", description="sync-write: how contents are copied"
    )
    sync: Literal["none", "file", "directory", "syncfs"] = Field(
        default="syncfs",
        description="sync-write: how the copy is synced, in the measured time: not at all, fsync of each file, of each "
        "file and directory, or one syncfs",
    )

    @property
    def measured(self) -> tuple[str, ...]:
        """The measured operations, by their names in the engine's document, in order."""
        if self.operation not in STEPS:
            return (self.operation,)
        return tuple(self.operations.split(",")) if self.operations else STEPS[self.operation]

    @property
    def tree_bytes(self) -> int:
        """Approximate size of the data set."""
        return int(sum(files * mean for files, mean in _classes(self.classes)) * self.scale)

    @property
    def tree_files(self) -> int:
        """Number of files of the data set. The engine rounds each class."""
        return sum(int(files * self.scale + 0.5) for files, _ in _classes(self.classes))

    @field_validator(*APPLIES)
    @classmethod
    def _means_something(cls, value: object, info: ValidationInfo) -> object:
        operation = info.data.get("operation")
        if operation and info.field_name and operation not in APPLIES[info.field_name]:
            raise ValueError(
                f"not supported by '{operation}'; use it with {', '.join(APPLIES[info.field_name])}"
            )
        return value

    @field_validator("operations")
    @classmethod
    def _possible(cls, value: str, info: ValidationInfo) -> str:
        known = STEPS.get(info.data.get("operation", ""), ())
        names = value.split(",") if value else []
        for name in names:
            if known and name not in known:
                raise ValueError(f"unknown operation '{name}': {nearest(name, known)}")
        if (known and sorted(names, key=known.index) != names) or len(set(names)) != len(names):
            raise ValueError(f"list each operation once, in the order {', '.join(known)}")
        return value

    @field_validator("max_size")
    @classmethod
    def _not_less(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and parse_size(value) < parse_size(info.data.get("size", "0")):
            raise ValueError(f"'{value}' is smaller than 'size'")
        return value

    @property
    def largest_bytes(self) -> int:
        """Maximum size of a small file."""
        return parse_size(self.max_size or self.size)

    @property
    def mean_bytes(self) -> float:
        """Mean size of a small file."""
        return (parse_size(self.size) + self.largest_bytes) / 2

    @field_validator("order")
    @classmethod
    def _orders(cls, value: str | None, info: ValidationInfo) -> str | None:
        files = info.data.get("operation") in STEPS
        known = ("created", "reverse", "random") if files else ("depth", "breadth")
        if value is not None and value not in known:
            raise ValueError(f"unknown order '{value}': {nearest(value, known)}")
        return value

    @field_validator("classes")
    @classmethod
    def _size_classes(cls, value: str | None) -> str | None:
        _classes(value)
        return value

    @field_validator("plant")
    @classmethod
    def _plantable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        match = _PLANT.fullmatch(value)
        if match is None or not _is_share(match[2]):
            raise ValueError(
                f"'{value}' is not text:share[:hits] with a share above 0, at most 1, such as needle:0.1:2"
            )
        if why := _unplantable(match[1]):
            raise ValueError(why)
        return value

    @property
    def plants_pattern(self) -> bool:
        """Whether ``pattern`` is inserted into the files."""
        return self.operation == "search" and self.plant is None and not self.regex

    @model_validator(mode="after")
    def _has_files(self) -> Self:
        if self.operation in TREE and not self.tree_files:
            raise ValueError(
                "'scale': the tree has no file; choose a larger scale, or more files in 'classes'"
            )
        return self

    @model_validator(mode="after")
    def _searchable(self) -> Self:
        if not self.regex and (not self.pattern or "\n" in self.pattern):
            raise ValueError("'pattern' must be one line that is not empty")
        if self.plants_pattern and (why := _unplantable(self.pattern)):
            raise ValueError(f"'pattern': {why}; choose another text, or set 'plant' or 'regex'")
        return self


def _classes(text: str | None) -> list[tuple[int, int]]:
    if text is None:
        return list(STUDY_CLASSES)
    found = []
    for part in text.split(","):
        match = _CLASS.fullmatch(part)
        if match is None:
            raise ValueError(
                f"'{part}' is not name:files:size[:distribution], such as small:1000:32k:lognormal; "
                "size: a whole number with k, m, g or t; distribution: lognormal, uniform or fixed"
            )
        found.append((int(match[1]), parse_size(match[2])))
    return found


def _is_share(text: str) -> bool:
    """Return whether it is a number above 0 and at most 1."""
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


def _unplantable(text: str) -> str | None:
    """Return why the engine cannot insert a text into files; None if it can."""
    if ":" in text:
        return f"'{text}' contains ':', which ends a text to insert"
    if "\n" in text:
        return f"'{text}' must be one line"
    size, (least, most) = len(text.encode()), _PLANTED_BYTES
    if not least <= size <= most:
        return f"'{text}' has {size} bytes; a text to insert must have {least} to {most}"
    return None
