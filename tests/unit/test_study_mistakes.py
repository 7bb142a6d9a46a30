"""Tests of mistakes in studies: each is reported with its line, and with a suggestion where possible."""

from __future__ import annotations

import io
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fslab.errors import StudyError, UsageError, nearest
from fslab.machine import tunables
from fslab.storage import layouts
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.study import read
from fslab.study.inputs import MOST_BYTES
from fslab.study.load import load, load_text
from fslab.study.source import Node

ELSEWHERE = layouts.REGISTRY.otherwise

GOOD = """\
title: t
media:
  fast: {type: ram, size: 1g}
stacks:
  fs:
    medium: fast
    filesystem: [ext4, xfs]
workloads:
  rw:
    tool: fio
    rw: randwrite
    bs: [4k, 64k]
    size: 64m
"""

WORKLOAD = GOOD.partition("  rw:")[2]

KNOWN = ", ".join(FILESYSTEMS.names())


EVERY_KEY = """\
title: t
media: {fast: {type: ram, size: [1g, 2g]}, disk: {type: device, path: /dev/disk/by-id/x}}
stacks:
  fs: {medium: fast, filesystem: [ext4, xfs], mount_options: [defaults, noatime], mkfs_options: "", workloads: [rw]}
  d: {medium: {type: directory, path: .}, layout: single, workloads: [rr, dd]}
workloads:
  rw: {tool: fio, rw: randwrite, bs: [4k, 64k], size: 64m, runtime: 1s, iodepth: 2, direct: true}
  rr: {extends: rw, rw: randread, cache: warm, fresh: cell, time_limit: 9s}
  dd: {tool: dd, op: write, bs: 1M, count: 4}
  sb: {tool: sysbench, file-test-mode: rndrd, time: 1}
  sf: {tool: engine, operation: small-files, files: 10, size: 4k}
trials: 3
seed: 2
budget: 1m
tuning: {vm.swappiness: 1}
"""


def mistakes(text: str, *overrides: str) -> list[str]:
    """Return the messages about mistakes, without the file's name before the line number."""
    with pytest.raises(StudyError) as caught:
        load_text(text, "s.yaml", overrides)
    heading, *lines = caught.value.what.splitlines()
    assert heading.split()[0] == str(len(lines))
    return [line.strip().removeprefix("s.yaml:") for line in lines]


def changed(*replacements: tuple[str, str]) -> str:
    """Return the text of the valid study with replacements. Each text to replace must exist."""
    text = GOOD
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


def test_the_study_that_the_mistakes_are_made_in_is_good() -> None:
    assert load_text(GOOD, "s.yaml").trials == 5
    assert load_text(EVERY_KEY, "s.yaml").trials == 3


