"""Tests of the keys of a stack beside its options: matrix, messages, consent, commands, and the order of settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.test_resources import NoJournal

from fslab import feasibility
from fslab.analysis import labels
from fslab.campaign.consent import Consent, Kind, executed
from fslab.cell import Cell
from fslab.claims.scope import attributes
from fslab.errors import StudyError, UsageError
from fslab.machine import _settings
from fslab.plan.commands import Paths, commands_of
from fslab.plan.expand import expand
from fslab.report.page.sweeps import stack_families
from fslab.storage import Workspace, initial_content
from fslab.study.load import load_text

HEAD = """\
title: t
media: {m: {type: ram, size: 1g}}
tuning: {vm.swappiness: 1, io_scheduler: none}
workloads: {w: {tool: fio, rw: write, bs: 1m, size: 128m}}
stacks:
  s: {medium: m, filesystem: btrfs, """


def cells(keys: str) -> tuple[Cell, ...]:
    return expand(load_text(HEAD + keys + "}\n", "s.yaml"))


def test_each_is_an_axis_and_names_what_varies() -> None:
    found = cells(
        "tuning: {io_scheduler: [bfq, none], nr_requests: 64}, fill: [0%, 80%], attributes: ['', C]"
    )
    assert len({cell.id for cell in found}) == 8
    first, last = found[0], found[-1]
    assert first.stack.name == "s attributes=none,fill=0%,io_scheduler=bfq"
    assert last.tuned == {"vm.swappiness": "1", "io_scheduler": "none", "nr_requests": "64"}
    assert (last.stack.attributes, last.stack.filled) == ("C", 0.8)
    assert attributes(last)["io_scheduler"] == "none"
    assert len(set(labels.stack_lines([cell.stack for cell in found]))) == 8
    assert "chattr" in {tool.program for tool in feasibility.programs_of(last)}
    by_number = stack_families(
        {cell.stack_id: cell.stack for cell in cells("tuning: {nr_requests: [32, 64, 128]}")}
    )
    assert list(by_number) == [("nr_requests",)]


def test_stacks_without_them_are_what_they_were() -> None:
    (cell,) = cells("mount_options: noatime")
    assert not {"attributes", "fill", "after_mount", "tuning"} & set(
        cell.stack.model_dump(exclude_defaults=True)
    )


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("attributes: i", "stacks.s.attributes: 'i' is not a list of attributes of chattr(1)"),
        ("fill: 95%", "stacks.s.fill: '95%' is not a share from 0% to 90%"),
        ("fill: 0.8", "stacks.s.fill: 0.8 is not text"),
        (
            "fill: 90%",
            "'w' needs 128 MiB, and medium 'm' of stack 's' has 102 MiB: use a larger one, or less data",
        ),
        ("after_mount: 'echo \"'", "stacks.s.after_mount"),
        ("after_mount: ' '", "stacks.s.after_mount"),
        ("after_mount: \"''\"", "stacks.s.after_mount"),
        ('after_mount: "true\\nthe plan ends here"', "stacks.s.after_mount"),
        ("tuning: {io_scheduler: [none, ../x]}", "stacks.s.tuning.io_scheduler.2: '../x' is not a name"),
        ("tuning: {vm.drop_caches: 1}", "stacks.s.tuning.vm.drop_caches: cannot be set by a study"),
        ("tuning: {stripe_cache_size: 9}", "'9' is not a whole number from 17 to 32768"),
        ("fill: [80%, 80%]", "'80%' is listed twice"),
    ],
)
def test_mistakes(keys: str, says: str) -> None:
    with pytest.raises(StudyError) as caught:
        cells(keys)
    assert says in caught.value.what


def test_a_list_for_the_whole_study_is_sent_to_the_stack() -> None:
    with pytest.raises(StudyError, match="write the list in the 'tuning' of a stack"):
        load_text(HEAD.replace("io_scheduler: none", "io_scheduler: [none, bfq]") + "}\n", "s.yaml")


def test_a_command_after_mount_needs_consent_and_is_shown_by_the_plan() -> None:
    (cell,) = cells("after_mount: 'btrfs property set {directory} compression zstd', attributes: C")
    (asked,) = executed([cell])
    assert (asked.kind, asked.what) == (Kind.COMMAND, "btrfs property set DIRECTORY compression zstd")
    with pytest.raises(UsageError, match="btrfs property set"):
        Consent().require([cell])
    lines = [
        " ".join(each.argv)
        for each in commands_of(cell, Paths(images=Path("/i"), runtime=Path("/r")), seed=1)
    ]
    mount = next(number for number, line in enumerate(lines) if line.startswith("mount -t btrfs"))
    assert lines[mount + 1 : mount + 3] == [
        "btrfs property set /r/mnt/work compression zstd",
        "chattr +C /r/mnt/work",
    ]


def test_sizes_of_files_that_fill_are_the_same_each_time_and_few_on_large_devices() -> None:
    for needed in (1e8, 1e13):
        sizes = list(initial_content._sizes(needed))
        assert sizes == list(initial_content._sizes(needed))
        assert needed <= sum(sizes) <= needed + 1
        assert len(sizes) <= initial_content.MOST_FILES


def test_settings_of_queues_and_of_arrays_are_found_where_they_are(tmp_path: Path) -> None:
    array, disk = tmp_path / "md127", tmp_path / "sda"
    for block in (array, disk):
        (block / "queue").mkdir(parents=True)
        (block / "queue/nr_requests").write_text("128\n")
    (disk / "mq").mkdir()
    (array / "md").mkdir()
    (array / "md/stripe_cache_size").write_text("256\n")
    queues = [array / "queue", disk / "queue"]
    paths = {
        name: [each.path for each in _settings.device_writes(name, "64", queues)]
        for name in ("nr_requests", "stripe_cache_size")
    }
    assert paths == {
        "nr_requests": [disk / "queue/nr_requests"],  # an array only passes requests on
        "stripe_cache_size": [array / "md/stripe_cache_size"],
    }
    assert _settings.is_setting(Path("/sys/devices/virtual/block/md0/md/stripe_cache_size"))
    assert not _settings.is_setting(Path("/sys/devices/virtual/block/md0/md/array_state"))
    order = list(_settings.OF_DEVICES)
    assert order.index("io_scheduler") < order.index("nr_requests"), "a new scheduler resets the number"


@pytest.mark.parametrize("update", [{"fill": "full"}, {"attributes": "i"}, {"after_mount": "echo '"}])
def test_a_stored_stack_is_checked_again(update: dict[str, str], tmp_path: Path) -> None:
    (cell,) = cells("mount_options: noatime")
    spec = cell.stack.model_copy(update=update)
    with pytest.raises(UsageError, match=next(iter(update.values()))):
        feasibility.check_stack(
            spec, Workspace(campaign="c", runtime=tmp_path, images=tmp_path, journal=NoJournal())
        )
