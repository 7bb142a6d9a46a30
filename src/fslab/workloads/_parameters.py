"""What the parameters of tools share: their base class, and the types and checks of their values."""

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from fslab.cell import EntryOptions

# A text that YAML reads as a number if it is one.
Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in {int, float} else value)]


def flags(*known: str) -> AfterValidator:
    """Return the check of a text with some of these words, separated by commas."""

    def checked(value: str) -> str:
        if unknown := set(value.split(",")) - {"", *known}:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
        return value

    return AfterValidator(checked)


def text_key(key: str) -> str:
    """Return the name of the parameter that holds the text of the file that parameter ``key`` names."""
    return f"{key}_text"


# Maximum number of processes, threads or requests in flight of a workload: fio's own limit. Without a limit, a
# mistyped number uses up all process ids of the machine.
MOST_AT_ONCE = 4096


class Parameters(EntryOptions):
    """Base class of every workload's parameters. The field descriptions become the documentation of the study file.

    ``file_keys``: keys that name a file of the user. The file's text is a separate parameter (``text_key``), set when
    the study is loaded, so that it is part of the cell. The workload has it written to a file with ``Commands.inputs``.
    ``command_keys``: keys that hold command lines; a list there is a list of words, not a matrix axis. ``nested_keys``:
    keys whose mapping becomes keys with dots: ``metrics.rate.unit``.
    """

    file_keys: ClassVar[frozenset[str]] = frozenset()
    command_keys: ClassVar[frozenset[str]] = frozenset()
    nested_keys: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _with_texts(self) -> Self:
        """Require each file's text. Else a stored workload would read any file of that name on this machine."""
        for key in self.file_keys:
            named = getattr(self, key, None)
            if named is not None and getattr(self, text_key(key), None) is None:
                raise ValueError(f"the text of '{key}: {named}' is missing")
        return self


SECTOR_BYTES = 512


def check_sectors(key: str, size_bytes: int) -> None:
    """Raise ValueError for a size of direct requests that no device accepts: open(2), O_DIRECT."""
    if size_bytes % SECTOR_BYTES:
        raise ValueError(f"'{key}' must be a multiple of {SECTOR_BYTES} bytes with direct I/O")
