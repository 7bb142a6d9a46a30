"""Finds, lists and looks up entries: file systems, layouts, workloads, probes, rules and others of a package.

An entry is a concrete subclass of its package's contract, or an instance of it that a decorator made of a function.
Where one file holds one entry, the name of the file is its identifier (``lvm_stripe.py`` is ``lvm-stripe``), and
listing names imports nothing. Where the small entries of one subject share a file (``by_subject``), the name of the
class or function is the identifier (``cache_dropped`` is ``cache-dropped``), unless a class sets another ``name``.
Other packages add entries by entry points (``fslab.plugins``). There is no table of the entries.
"""

import inspect
import logging
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeGuard, TypeVar

from fslab import plugins
from fslab.errors import PluginError, UsageError, nearest
from fslab.plugins import Plugin

logger = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Named(Protocol):
    """The protocol of all contracts: a name, which the registry sets."""

    name: str


T = TypeVar("T", bound=Named)


F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E")
P = ParamSpec("P")


class FunctionEntry:
    """An entry that a decorator makes of a function: it has the function's name, module and docstring."""

    name: str

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__


def decorator_of(kind: Callable[Concatenate[F, P], E]) -> Callable[P, Callable[[F], E]]:
    """Return the decorator that makes an entry of a function. It takes what the entry does besides the function."""
    return lambda *args, **more: lambda function: kind(function, *args, **more)


