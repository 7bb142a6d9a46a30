"""Tests of plug-ins: found by metadata alone, refused if unsafe or ambiguous; a broken one does not affect others."""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from pathlib import Path
from zipfile import ZipFile

import pytest

from fslab import feasibility, plugins
from fslab.api import capabilities
from fslab.cell import Cell, MediumSpec, StackSpec, WorkloadSpec
from fslab.errors import PluginError, ToolOutputError, UsageError
from fslab.registry import Registry
from fslab.workloads import Commands, Reading, ToolOutput, parsed

GROUP = "fslab.animals"
HORSE = """\
from tests_plugins_contract import Animal
class Horse(Animal):
    legs = 4
    def says(self): return 'neigh'
"""


class Animal(ABC):
    name: str
    legs: int

    @abstractmethod
    def says(self) -> str: ...


Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package of one module with one entry point into a directory on ``sys.path``."""
    site, modules = tmp_path / "site", []
    site.mkdir()
    zoo = tmp_path / "built_in" / "plugzoo"
    zoo.mkdir(parents=True)
    (zoo / "__init__.py").write_text("")
    (zoo / "cow.py").write_text(HORSE.replace("Horse", "Cow"))
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(zoo.parent)
    monkeypatch.setitem(sys.modules, "tests_plugins_contract", sys.modules[__name__])

    def make(name: str = "horse", text: str = HORSE, package: str = "stable", version: str = "1.0") -> Path:
        info = site / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {package}\n")
        module = site / f"{package}.py"
        module.write_text(text)
        modules.append(package)
        plugins._installed.cache_clear()
        return module

    yield make
    plugins._installed.cache_clear()
    for name in [*modules, "stable.deep", "plugzoo", "plugzoo.cow"]:
        sys.modules.pop(name, None)


def registry() -> Registry[Animal]:
    return Registry("animal", "plugzoo", Animal, group=GROUP)


def test_a_plugin_stands_beside_what_is_built_in(install: Install) -> None:
    install()
    animals = registry()
    assert animals.names() == ("cow", "horse")
    assert (animals.get("horse").name, animals.get("horse").says()) == ("horse", "neigh")
    assert str(animals.plugin("horse")) == "stable 1.0"
    assert animals.plugin("cow") is None
    assert animals.versions(["cow", "horse", None]) == {"stable": "1.0"}
    assert animals.problems() == ()


def test_names_are_known_without_running_its_code(install: Install) -> None:
    install(text="raise SystemExit('run')")
    assert registry().names() == ("cow", "horse")
    assert "stable" not in sys.modules


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise SystemExit('gone')", "SystemExit: gone"),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        ("x =", "invalid syntax"),
        ("", "exactly one animal, found 0"),
        (HORSE.replace("says", "sings"), "exactly one animal, found 0; Horse lacks says"),
        (HORSE.replace("legs", "feet"), "is no animal: Horse lacks legs"),
        (HORSE + "    def __init__(self): raise KeyError('tail')", "tail"),
    ],
)
def test_a_broken_plugin_says_what_is_wrong_and_breaks_nothing_else(
    install: Install, text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    install(text=text)
    animals = registry()
    with pytest.raises(
        PluginError, match=f"(?s)stable 1.0: plug-in 'horse'.*{why}.*uninstall or replace stable"
    ):
        animals.get("horse")
    assert [name for name, _ in animals] == ["cow"]
    assert [name for name, _ in animals] == ["cow"]
    assert [record.message.count("stable 1.0") for record in caplog.records] == [1], "said once"
    with pytest.raises(PluginError, match=why):
        animals.require()


def test_a_plugin_of_a_misspelt_group_is_told(install: Install) -> None:
    install()
    (told,) = plugins.of_other_groups({"fslab.animal", "fslab.plants"})
    assert "no such group (did you mean 'fslab.animal'?" in told.what
    assert list(plugins.of_other_groups({GROUP})) == []


def test_a_problem_that_is_listed_is_not_warned_of_too(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(text="")
    animals = registry()
    assert len(animals.problems()) == 1
    assert [name for name, _ in animals] == ["cow"]
    assert not caplog.records


def test_the_groups_of_lists_are_those_of_their_registries() -> None:
    for kind in capabilities.KINDS:
        if kind != capabilities.STUDIES:
            assert capabilities._registry(kind).group == f"fslab.{kind.replace('-', '_')}"


def test_a_builtin_name_cannot_be_taken(install: Install) -> None:
    install(name="cow")
    animals = registry()
    assert animals.get("cow").__class__.__module__ == "plugzoo.cow"
    assert animals.plugin("cow") is None
    with pytest.raises(PluginError, match="a built-in animal has the same name"):
        animals.require()


def test_of_two_plugins_with_one_name_neither_is_used(install: Install) -> None:
    install()
    install(package="paddock")
    animals = registry()
    assert animals.names() == ("cow",)
    found = [str(error) for error in animals.problems()]
    assert len(found) == 2
    assert "nor is that of paddock 1.0" in "".join(found)
    with pytest.raises(UsageError, match="no animal 'horse'"):
        animals.get("horse")


def test_a_name_that_studies_cannot_write_is_refused(install: Install) -> None:
    install(name="../Horse")
    assert registry().names() == ("cow",)
    assert "words of a-z and 0-9" in str(registry().problems()[0])


@pytest.mark.parametrize("place", ["module", "directory"])
def test_what_others_can_write_is_not_loaded(install: Install, place: str) -> None:
    module = install()
    unsafe = module if place == "module" else module.parent
    unsafe.chmod(unsafe.stat().st_mode | 0o002)
    with pytest.raises(PluginError, match=f"plug-in not loaded: other users can write to {unsafe}"):
        registry().get("horse")
    assert "stable" not in sys.modules
    unsafe.chmod(unsafe.stat().st_mode & ~0o002)
    assert registry().get("horse").says() == "neigh"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to somebody else")
def test_what_belongs_to_somebody_else_is_not_loaded(install: Install) -> None:
    module = install()
    os.chown(module, 65534, 65534)
    with pytest.raises(PluginError, match="belongs to user 65534"):
        registry().get("horse")


def test_a_package_is_checked_with_all_its_files(install: Install) -> None:
    module = install()
    package = module.with_suffix("")
    package.mkdir()
    module.rename(package / "__init__.py")
    (package / "deep").mkdir()
    helper = package / "deep" / "helper.py"
    helper.write_text("")
    helper.chmod(0o666)
    with pytest.raises(PluginError, match=r"helper\.py: plug-in not loaded"):
        registry().get("horse")


def test_compiled_files_beside_a_module_are_checked(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python runs a compiled file whose header fits the source, without a look at the source."""
    module = install()
    compiled = Path(cache_from_source(str(module)))
    compiled.parent.mkdir(mode=0o777)
    compiled.parent.chmod(0o777)
    with pytest.raises(PluginError, match=f"other users can write to {compiled.parent}"):
        registry().get("horse")
    compiled.parent.chmod(0o755)
    compiled.touch()
    compiled.chmod(0o666)
    with pytest.raises(PluginError, match=f"other users can write to {compiled}"):
        registry().get("horse")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    elsewhere.chmod(0o1777)
    monkeypatch.setattr(sys, "pycache_prefix", str(elsewhere))
    with pytest.raises(PluginError, match=f"other users can write to {elsewhere}"):
        registry().get("horse")
    assert "stable" not in sys.modules


