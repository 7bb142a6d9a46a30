"""Tests of registries: entries are found by file name, or by their own; for a wrong name, the nearest is suggested."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fslab.errors import UsageError
from fslab.registry import Registry
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.validity.campaign_warnings import REGISTRY as CAMPAIGN_RULES
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES
from fslab.workloads import REGISTRY as WORKLOADS

REGISTRIES: list[Registry[Any]] = [FILESYSTEMS, LAYOUTS, MEDIA, WORKLOADS, TRIAL_RULES, CAMPAIGN_RULES]
ENTRIES = [pytest.param(registry, name, id=name) for registry in REGISTRIES for name in registry.names()]

CONTRACT = "from tests_registry_contract import Animal\n"


class Animal(ABC):
    name: str

    @abstractmethod
    def says(self) -> str: ...


class Made(Animal):
    def __init__(self, says: Callable[[], str]) -> None:
        self.name, self.__module__ = says.__name__, says.__module__
        self._says = says

    def says(self) -> str:
        return self._says()


def animal(says: Callable[[], str]) -> Made:
    return Made(says)


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a new, empty package of entries, importable as ``zoo``."""
    package = tmp_path / "zoo"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "tests_registry_contract", sys.modules[__name__])
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "zoo"]:
        del sys.modules[name]


def _entry(package: Path, module: str, *classes: str) -> None:
    bodies = "".join(f"class {name}(Animal):\n    def says(self): return {name!r}\n" for name in classes)
    (package / f"{module}.py").write_text(CONTRACT + bodies)


def test_a_file_is_an_entry_called_by_its_name(zoo: Path) -> None:
    _entry(zoo, "guinea_pig", "Pig")
    _entry(zoo, "_shared")
    registry = Registry("animal", "zoo", Animal)
    assert registry.names() == ("guinea-pig",)
    entry = registry.get("guinea-pig")
    assert (entry.name, entry.says()) == ("guinea-pig", "Pig")
    assert registry.get("guinea-pig") is entry


def test_names_are_listed_without_importing(zoo: Path) -> None:
    (zoo / "broken.py").write_text("raise RuntimeError('imported')\n")
    registry = Registry("animal", "zoo", Animal)
    assert registry.names() == ("broken",)
    with pytest.raises(RuntimeError, match="imported"):
        registry.get("broken")


def test_a_wrong_name_gets_the_nearest(zoo: Path) -> None:
    _entry(zoo, "horse", "Horse")
    _entry(zoo, "cow", "Cow")
    with pytest.raises(UsageError, match=r"no animal 'hrose'\n.*did you mean 'horse'"):
        Registry("animal", "zoo", Animal).get("hrose")


@pytest.mark.parametrize("classes", [(), ("Cat", "Dog")])
def test_a_file_has_exactly_one_entry(zoo: Path, classes: tuple[str, ...]) -> None:
    _entry(zoo, "pet", *classes)
    with pytest.raises(RuntimeError, match=f"exactly one animal, found {len(classes)}"):
        Registry("animal", "zoo", Animal).get("pet")


def test_two_files_of_one_name_stop_the_program(zoo: Path) -> None:
    _entry(zoo, "sea_lion", "Lion")
    (zoo / "sea-lion.py").write_text("")
    with pytest.raises(RuntimeError, match="two animal entries are called 'sea-lion'"):
        Registry("animal", "zoo", Animal).names()


def test_entries_of_one_subject_share_a_file(zoo: Path) -> None:
    """Classes, and instances that a decorator made. What a file imports or keeps for itself is no entry."""
    _entry(zoo, "farm", "Cow", "GuineaPig", "_Barn")
    (zoo / "sea.py").write_text(
        "from tests_registry_contract import animal\nfrom zoo.farm import Cow\n"
        "@animal\ndef sea_lion(): return 'roar'\n"
    )
    registry = Registry("animal", "zoo", Animal, by_subject=True)
    assert registry.names() == ("cow", "guinea-pig", "sea-lion")
    assert [(entry.name, entry.says()) for _, entry in registry] == [
        ("cow", "Cow"),
        ("guinea-pig", "GuineaPig"),
        ("sea-lion", "roar"),
    ]
    _entry(zoo, "lake", "SeaLion")
    with pytest.raises(RuntimeError, match="two animal entries are called 'sea-lion' in zoo"):
        Registry("animal", "zoo", Animal, by_subject=True).names()


def test_a_single_module_can_hold_all_entries(zoo: Path) -> None:
    _entry(zoo, "farm", "Cow", "Horse")
    assert Registry("animal", "zoo.farm", Animal, by_subject=True).names() == ("cow", "horse")


@pytest.mark.parametrize(("registry", "name"), ENTRIES)
def test_every_entry_of_fslab_loads_and_says_what_it_is(registry: Registry[Any], name: str) -> None:
    entry = registry.get(name)
    assert entry.name == name
    assert isinstance(entry, registry.contract)
    assert entry.summary
    assert not entry.summary.endswith(".")