class Registry(Generic[T]):
    """The entries of one package, and the plug-ins of its group.

    ``kind``: the word for an entry in messages ("file system"). ``package``: the dotted name of the package whose
    modules define the entries, or of a single module. ``contract``: the base class of all entries. ``by_subject``: a
    module defines any number of entries. ``group``: the group of the entry points. ``otherwise``: what a user can do
    who needs an entry that does not exist. ``source``: another registry, each of whose entries becomes one of this,
    made by ``of_source``.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        contract: type[T],
        *,
        by_subject: bool = False,
        group: str | None = None,
        otherwise: str = "",
        source: "Registry[Any] | None" = None,
        of_source: Callable[[Any], T | type[T]] | None = None,
    ) -> None:
        self.kind = kind
        self.otherwise = otherwise
        self.package = package
        self.contract = contract
        self.by_subject = by_subject
        self.group = group
        self._source = source
        self._of_source = of_source
        self._loaded: dict[str, T] = {}
        self._warned: set[str] = set()

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each built-in entry."""
        package = import_module(self.package)
        inner = [
            f"{self.package}.{module.name}"
            for module in pkgutil.iter_modules(getattr(package, "__path__", ()))
            if not module.name.startswith("_")  # code that entries share, not an entry
        ]
        modules: dict[str, str] = {}
        for module in inner or [self.package]:
            for name in self._names_in(module):
                if name in modules:
                    raise RuntimeError(f"two {self.kind} entries are called '{name}' in {self.package}")
                modules[name] = module
        return modules

    def _names_in(self, module: str) -> Iterable[str]:
        if self.by_subject:
            return self._entries_in(import_module(module))
        return (_identifier(module.rpartition(".")[2]),)

    @cached_property
    def _plugins(self) -> tuple[dict[str, Plugin], tuple[PluginError, ...]]:
        """The usable plug-ins by name, and the errors of the others. Each name must be unique."""
        found = plugins.of_group(self.group) if self.group else ()
        usable: dict[str, Plugin] = {}
        refused = []
        for plugin in found:
            rivals = [str(each) for each in found if each.name == plugin.name and each is not plugin]
            why = ""
            if not _NAME.fullmatch(plugin.name):
                why = "needs a name that begins with a-z: words of a-z and 0-9, joined with '-'"
            elif plugin.name in self._modules:
                why = f"is not used: a built-in {self.kind} has the same name"
            elif rivals:
                why = f"is not used, nor is that of {', '.join(rivals)}, which has the same name"
            if why:
                refused.append(plugin.error(why))
            else:
                usable[plugin.name] = plugin
        return usable, tuple(refused)

    def names(self) -> tuple[str, ...]:
        derived = self._source.names() if self._source is not None else ()
        return tuple(sorted({*self._modules, *self._plugins[0], *derived}))

    def plugin(self, name: str) -> Plugin | None:
        """Return the plug-in that provides an entry; None if it is built in or does not exist."""
        own = self._plugins[0].get(name)
        return own if own is not None or self._source is None else self._source.plugin(name)

    def versions(self, names: Iterable[str | None]) -> dict[str, str]:
        """Return the plug-in packages that provide these entries, with their versions. Omits built-in entries."""
        found = [plugin for name in names if name is not None and (plugin := self.plugin(name))]
        return {plugin.distribution: plugin.version for plugin in found}

    def get(self, name: str) -> T:
        """Return the entry ``name``. Raises UsageError, with the most similar known name, if there is none."""
        if name not in self._loaded:
            if name not in self.names():
                raise UsageError(f"no {self.kind} '{name}'", hint=nearest(name, self.names()))
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Yield all entries. Omits a plug-in that cannot be loaded, and warns once (``require`` raises instead)."""
        for name in self.names():
            try:
                yield name, self.get(name)
            except PluginError as error:
                if name not in self._warned:
                    self._warned.add(name)
                    logger.warning("%s", error)

    def problems(self) -> tuple[PluginError, ...]:
        """Return why plug-ins of this group are not used: refused names, and errors while loading. Iterating does
        not warn of them again."""
        usable, refused = self._plugins
        failed = []
        for name in usable:
            try:
                self.get(name)
            except PluginError as error:
                self._warned.add(name)
                failed.append(error)
        return (*refused, *failed)

    def require(self) -> None:
        """Raise PluginError unless every plug-in of this group can be used."""
        for error in self.problems():
            raise error

    def _load(self, name: str) -> T:
        plugin = self._plugins[0].get(name)
        if plugin is None and name not in self._modules and self._source and self._of_source:
            entry = self._made(self._of_source(self._source.get(name)))
        elif plugin is None:
            home = import_module(self._modules[name])
            entry = self._made(self._entries_in(home)[name] if self.by_subject else self._only_entry(home))
        else:
            loaded = plugin.load()
            try:
                entry = self._made(
                    self._only_entry(loaded) if isinstance(loaded, ModuleType) else self._checked(loaded)
                )
            except Exception as error:
                raise plugin.error(f"is no {self.kind}: {error}") from error
        entry.name = name
        return entry

    def _made(self, item: T | type[T]) -> T:
        """Return the entry. RuntimeError if it lacks an attribute that the contract declares without a value."""
        entry = item() if isinstance(item, type) else item
        declared = {name for each in self.contract.__mro__ for name in inspect.get_annotations(each)}
        lacking = sorted(name for name in declared - {"name"} if not hasattr(entry, name))
        if lacking:
            raise RuntimeError(f"{type(entry).__name__} lacks {', '.join(lacking)}")
        return entry

    def _entries_in(self, module: ModuleType) -> dict[str, T | type[T]]:
        """Return the entries that a module defines, by identifier."""
        return {
            _identifier(getattr(item, "name", name)): item
            for name, item in vars(module).items()
            if self._fits(item) and item.__module__ == module.__name__ and not name.startswith("_")
        }

    def _only_entry(self, module: ModuleType) -> T | type[T]:
        entries = [*self._entries_in(module).values()]
        if len(entries) != 1:
            abstract = [self._unfinished(item) for item in vars(module).values() if inspect.isabstract(item)]
            lacking = "".join(f"; {why}" for why in abstract if why)
            raise RuntimeError(
                f"{module.__name__} must define exactly one {self.kind}, found {len(entries)}{lacking}"
            )
        return entries[0]

    def _checked(self, item: object) -> T | type[T]:
        if not self._fits(item):
            wrong = f"{item!r} is neither a {self.contract.__name__} nor a subclass of it"
            raise RuntimeError(self._unfinished(item) or wrong)
        return item

    def _unfinished(self, item: object) -> str | None:
        """Return which methods an abstract subclass of the contract lacks; None for anything else."""
        if not inspect.isclass(item) or not issubclass(item, self.contract) or item is self.contract:
            return None
        return f"{item.__name__} lacks {', '.join(sorted(item.__abstractmethods__))}"

    def _fits(self, item: object) -> TypeGuard[T | type[T]]:
        if not inspect.isclass(item):
            return isinstance(item, self.contract)
        return issubclass(item, self.contract) and item is not self.contract and not inspect.isabstract(item)


def _identifier(name: str) -> str:
    """Return the identifier for the name of a module, a function or a class."""
    return _CAPITAL.sub("-", name).replace("_", "-").lower()
