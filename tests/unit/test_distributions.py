"""Tests of package names and install commands by distribution."""

from __future__ import annotations

import pytest

from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.system import distributions
from fslab.system.distributions import Distribution
from fslab.system.tools import Tool


def family(*ids: str) -> Distribution:
    found = distributions.of(*ids)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (("debian",), "debian"),
        (("linuxmint", "ubuntu", "debian"), "debian"),
        (("fedora",), "fedora"),
        (("rocky", "rhel", "centos", "fedora"), "fedora"),
        (("endeavouros", "arch"), "arch"),
    ],
)
def test_a_derivative_belongs_to_the_family_it_is_like(ids: tuple[str, ...], name: str) -> None:
    assert family(*ids).name == name


def test_an_unknown_distribution_is_not_a_family() -> None:
    assert distributions.of("slackware") is None


def test_names_differ_by_family() -> None:
    wanted = ["nilfs-tools", "xfsprogs", "user-mode-linux", "xfsprogs"]
    assert family("debian").packages(wanted) == ["nilfs-tools", "user-mode-linux", "xfsprogs"]
    assert family("fedora").packages(wanted) == ["nilfs-utils", "xfsprogs"]
    assert family("arch").command(wanted) == "pacman -S --needed nilfs-utils xfsprogs"
    assert family("fedora").command(["user-mode-linux"]) is None


@pytest.mark.parametrize("ids", ["debian", "fedora", "arch", "slackware"])
def test_a_tool_says_how_to_get_it_here(ids: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = distributions.of(ids)
    monkeypatch.setattr(distributions, "here", lambda: here)
    remedies = {
        "debian": "apt-get install --no-install-recommends nilfs-tools",
        "fedora": "dnf install --setopt=install_weak_deps=False nilfs-utils",
        "arch": "pacman -S --needed nilfs-utils",
        "slackware": "install the package that contains mkfs.nilfs2 (in Debian: nilfs-tools)",
    }
    (nilfs,) = FILESYSTEMS.get("nilfs2").tools
    assert nilfs.remedy == remedies[ids]
    (bcachefs,) = FILESYSTEMS.get("bcachefs").tools
    assert bcachefs.installable is (ids in {"fedora", "arch"})
    assert Tool(program="fslab-engine", package=None).remedy == "reinstall fslab"


def test_what_is_in_another_component_is_not_installed_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    debian = distributions.of("debian")
    monkeypatch.setattr(distributions, "here", lambda: debian)
    tool = Tool(program="iozone", package="iozone3", component="non-free")
    assert not tool.installable
    assert tool.remedy.endswith("iozone3 (from the component 'non-free', which must be enabled first)")
