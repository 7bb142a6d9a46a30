"""Opens files as descriptors that are closed at the end of a block."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> Iterator[int]:
    """Yield a descriptor of a file: open(2) with O_CLOEXEC; a new file has mode 0600."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