def test_a_linked_part_of_a_package_is_checked(install: Install, tmp_path: Path) -> None:
    module = install()
    package = module.with_suffix("")
    package.mkdir()
    module.rename(package / "__init__.py")
    (linked := tmp_path / "linked/part").mkdir(parents=True)
    (package / "part").symlink_to(linked)
    (package / "again").symlink_to(package)  # a loop
    assert registry().get("horse").says() == "neigh"
    sys.modules.pop("stable")
    (linked / "helper.py").touch()
    (linked / "helper.py").chmod(0o666)
    with pytest.raises(PluginError, match=r"other users can write to \S+/part/helper\.py"):
        registry().get("horse")
    (linked / "helper.py").chmod(0o644)
    linked.parent.chmod(0o777)
    with pytest.raises(PluginError, match=f"other users can write to {linked.parent}"):
        registry().get("horse")


def archived(install: Install, *, module: str = "stable/deep.py", mode: int = 0o666) -> Path:
    """Install a plug-in in a ZIP archive that is on ``sys.path``, as eggs are."""
    installed = install()
    info = next(installed.parent.glob("*.dist-info"))
    archive = installed.parent.with_suffix(".zip")
    with ZipFile(archive, "w") as content:
        content.writestr("stable/__init__.py", "")
        content.writestr(module, HORSE)
        content.writestr(f"{info.name}/METADATA", (info / "METADATA").read_text())
        content.writestr(f"{info.name}/entry_points.txt", f"[{GROUP}]\nhorse = stable.deep\n")
    archive.chmod(mode)
    shutil.rmtree(info)
    installed.unlink()
    plugins._installed.cache_clear()
    return archive


