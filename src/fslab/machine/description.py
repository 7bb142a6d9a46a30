"""What a plan has to know of a machine, as a value with a JSON form: ``description`` of ``fslab doctor --json``."""

from pydantic import ConfigDict, Field, model_validator

from fslab.cell import Frozen
from fslab.units import counted, format_size


class DescribedKind(Frozen):
    """One kind of machine (host, uml, qemu). ``missing``: why it cannot be used; else all other fields are known.

    ``filesystems``: types of mount. ``modules``: those of layouts, loadable or built in. ``emulated``: every
    instruction is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    missing: tuple[str, ...] = ()
    kernel: str | None = None
    cpus: int | None = Field(None, ge=1)
    emulated: bool = False
    filesystems: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> "DescribedKind":
        if not self.missing and (self.kernel is None or self.cpus is None):
            raise ValueError("has neither 'kernel' and 'cpus' nor 'missing'")
        return self


class MachineDescription(Frozen):
    """A machine. ``kinds``: by name; a kind that is not there cannot be used. ``free_bytes``: of the file system for
    images, and of memory file systems (None: not checked). ``programs_missing``: those that are not installed.
    ``limits_memory``: whether fslab can limit the memory of a tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    memory_bytes: int = Field(ge=1 << 20)
    distribution: str | None = None
    root: bool
    limits_memory: bool = False
    programs_missing: tuple[str, ...]
    images_free_bytes: int | None = Field(None, ge=0)
    memory_files_free_bytes: int | None = Field(None, ge=0)
    kinds: dict[str, DescribedKind]

    @property
    def words(self) -> str:
        """CPUs, memory and kernel in words."""
        host = self.kinds["host"]
        return f"{counted(host.cpus or 1, 'CPU')}, {format_size(self.memory_bytes)}, Linux {host.kernel}"

    @model_validator(mode="after")
    def _has_host(self) -> "MachineDescription":
        if "host" not in self.kinds or self.kinds["host"].missing:
            raise ValueError("'kinds' has no 'host' that can be used")
        return self