def test_five_different_mistakes_give_five_messages_with_their_lines() -> None:
    text = dedent(
        """\
        title: five mistakes
        media:
          fast: {type: ram, size: 1q}
        stacks:
          fs:
            medium: fats
            filesystem:
              - ext4
              - xsf
            mount_options: [defaults, noatme]
        workloads:
          rw: {tool: fio, rw: randwrite, size: 64m}
        trails: 5
        """
    )
    size, medium, filesystem, mount, key = mistakes(text)
    assert size.startswith("3: media.fast.size: '1q' is not a size")
    assert medium == "6: stacks.fs.medium: no medium 'fats' — did you mean 'fast'?"
    assert filesystem == "9: stacks.fs.filesystem.2: no file system 'xsf' — did you mean 'xfs'?"
    assert (
        mount == "10: stacks.fs.mount_options.2: ext4 has no mount option 'noatme' — did you mean 'noatime'?"
    )
    assert key == "13: trails: unknown key — did you mean 'trials'?"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("title: t", "title: t\ntitle: u"), "2: title: duplicate name (first at s.yaml:1)"),
        (("title: t", "titel: t"), "1: titel: unknown key — did you mean 'title'?"),
        (("title: t\n", ""), "1: 'title' is missing (the question of the study, in a few words)"),
        (("title: t", "title:"), "1: title: has no value"),
        (("title: t", "title: 5"), "1: title: 5 is not text"),
        (("title: t", "title: t\ntrials: many"), "2: trials: 'many' is not a whole number"),
        (("title: t", "title: t\ntrials: 0"), "2: trials: must be at least 1, not 0"),
        (("title: t", "title: t\ncache: code"), "2: cache: 'code' is not one of cold, warm — did you mean 'cold'?"),
        (("type: ram", "sector_size: 1024, type: ram"), "3: media.fast.sector_size: 1024 is not one of 512, 4096"),
        (("type: ram", "sector_size: '4096', type: ram"),
         "3: media.fast.sector_size: '4096' is not one of 512, 4096 — write it without quotes"),
        (("title: t", "title: t\npublished: {memory: lots}"),
         "2: published.memory: 'lots' is not a size: write a number with k, m, g or t (powers of 1024), such as 4k"),
        (("title: t", "title: t\ntrials: true"), "2: trials: true is not a number"),
        (("title: t", "title: t\nscale: nan"), "2: scale: should be a finite number, got 'nan'"),
        (("type: ram", "scaled_by: true, type: ram"), "3: media.fast.scaled_by: true is not a number"),
        (("size: 64m", "size: 64m\n    iodepth: [1, true]"), "14: workloads.rw.iodepth.2: true is not a number"),
        ((WORKLOAD, " {tool: sysbench, file-test-mode: rndrw, time: 1, file-rw-ratio: inf}\n"),
         "9: workloads.rw.file-rw-ratio: should be a finite number, got 'inf'"),
        ((WORKLOAD, " {tool: mixed, parts: {a: {tool: fio, rw: read, size: 1m, numjobs: true}, b: {tool: x}}}\n"),
         "9: workloads.rw.parts.a.numjobs: part 'a': true is not a number"),
        (("title: t", "title: t\nbudget: 0s"), "2: budget: '0s' must be greater than zero"),
        (("title: t", "title: t\ntuning: {kernel.panic: 1}"),
         f"2: tuning.kernel.panic: cannot be set by a study: {nearest('kernel.panic', tunables.NAMES)}"),
        (("title: t", "title: t\ntuning: {vm.drop_cache: 1}"),
         f"2: tuning.vm.drop_cache: cannot be set by a study: {nearest('vm.drop_cache', tunables.NAMES)}"),
        (("title: t", "title: t\ntuning: {vm.min_free_kbytes: 99999999}"),
         "2: tuning.vm.min_free_kbytes: '99999999' is not a whole number from 1024 to 1048576"),
        (("title: t", "title: t\ntuning: {vm.dirty_bytes: 1048576, vm.dirty_ratio: 10}"),
         "2: tuning: vm.dirty_bytes and vm.dirty_ratio replace each other: set only one"),
        (("title: t", "title: t\ntuning: {vm.dirty_background_ratio: 40, vm.dirty_ratio: 10}"),
         ("2: tuning: vm.dirty_background_ratio is 40, and vm.dirty_ratio 10: the kernel would use half of the latter; "
          "write less than 10")),
        (("title: t", "title: t\ntuning: {stop_timers: sshd.service}"),
         "2: tuning.stop_timers: 'sshd.service' is not the name of a timer, such as apt-daily.timer"),
        (("title: t", "title: t\ntuning: {io_scheduler: ../x}"),
         "2: tuning.io_scheduler: '../x' is not a name such as none or performance: use a-z, 0-9, '_' and '-'"),
        (("type: ram", "type: rma"), "3: media.fast.type: no medium 'rma' — did you mean 'ram'?"),
        (("type: ram, ", ""), "3: media.fast: 'type' is missing (kind of medium)"),
        (("size: 1g", "siez: 1g"), "3: media.fast.siez: unknown key — did you mean 'size'?"),
        (("size: 1g", "size: 100m"),
         "7: stacks.fs.filesystem: xfs needs at least 300 MiB, and medium 'fast' of stack 'fs' has 100 MiB"),
        (("size: 1g", "size: {a: 1}"), "3: media.fast.size: is a mapping, but takes a value or a list of values"),
        (("size: 1g", "size: [1g, 1g]"), "3: media.fast.size.2: '1g' means the same as '1g'"),
        (("bs: [4k, 64k]", "bs: [4k, 64k, 4096]"), "12: workloads.rw.bs.3: '4096' means the same as '4k'"),
        (("  fs:\n", "  fös:\n"),
         "5: stacks.fös: 'fös' is not a name: use A-Z, a-z, 0-9, '_', '+' and '-', and begin with a letter or digit"),
        (("medium: fast", "medium: [{type: ram, size: 1g}, {type: ram, size: 1g}]"),
         "6: stacks.fs.medium.2: the same medium is listed twice"),
        (("medium: fast", "medium: [{type: ram, size: [1g, 2g]}, {type: ram, size: 2g}]"),
         "6: stacks.fs.medium.2: the same medium is listed twice"),
        (("medium: fast", "medium: ram"),
         "6: stacks.fs.medium: no medium 'ram': write {type: ram}, or a name under 'media'"),
        (("media:\n  fast: {type: ram, size: 1g}\n", ""), "4: stacks.fs.medium: no medium 'fast' — there are none"),
        (("medium: fast", "medium: 5"), "6: stacks.fs.medium: is neither the name of a medium nor a mapping"),
        (("medium: fast", "medium: fast\n    layout: singel"),
         "7: stacks.fs.layout: no layout 'singel' — did you mean 'single'?"),
        (("medium: fast", "medium: fast\n    layout: lvm-cache"),
         f"7: stacks.fs.layout: no layout 'lvm-cache' — similar: lvm-snapshot, lvm-stripe, lvm-thin; {ELSEWHERE}"),
        (("filesystem: [ext4, xfs]", "filesystem: []"), "7: stacks.fs.filesystem: the list is empty"),
        (("[ext4, xfs]", "[ext4, xfs, ext4]"), "7: stacks.fs.filesystem.3: 'ext4' is listed twice"),
        (("    filesystem: [ext4, xfs]\n", ""),
         "5: stacks.fs: 'filesystem' is missing: a 'ram' medium is formatted — known: " + KNOWN),
        (("[ext4, xfs]", "[xfs]\n    mkfs_options: -Z 1"),
         ("8: stacks.fs.mkfs_options: fslab does not know or allow the mkfs option '-Z' of xfs"
          ": known: -L, -b, -d, -i, -l, -m, -n, -s")),
        (("[ext4, xfs]", "[ext4]\n    workloads: [wr]"), "8: stacks.fs.workloads.1: no workload 'wr' — known: rw"),
        (("{type: ram, size: 1g}", "{type: directory, path: /tmp}"),
         "7: stacks.fs.filesystem: has no effect: a 'directory' medium is never formatted or mounted; leave it out"),
        (("tool: fio", "tool: fia"), "10: workloads.rw.tool: no workload 'fia' — did you mean 'fio'?"),
        (("    tool: fio\n", ""), "9: workloads.rw: 'tool' is missing (tool that generates the load)"),
        (("bs: [4k, 64k]", "bs: [4k, [64k]]"), "12: workloads.rw.bs.2: is not a single value"),
        (("size: 64m", "size: 3g"),
         ("9: workloads.rw: 'rw[bs=4k]' needs 3 GiB, and medium 'fast' of stack 'fs' has 1 GiB: use a larger one, or "
          "less data")),
        (("size: 1g", "size: 16g, room: 32m"),
         ("9: workloads.rw: 'rw[bs=4k]' needs 64 MiB, mkfs of ext4 writes 390 MiB with zeros, and medium 'fast' of "
          "stack 'fs' has 32 MiB: give it more 'room'")),
        (("size: 1g", "size: 16g, room: 450m"),
         ("9: workloads.rw: 'rw[bs=4k]' needs 64 MiB, mkfs of ext4 writes 390 MiB with zeros, and medium 'fast' of "
         "stack 'fs' has 450 MiB: give it more 'room'")),
        (("size: 1g", "size: 1g, room: 128m"),
         ("9: workloads.rw: 'rw[bs=4k]' needs 64 MiB, mkfs of xfs writes 66.0 MiB with zeros, and medium 'fast' of "
         "stack 'fs' has 128 MiB: give it more 'room'")),
        (("tool: fio", "extends: rw\n    tool: fio"), "10: workloads.rw.extends: extends itself: rw → rw"),
        (("tool: fio", "extends: wr\n    tool: fio"), "10: workloads.rw.extends: no workload 'wr' — there are none"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_message(change: tuple[str, str], expected: str) -> None:
    assert expected in mistakes(changed(change))


def test_a_mistake_in_a_medium_of_a_stack_is_told_once() -> None:
    found = mistakes(changed(("medium: fast", "medium: {type: ram, sector_size: 1}")))
    assert [text for text in found if ".medium" in text] == [
        "6: stacks.fs.medium.sector_size: 1 is not one of 512, 4096"
    ]


OWN_MIB = {"btrfs": 76, "ext4": 1, "f2fs": 48, "jfs": 1, "nilfs2": 80, "reiserfs": 32, "xfs": 16}


@pytest.mark.parametrize("filesystem", OWN_MIB)
def test_what_a_file_system_takes_itself_is_no_room_for_files(filesystem: str) -> None:
    own, files = OWN_MIB[filesystem], 512
    named = ("[ext4, xfs]", filesystem), ("size: 64m", f"size: {files}m")
    assert load_text(changed(*named, ("1g", f"{own + files}m")), "s.yaml")
    (told, *_) = mistakes(changed(*named, ("1g", f"{own + files - 1}m")))
    taken = f"'rw[bs=4k]' needs 512 MiB, {filesystem} takes at least {own}"
    assert told.startswith(f"9: workloads.rw: {taken}")
    assert " MiB itself, and medium 'fast' of stack 'fs' has " in told


def test_a_small_jfs_has_a_small_log() -> None:
    assert load_text(changed(("[ext4, xfs]", "jfs"), ("size: 1g", "size: 256m, room: 80m")), "s.yaml")


@pytest.mark.parametrize(
    ("filesystem", "size", "fill", "expected"),
    [
        ("btrfs", "300m", "70%", None),
        (
            "btrfs",
            "300m",
            "80%",
            "btrfs cannot be filled to 80%, only to about 75%, and medium 'fast' of stack 'fs' has",
        ),
        ("btrfs, mkfs_options: -m single", "300m", "80%", None),
        (
            "btrfs",
            "512m",
            "90%",
            "btrfs cannot be filled to 90%, only to about 85%, and medium 'fast' of stack 'fs' has",
        ),
        ("btrfs", "1g", "90%", None),
        ("xfs", "300m", "1%", "an empty xfs is filled to 7%, not to 1%, and medium 'fast' of stack 'fs' has"),
        ("xfs", "300m", "90%", None),
        ("ext4", "300m", "[1%, 90%]", None),
    ],
)
def test_a_file_system_that_cannot_be_filled_is_foreseen(
    filesystem: str, size: str, fill: str, expected: str | None
) -> None:
    """As seen: btrfs of 300 MiB reached 74 %, of 512 MiB 83 %; an empty XFS of 300 MiB was in use to 7 %."""
    text = f"""\
title: t
media: {{fast: {{type: ram, size: {size}}}}}
stacks:
  fs: {{medium: fast, fill: {fill}, filesystem: {filesystem}}}
workloads: {{rw: {{tool: fio, rw: write, size: 8m}}}}
"""
    if expected is None:
        load_text(text, "s.yaml")
        return
    assert mistakes(text) == [f"4: stacks.fs.fill: {expected} {size.removesuffix('m')} MiB"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("[ext4, xfs]", "[ext4, xfs]\n    tuning: {io_schedule: [none, bfq]}"),
         ["8: stacks.fs.tuning.io_schedule: cannot be set by a study — did you mean 'io_scheduler'?"]),
        (("[ext4, xfs]", "[ext4, xfs]\n    tuning: {nr_requests: [1, 8, 2]}"),
         ["8: stacks.fs.tuning.nr_requests.1: '1' is not a whole number from 4 to 16384",
          "8: stacks.fs.tuning.nr_requests.3: '2' is not a whole number from 4 to 16384"]),
        (("[ext4, xfs]", "[xfs]\n    mkfs_options: [-Z 1, -Z 2]"),
         [("8: stacks.fs.mkfs_options: fslab does not know or allow the mkfs option '-Z' of xfs"
           ": known: -L, -b, -d, -i, -l, -m, -n, -s")]),
        (("size: 64m", "size: 64m\n    iodpth: [1, 2]"),
         ["14: workloads.rw.iodpth: fio has no such option — did you mean 'iodepth'?"]),
        (("size: 1g", "size: [1g, 2g], siez: [1, 2]"), ["3: media.fast.siez: unknown key — did you mean 'size'?"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_all_values_of_a_list_is_one_mistake(
    change: tuple[str, str], expected: list[str]
) -> None:
    assert mistakes(changed(change)) == expected


def test_all_wrong_options_of_a_string_are_reported_at_once() -> None:
    options = "filesystem: xfs\n    mount_options: nobarrier,nofail\n    mkfs_options: -Z 1 -Y"
    found = mistakes(changed(("filesystem: [ext4, xfs]", options)))
    assert [text.split("'")[1] for text in found] == ["nobarrier", "nofail", "-Z", "-Y"]


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "1e999"])
def test_what_is_not_a_finite_number_is_said_once(value: str) -> None:
    """The store has no such numbers. A campaign with one could not be read."""
    what = f"'{value}' is not a finite number"
    assert mistakes(changed(("size: 64m", f"size: 64m\n    x: {value}"))) == [f"14: workloads.rw.x: {what}"]
    assert mistakes(changed(("bs: [4k, 64k]", f"bs: [4k, {value}]"))) == [f"12: workloads.rw.bs.2: {what}"]
    assert mistakes(GOOD, f"trials={value}") == [f"--set trials={value}: trials: {what}"]


def test_a_misspelt_key_is_read_as_the_one_that_was_meant() -> None:
    found = mistakes(changed(("filesystem: [ext4, xfs]", "filesytem: [ext4, xsf]")))
    assert found == [
        "7: stacks.fs.filesytem: unknown key — did you mean 'filesystem'?",
        "7: stacks.fs.filesytem.2: no file system 'xsf' — did you mean 'xfs'?",
    ]


def test_the_line_of_a_list_item_is_its_own() -> None:
    text = changed(("bs: [4k, 64k]", "bs:\n      - 4k\n      # note\n      - 64z"))
    assert [message.split(":")[0] for message in mistakes(text)] == ["15"]


def test_what_an_extended_workload_has_wrong_is_said_once() -> None:
    text = changed(("bs: [4k, 64k]", "bs: 4q")) + "  rr: {extends: rw, rw: randread}\n"
    assert [message.split(":")[0:2] for message in mistakes(text)] == [["12", " workloads.rw.bs"]]


def test_what_goes_wrong_only_in_the_extending_workload_is_shown_there() -> None:
    text = GOOD + "  copy: {extends: rw, tool: dd, op: write, count: 1}\n"
    assert all(
        message.startswith("14: workloads.copy.extends: with workloads.rw.") for message in mistakes(text)
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", "1: the file is empty"),
        ("- 1\n", "1: is not a study (a mapping of keys to values)"),
        ("title: t\nstacks: [a\n", "3: not valid YAML: while parsing a flow sequence, expected ',' or ']'"),
        ("title: t\nx: *nowhere\n", "2: not valid YAML: found undefined alias"),
        ("title: t\n\tx: 1\n", "2: not valid YAML"),
        ("title: t\nx: \x01\n", "2: not valid YAML"),
        ("title: a\n---\ntitle: b\n", "2: not valid YAML: expected a single document in the stream"),
        ("title: !lambda x\n", "1: title: not a value fslab reads"),
        ("media: &m {m: *m}\n", "1: media.m: the anchor contains itself"),
        ("[" * 5000, "1: nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_one_message_with_its_line(text: str, start: str) -> None:
    assert any(message.startswith(start) for message in mistakes(text))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("title: t\nmedia:\n\tx: 1\n", "indent with spaces, not with tabs"),
        (
            "title: what: now\n",
            "put a text that contains ': ' in quotes, or indent the line as the one before",
        ),
        ("title: @x\n", "put a text that begins with this character in quotes"),
        ("title: 'x\n", "a quote is not closed"),
        ("media: {m: {size: 1g}\nstacks: {}\n", "close each '{', and separate what is in it by ','"),
        ("[global]\nrw=read\n", "write 'key: value' in each line"),
    ],
)
def test_words_of_yaml_come_with_advice(text: str, advice: str) -> None:
    (message,) = mistakes(text)
    assert message.endswith(f" — {advice}")


@pytest.mark.parametrize(("size", "key"), [("1,5g", "5g"), ("1g, 2g", "2g")])
def test_a_comma_that_begins_a_key_is_explained(size: str, key: str) -> None:
    told = "unknown key without a value: ',' begins a new key; write 1.5, or a list as [a, b]"
    assert mistakes(changed(("size: 1g", f"size: {size}"))) == [f"3: media.fast.{key}: {told}"]


def test_anchors_cannot_stand_for_millions_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("stands for more than" in message for message in mistakes("\n".join(lines)))


def test_lists_cannot_make_millions_of_cells() -> None:
    axes = "".join(
        f"    {key}: [{', '.join(map(str, range(1, 40)))}]\n" for key in ("iodepth", "numjobs", "rwmixread")
    )
    assert any("at most 10000 are allowed" in message for message in mistakes(GOOD + axes))


@pytest.mark.parametrize("fresh", ["cell", "campaign"])
def test_a_device_is_not_shared_by_file_systems_that_are_to_last(fresh: str) -> None:
    text = changed(("{type: ram, size: 1g}", "{type: device, path: /dev/disk/by-id/x}")) + f"fresh: {fresh}\n"
    (message,) = mistakes(text)
    assert message.startswith("6: stacks.fs.medium: '/dev/disk/by-id/x' would be formatted by other cells")


def test_a_device_may_keep_the_only_file_system_that_is_made_on_it() -> None:
    text = changed(
        ("{type: ram, size: 1g}", "{type: device, path: /dev/disk/by-id/x}"), ("[ext4, xfs]", "ext4")
    )
    assert load_text(text + "fresh: campaign\n", "s.yaml").fresh == "campaign"
    assert mistakes(text + "fresh: cell\n")
    assert load_text(text, "s.yaml").fresh == "trial"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("trials", "--set trials: write KEY=VALUE, such as trials=3 or media.fast.size=2g"),
        ("=3", "--set =3: write KEY=VALUE, such as trials=3 or media.fast.size=2g"),
        ("trials=x", "--set trials=x: trials: 'x' is not a whole number"),
        ("trials=[1", ("--set trials=[1: trials: not valid YAML: while parsing a flow sequence, "
         "expected ',' or ']', but got '<stream end>' — close each '[', and separate what is in it by ','")),
        ("trials=", "--set trials=: trials: has no value"),
        ("media.fats.size=2g", "--set media.fats.size=2g: there is no 'fats' in media — did you mean 'fast'?"),
        ("trials.x=2", "--set trials.x=2: 'trials' has no keys of its own that could be set"),
        ("stacks.fs.filesystem=[xfs, xfz]",
         "--set stacks.fs.filesystem=[xfs, xfz]: stacks.fs.filesystem.2: no file system 'xfz' — did you mean 'xfs'?"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_override_is_shown_with_it(override: str, expected: str) -> None:
    text = GOOD + "trials: 4\n" if override == "trials.x=2" else GOOD
    assert mistakes(text, override) == [expected]


def test_mistakes_of_the_file_come_before_those_of_overrides() -> None:
    found = mistakes(changed(("title: t", "title: 5")), "trials=x", "seed=-1")
    assert [message.split(":")[0] for message in found] == ["1", "--set trials=x", "--set seed=-1"]


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ("quikc", r"no study 'quikc'\n.*did you mean 'quick'"),
        ("/nowhere/study.yaml", "No such file"),
        ("/dev/zero", "is not a regular file"),
    ],
)
def test_what_is_no_study_says_why(study: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load(study)


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text("a4k-[{é\n ", max_size=4), st.dates(),
        st.sampled_from(["", "fast", "rw", "ext4", "1g", "4k", "directory", "fio", "dd", "trial", "noatime"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "rw", "x", "size"]), inner),
    max_leaves=5,
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


