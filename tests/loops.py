"""Attaches loop devices for tests."""

from __future__ import annotations

from pathlib import Path

from fslab.system import loop_devices, proc

# Of losetup(8), whose free device another process has removed meanwhile, such as an fslab that renews its own.
_GONE = ("No such device", "No such file or directory")
_ATTEMPTS = 20


def attached(image: Path | str, *options: str, direct: bool = False) -> Path:
    """Attach the first free loop device to an image or a device, and return it."""
    *words, path = loop_devices.attach_argv(Path(image), direct=direct)
    for _ in range(_ATTEMPTS):
        done = proc.run([*words, *options, path], check=False)
        if done.returncode == 0:
            return Path(done.stdout.strip())
        if not any(each in done.stderr for each in _GONE):
            break
    raise proc.failed(done)
