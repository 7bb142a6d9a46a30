"""Tests of the settings in which compared stacks differ: possible causes that are no mechanism."""

from __future__ import annotations

import json
from pathlib import Path

from tests import made
from typer.testing import CliRunner

from fslab.cell import Cell, MachineSpec
from fslab.cli import app
from fslab.explain import settings
from fslab.report.page import assemble


def two() -> tuple[Cell, Cell]:
    plain = made.spec("ext4", "hdd", {"size": "1g"}, name="plain")
    slow = made.spec("ext4", "hdd", {"size": "1g", "slow": "2x"}, name="slow")
    other = slow.model_copy(update={"machine": MachineSpec(memory="1g"), "tuning": {"io_scheduler": "none"}})
    return made.cell(plain), made.cell(other)


TOLD = (
    "The stacks also differ in settings, each of which can be a cause: medium.slow (not set, 2x), "
    "machine.memory (not set, 1g), io_scheduler (not set, none)."
)


def test_settings_that_differ_are_told_with_their_values() -> None:
    assert settings.differing(two()) == {
        "medium.slow": ("not set", "2x"),
        "machine.memory": ("not set", "1g"),
        "io_scheduler": ("not set", "none"),
    }


def test_the_number_of_disks_is_known_by_default() -> None:
    one, mirror = (made.spec(layout=layout) for layout in ("single", "md-raid1"))
    parity = mirror.model_copy(update={"layout": "md-raid5", "layout_options": {"disks": 4}})
    told = settings.differing([made.cell(each) for each in (one, mirror, parity)])
    assert told == {"layout": ("single", "md-raid1", "md-raid5"), "layout.disks": ("1", "2", "4")}


def test_file_systems_and_their_options_have_mechanisms() -> None:
    cells = made.cell("ext4"), made.cell(made.spec("xfs", mount_options="noatime", mkfs_options="-K"))
    assert settings.in_words(cells) is None


def test_settings_of_the_study_and_of_different_workloads_are_no_difference() -> None:
    one, other = two()
    assert settings.in_words([one, made.cell(other.stack, name="other")]) is None
    tuned = one.model_copy(update={"tuning": {"io_scheduler": "none"}})
    of_stack = tuned.model_copy(
        update={"stack": one.stack.model_copy(update={"name": "s", "tuning": {"io_scheduler": "none"}})}
    )
    assert settings.in_words([tuned, of_stack]) is None


def test_explain_and_a_page_tell_them(tmp_path: Path) -> None:
    campaign = made.campaign("c1", cells=two())
    trials = [made.trial(0, of) for of in two()]
    path = made.stored(tmp_path / "store.sqlite", [(campaign, trials)])

    def said(*more: str) -> str:
        ran = CliRunner().invoke(app, ["explain", "c1", "--store", path, *more], catch_exceptions=False)
        return ran.stdout

    for more in ((), ("--all",)):
        assert " ".join(said(*more).split()).endswith(TOLD)
    assert json.loads(said("--json"))["differing_settings"]["medium.slow"] == ["not set", "2x"]
    source = assemble.CampaignSource(campaign=campaign, trials=trials)
    assert assemble.part(source).differing_settings == TOLD