@cache
def _every_key() -> Any:
    return YAML(typ="safe", pure=True).load(EVERY_KEY)


@given(st.data())
@settings(max_examples=50)
def test_no_study_however_wrong_ends_in_anything_but_mistakes(data: st.DataObject) -> None:
    tree = {"root": deepcopy(_every_key())}
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(_places(tree)[1:]))
        parent: Any = tree
        for step in way:
            parent = parent[step]
        parent[last] = data.draw(JUNK)
        if isinstance(parent, dict) and last != "root" and data.draw(st.booleans()):
            parent[data.draw(st.sampled_from(["extends", "tool", "filesytem", "x"]))] = parent.pop(last)
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(tree["root"], out)
    try:
        load_text(out.getvalue(), "s.yaml")
    except StudyError as error:
        lines = error.what.splitlines()
        assert len(lines) == 1 + int(lines[0].split()[0])
        assert all(re.match(r"  s\.yaml:\d+: ", line) for line in lines[1:])


def test_a_workload_that_would_be_ended_in_every_trial_is_a_mistake() -> None:
    text = (
        "title: t\nmedia: {m: {type: ram, size: 1g}}\nstacks: {s: {medium: m, filesystem: ext4}}\ntime_limit: 20\n"
        "workloads:\n  long: {tool: fio, rw: randread, size: 64m, runtime: 30m}\n"
        "  short: {tool: fio, rw: randread, size: 64m, runtime: 5s}\n"
        "  own: {tool: fio, rw: randread, size: 64m, runtime: 30s, time_limit: 1m}\n"
    )
    with pytest.raises(StudyError) as caught:
        load_text(text, "t.yaml")
    (line,) = str(caught.value).splitlines()[1:]
    assert "t.yaml:6: workloads.long" in line
    assert "ended after 20 s" in line


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "{a: " * 20_000,
        *("title: " + "[" * depth + "]" * depth for depth in (50, 100, 300, 1000)),
        "- " * 5000,
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 25)),
        "&a [*a]",
        "title: " + "9" * 5000,
    ],
    ids=lambda text: f"{text[:10]}-{len(text)}",
)
def test_a_hostile_study_is_a_mistake(text: str) -> None:
    with pytest.raises(StudyError):
        load_text(text, "study")