@pytest.mark.parametrize("mode", [0o666, 0o644])
def test_an_archive_that_others_can_write_to_is_not_loaded(
    install: Install, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    archive = archived(install, mode=mode)
    monkeypatch.syspath_prepend(archive)
    if mode == 0o644:
        assert registry().get("horse").says() == "neigh"
        return
    with pytest.raises(PluginError, match=f"other users can write to {archive}"):
        registry().get("horse")
    assert "stable" not in sys.modules


def test_metadata_in_an_archive_are_checked(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = archived(install, module="unused.py")
    package = tmp_path / "safe/stable"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "deep.py").write_text(HORSE)
    monkeypatch.syspath_prepend(archive)
    monkeypatch.syspath_prepend(package.parent)
    with pytest.raises(PluginError, match=f"other users can write to {archive}"):
        registry().get("horse")
    assert "stable" not in sys.modules


@pytest.mark.parametrize("module", ["deep", "deep.horse"])
def test_a_module_that_its_package_keeps_elsewhere_is_checked(
    install: Install, tmp_path: Path, module: str
) -> None:
    """To find ``deep.horse``, Python imports ``deep``."""
    stable = install()
    package = stable.with_suffix("")
    package.mkdir()
    (package / "__init__.py").write_text(f"__path__.append({str(tmp_path / 'elsewhere')!r})\n")
    (deep := tmp_path / "elsewhere/deep/__init__.py").parent.mkdir(parents=True)
    for file in (deep, deep.with_name("horse.py")):
        file.write_text(HORSE)
    stable.unlink()
    entries = next(stable.parent.glob("*.dist-info")) / "entry_points.txt"
    entries.write_text(f"[{GROUP}]\nhorse = stable.{module}\n")
    deep.chmod(0o666)
    with pytest.raises(PluginError, match=f"other users can write to {deep}"):
        registry().get("horse")
    assert "stable.deep" not in sys.modules


@pytest.mark.parametrize("name", ["entry_points.txt", "METADATA", "RECORD", ""])
def test_what_names_a_module_is_checked(install: Install, name: str) -> None:
    """Importing a module runs it, whoever wrote it: another user's entry point may not choose one."""
    file = next(install().parent.glob("*.dist-info")) / name
    if not file.exists():
        file.touch()
    file.chmod(file.stat().st_mode | 0o002)
    with pytest.raises(PluginError, match=f"other users can write to {file}"):
        registry().get("horse")
    assert "stable" not in sys.modules


@pytest.mark.parametrize("value", ["off", "OFF", "0"])
def test_plugins_can_be_switched_off(install: Install, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install()
    monkeypatch.setenv("FSLAB_PLUGINS", value)
    assert registry().names() == ("cow",)


def test_a_cell_is_another_one_with_another_version() -> None:
    def cell(plugins: dict[str, str]) -> Cell:
        stack = StackSpec(name="s", medium=MediumSpec(name="m", type="ram"), plugins=plugins)
        return Cell(stack=stack, workload=WorkloadSpec(name="w", tool="dd"))

    plain, first, second = cell({}), cell({"stable": "1.0"}), cell({"stable": "1.1"})
    assert len({each.id for each in (plain, first, second)}) == 3
    assert len({each.content_id for each in (plain, first, second)}) == 3
    assert "plugins" not in plain.model_dump_json(exclude_defaults=True), "built-in cells keep their ids"
    feasibility.check_plugins(plain)
    with pytest.raises(PluginError, match=r"planned with plug-in stable 1.0, but no plug-in is installed"):
        feasibility.check_plugins(first)


def test_what_a_workload_of_a_plugin_returns_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = parsed(WorkloadSpec(name="w", tool="dd", parameters={"op": "write", "count": 1}))
    (metric, *_) = (each.name for each in workload.metrics())
    returned: list[tuple[object, str]] = [
        ({"rate": 5.0}, "dd: its 'read' returns a dict, not a Reading"),
        (Reading(metrics={metric: -5.0}), f"dd reported a negative number or no finite one: {metric}"),
        (Reading(metrics={metric: "5"}), "dd's output is not as documented .TypeError"),  # type: ignore[dict-item]
        (Reading(metrics=[metric]), "dd's output is not as documented .AttributeError"),  # type: ignore[arg-type]
        (Reading(metrics={"other": 5.0}), "dd: its 'read' returns what its 'metrics' do not declare: other"),
    ]
    for value, told in returned:
        monkeypatch.setattr(type(workload.tool), "read", lambda *_, value=value: value)
        with pytest.raises(ToolOutputError, match=told):
            workload.read(ToolOutput(stdout="", stderr="", duration_s=1.0))
    with pytest.raises(PluginError, match="command 'touch f' is a text"):
        Commands(run="touch f")  # type: ignore[arg-type]
