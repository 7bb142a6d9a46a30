"""fslab: which Linux file system, with which options, for this work, on this machine, and how sure is that."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("fslab")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"