def test_a_study_of_mistakes_only_is_answered_soon() -> None:
    keys = "".join(f"key{number}: 1\n" for number in range(2000))
    with pytest.raises(StudyError) as caught:
        load_text(GOOD + keys, "s.yaml")
    _, *found = str(caught.value).splitlines()
    assert len(found) == 501, "the first 500, and that there are more"
    assert found[-1] == "  … and more"


@pytest.mark.parametrize("text", [r"a\e[31mb", r"a\u009bb", r"a\rb", r"a\u202eb", r"a\x7fb"])
def test_what_a_terminal_obeys_is_in_no_study(text: str) -> None:
    assert "contains the control character U+" in mistakes(GOOD.replace("title: t", f'title: "{text}"'))[0]
    assert "contains the control character U+" in mistakes(f'{GOOD}"{text}": 1')[0]


@pytest.mark.parametrize(
    ("path", "why"), [("x" * 256, "too long"), ("/x" * 2048, "too long"), ("", "is empty")]
)
@pytest.mark.parametrize("kind", ["directory", "loop", "device"])
def test_a_path_that_linux_does_not_take(kind: str, path: str, why: str) -> None:
    (found, *_) = mistakes(GOOD.replace("{type: ram, size: 1g}", f'{{type: {kind}, path: "{path}"}}'))
    assert why in found


