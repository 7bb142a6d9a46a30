"""What a study may say of the load engine, for each of its operations. Values only; runs nothing."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from fslab.errors import nearest
from fslab.units import Size, parse_size
from fslab.workloads import MOST_AT_ONCE, Parameters

FILES = ("create", "stat", "read", "delete")
META = (
    "create", "open-close", "stat", "chmod", "truncate", "rename", "link", "symlink", "readdir", "mkdir", "rmdir",
    "unlink",
)  # fmt: skip
TREE = ("analyze", "classify", "duplicates", "search", "sync-read", "sync-write", "delete")
OPERATIONS = ("small-files", "meta", *TREE)
STEPS: Mapping[str, tuple[str, ...]] = {"small-files": FILES, "meta": META}

# The operations that a key means something to; keys that are not listed fit all of them.
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

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in {int, float} else value)]


class EngineParameters(Parameters):
    """Options of ``fslab-engine``, spelled as its own.

    ``small-files`` and ``meta`` work on files of their own. Only the ``operations`` that are listed are
    measured; what the first of them needs is prepared outside the measurement. To read files with a cold cache,
    list no ``create`` before: what a run has made itself is still cached. The other operations work on a tree that
    ``fslab-engine populate`` made, with a ground-truth manifest: a wrong answer makes the trial invalid.
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
    ] = Field(default="small-files", description="what to do")
    threads: int = Field(default=1, ge=1, le=MOST_AT_ONCE, description="threads that work at once")
    latency: Literal["off", "operation", "syscalls"] = Field(
        default="operation", description="how much latency is recorded"
    )
    operations: str = Field(
        default="", description="small-files, meta: which steps, in their order; default: all"
    )
    files: int = Field(default=10_000, ge=1, description="small-files, meta: number of files")
    size: Size = Field(default="4k", description="small-files: length of each file; 0 makes them empty")
    max_size: Size | None = Field(
        default=None,
        alias="max-size",
        description="small-files: length of the longest; lengths are drawn evenly from `size` on; default: all alike",
    )
    dirs: int = Field(
        default=1, ge=1, description="small-files, meta: directories that the files are spread over"
    )
    fsync: bool = Field(default=False, description="small-files: fsync each file before it is closed")
    syncfs: bool = Field(
        default=True,
        description="small-files, meta, delete: end what changes anything with a syncfs, measured too",
    )
    order: Text | None = Field(
        default=None,
        description="small-files, meta: created, reverse, random (how files are gone through once they are created); "
        "trees: depth, breadth",
    )
    scale: float = Field(
        default=0.002, gt=0, description="trees: factor on the number of files of each class"
    )
    classes: str | None = Field(
        default=None,
        description="trees: size classes as name:files:size[:distribution], comma-separated; default: the 450000 files "
        "of 32k, 50000 of 4m and 1000 of 100m on average of the file-management study",
    )
    compressibility: float | None = Field(
        default=None, ge=0, le=1, description="trees: share of repeating contents"
    )
    duplicate_share: float = Field(
        default=0.1, ge=0, le=0.9, description="trees: share of exact copies of others"
    )
    data_seed: int = Field(default=1, ge=0, description="trees: what the data set depends on")
    plant: str | None = Field(default=None, description="trees: text to plant, as text:share[:hits]")
    by: Literal["name", "content", "both"] = Field(default="both", description="classify: by what")
    hash: Literal["blake3", "xxh3"] | None = Field(
        default=None, description="duplicates: how contents are compared"
    )
    pattern: str = Field(
        default="fslab-needle", description="search: what to look for; planted if nothing else is"
    )
    regex: bool = Field(default=False, description="search: the pattern is a regular expression over bytes")
    buffer: Size | None = Field(default=None, description="search, sync-read, sync-write: bytes at once")
    direct: bool = Field(default=False, description="sync-read: O_DIRECT")
    method: Literal["read-write", "copy-file-range", "reflink"] = Field(
        default="read-write", description="sync-write: how contents are copied"
    )
    sync: Literal["none", "file", "directory", "syncfs"] = Field(
        default="syncfs",
        description="sync-write: what makes the copy durable, measured: file for contents, directory for names as well",
    )

    @property
    def measured(self) -> tuple[str, ...]:
        """The operations of the engine's document whose figures count, in order."""
        if self.operation not in STEPS:
            return (self.operation,)
        return tuple(self.operations.split(",")) if self.operations else STEPS[self.operation]

    @property
    def tree_bytes(self) -> int:
        """What the data set will hold, about."""
        return int(sum(files * mean for files, mean in _classes(self.classes)) * self.scale)

    @property
    def tree_files(self) -> int:
        return round(sum(files for files, _ in _classes(self.classes)) * self.scale)

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
                raise ValueError(f"no operation '{name}': {nearest(name, known)}")
        if (known and sorted(names, key=known.index) != names) or len(set(names)) != len(names):
            raise ValueError(f"each once, in the order {', '.join(known)}")
        return value

    @field_validator("max_size")
    @classmethod
    def _not_less(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and parse_size(value) < parse_size(info.data.get("size", "0")):
            raise ValueError(f"'{value}' is less than 'size'")
        return value

    @property
    def largest_bytes(self) -> int:
        """Of a small file, at most."""
        return parse_size(self.max_size or self.size)

    @property
    def mean_bytes(self) -> float:
        """Of a small file."""
        return (parse_size(self.size) + self.largest_bytes) / 2

    @field_validator("order")
    @classmethod
    def _orders(cls, value: str | None, info: ValidationInfo) -> str | None:
        files = info.data.get("operation") in STEPS
        known = ("created", "reverse", "random") if files else ("depth", "breadth")
        if value is not None and value not in known:
            raise ValueError(f"no order '{value}': {nearest(value, known)}")
        return value

    @field_validator("classes")
    @classmethod
    def _size_classes(cls, value: str | None) -> str | None:
        _classes(value)
        return value

    @field_validator("plant")
    @classmethod
    def _plantable(cls, value: str | None) -> str | None:
        if value is not None and not _share_of(value):
            raise ValueError(f"'{value}' is not text:share[:hits] with a share up to 1, such as needle:0.1:2")
        return value


def _classes(text: str | None) -> list[tuple[int, int]]:
    if text is None:
        return list(STUDY_CLASSES)
    found = []
    for part in text.split(","):
        fields = part.split(":")
        if len(fields) not in {3, 4} or not fields[1].isdigit():
            raise ValueError(
                f"'{part}' is not name:files:size[:distribution], such as small:1000:32k:lognormal"
            )
        found.append((int(fields[1]), parse_size(fields[2])))
    return found


def _share_of(plant: str) -> bool:
    """Whether ``text:share[:hits]`` has a share from above 0 to 1."""
    fields = plant.split(":")
    try:
        return 0 < float(fields[1]) <= 1
    except (IndexError, ValueError):
        return False
