"""Finds, lists and looks up registered files: one file system, layout, medium, workload or probe per file.

A file's name is its identifier (``lvm_stripe.py`` is ``lvm-stripe``) and it defines exactly one concrete
subclass of its package's contract. Listing names imports nothing. No table anywhere mentions a file.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from typing import Generic, Protocol, TypeVar

from fslab.errors import UsageError, nearest


class Named(Protocol):
    """What every contract has: a name that the registry sets."""

    name: str


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """The registered files of one package.

    ``kind`` is the word used in messages ("file system"), ``package`` the dotted package whose modules
    are the entries, ``contract`` the base class each of them implements.
    """

    def __init__(self, kind: str, package: str, contract: type[T]) -> None:
        self.kind = kind
        self.package = package
        self.contract = contract
        self._loaded: dict[str, T] = {}

    @cached_property
    def _modules(self) -> dict[str, str]:
        modules: dict[str, str] = {}
        for module in pkgutil.iter_modules(import_module(self.package).__path__):
            if module.name.startswith("_"):
                continue  # shared by several entries, no entry itself
            name = module.name.replace("_", "-")
            if name in modules:
                raise RuntimeError(f"two {self.kind} files are called '{name}' in {self.package}")
            modules[name] = f"{self.package}.{module.name}"
        return modules

    def names(self) -> tuple[str, ...]:
        """All identifiers, sorted, without importing any entry."""
        return tuple(sorted(self._modules))

    def get(self, name: str) -> T:
        """The entry called ``name``; UsageError with the nearest known name if there is none."""
        if name not in self._loaded:
            if name not in self._modules:
                raise UsageError(f"no {self.kind} '{name}'", hint=nearest(name, self._modules))
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return ((name, self.get(name)) for name in self.names())

    def _load(self, name: str) -> T:
        module = import_module(self._modules[name])
        classes = [
            item
            for item in vars(module).values()
            if inspect.isclass(item)
            and issubclass(item, self.contract)
            and item.__module__ == module.__name__
            and not inspect.isabstract(item)
        ]
        if len(classes) != 1:
            raise RuntimeError(f"{module.__name__} must define exactly one {self.kind}, found {len(classes)}")
        entry = classes[0]()
        entry.name = name
        return entry