@pytest.mark.parametrize("key", ["trials: ", "workloads: {w: {tool: fio, rw: write, size: 1m, iodepth: "])
@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "0o" + "7" * 30, "1" + "0" * 30])
def test_a_number_that_no_program_can_hold(key: str, number: str) -> None:
    text = GOOD.partition("workloads:")[0] + key + number + "}}" * ("{" in key) + "\n"
    assert any("a whole number has at most 64 bits" in each and len(each) < 200 for each in mistakes(text))


def test_a_text_that_takes_too_long_to_split() -> None:
    text = f"{GOOD}  w: {{tool: command, run: {'x' * 65_537}}}\n"
    assert [each for each in mistakes(text) if "workloads.w.run: a text has at most 65536 characters" in each]


def test_a_long_chain_and_a_long_list_are_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number of steps grows with their length, and not with its square."""
    entries = 0
    extends = read._extends

    def counted(node: Node) -> Node | None:
        nonlocal entries
        entries += 1
        return extends(node)

    monkeypatch.setattr(read, "_extends", counted)
    chain = "".join(f"  w{number}: {{extends: w{number - 1}}}\n" for number in range(1, 400))
    found = mistakes(f"{GOOD}  w0: {{extends: rw}}\n{chain}")
    assert [each for each in found if "extends more than 50 workloads in a chain" in each]
    assert entries < 400 * 4 * 52
    items = "1," * 50_000
    assert mistakes(GOOD.replace("64m", f"[{items}1]")) == ["13: not valid YAML: more than 20000 values"]


def test_texts_that_a_store_would_not_read_again_are_refused(tmp_path: Path) -> None:
    """Each cell is stored with its texts: an alias, or a file of many cells, makes gigabytes of some kilobytes."""
    text = changed(("tool: fio", "tool: fio\n    ioengine: io_uring\n    direct: true"))
    long = f"{text}    description: {'d' * 60_000}\n"
    loops = f"    iodepth: [{', '.join(map(str, range(1, 10)))}]\n"
    load_text(long + loops, "s.yaml")
    many = f"    iodepth: [{', '.join(map(str, range(1, 400)))}]\n"
    load_text(text + many, "s.yaml")
    (message,) = mistakes(long + many)
    assert "Mi characters of text; at most 32 Mi are allowed" in message
    (tmp_path / "f").write_text("#" * MOST_BYTES)
    names = ", ".join(f"{'./' * number}f" for number in range(20))
    study = tmp_path / "s.yaml"
    study.write_text(
        "title: t\nmedia: {m: {type: ram, size: 1g}}\nstacks: {s: {medium: m, filesystem: ext4}}\n"
        f"workloads: {{w: {{tool: command, run: 'sh {{file}}', file: [{names}]}}}}\n"
    )
    with pytest.raises(StudyError, match="the study's files have more than 16 Mi characters: name fewer"):
        load(study)


def test_patterns_that_would_take_minutes_are_refused_before_they_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of patterns fit in a study, and each combination of a workload's values compiled all of them."""
    study = GOOD.partition("  rw:")[0]
    work = f"{study}  w: {{tool: command, run: 'true', takes: [TAKES], metrics: {{METRICS}}}}\n"

    def text(metrics: int, length: int, takes: int, more: str = "") -> str:
        found = ", ".join(
            f"m{number}: {{pattern: '{'a' * length}{number} (.)'}}" for number in range(metrics)
        )
        times = ", ".join(f"{number + 1}s" for number in range(takes))
        return work.replace("METRICS", found).replace("TAKES", times) + more

    claim = "claims:\n" + "".join(
        f"- {{says: s, that: ext4 > xfs, on: '*w{'*' * 900}{n}'}}\n" for n in range(30)
    )
    load_text(text(20, 900, 3), "s.yaml")
    load_text(text(20, 9, 500), "s.yaml")
    (many,) = mistakes(text(20, 9, 501))
    assert "501 combinations with 20 patterns are more than 10000: declare fewer metrics" in many
    monkeypatch.setattr(re, "compile", lambda *_: pytest.fail("compiled"))
    for long in (text(30, 900, 3), text(1, 9, 3, claim)):
        (message,) = mistakes(long)
        assert "characters; at most 20,000 are allowed: shorten them" in message


def test_claims_that_would_look_through_too_many_cells_are_refused() -> None:
    """Each claim looks for its cells among all: thousands of claims on thousands of cells take minutes."""
    study = GOOD.partition("  rw:")[0]
    times = ", ".join(f"{number + 1}s" for number in range(400))
    claims = "claims:\n" + "- {says: s, that: ext4 > xfs}\n" * 700
    (message,) = mistakes(f"{study}  w: {{tool: command, run: 'true', takes: [{times}]}}\n{claims}")
    assert "700 claims on" in message
    assert "are more than 500,000 together: make several studies" in message
