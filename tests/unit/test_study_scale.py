"""Tests of scaled studies: which values are scaled, minimum sizes, what stays unchanged, and what the plan reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.plan.plan import make_plan
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.study import shipped
from fslab.study.load import load, load_text
from fslab.study.model import Study
from fslab.units import parse_size
from fslab.workloads import Job, parsed

JOB = Job(directory=Path("/d"), scratch=Path("/s"), seed=1)
TEXT = """\
title: t
scale: 0.05
media: {d: {type: loop, size: 40g}, s: {type: ram, size: 512m}}
stacks:
  fs: {medium: d, filesystem: [ext4, xfs], workloads: [sweep, timed]}
  small: {medium: s, filesystem: xfs, workloads: [few]}
workloads:
  sweep: {tool: iozone, tests: "0", size: [1m, 2m, 1g], record: [64k, 1m]}
  timed: {tool: fio, rw: randread, size: 1g, runtime: 30s}
  few: {tool: shell, operation: touch}
"""


def study(*overrides: str, text: str = TEXT) -> Study:
    return load_text(text, "s.yaml", overrides)


def test_lists_shrink_value_by_value_and_what_becomes_the_same_is_one() -> None:
    found = study()
    # The minimum for IOzone is 1 MiB here, so that 1m and 2m become the same. 51.2 MiB is rounded to whole MiB.
    assert found.workloads["sweep"].parameters["size"] == ("1m", "51m")
    assert found.workloads["sweep"].parameters["record"] == ("64k", "1m")
    names = {cell.workload.name for cell in expand(found)}
    assert "sweep[size=51m,record=64k]" in names
    assert found.workloads["few"].parameters["files"] == (500,), "defaults shrink as well"


def test_a_size_fits_every_record_length_that_it_is_combined_with() -> None:
    # 10.24 MiB is rounded to 11m: a multiple of both record lengths. For 64k alone, it would be 10496k.
    found = study("scale=0.01")
    assert found.workloads["sweep"].parameters["size"] == ("1m", "11m")


def test_media_shrink_but_hold_their_file_systems_and_files() -> None:
    found = study()
    assert found.media["d"].options["size"] == ("2g",)
    assert found.media["s"].options["size"] == ("512m",), "below 1 GiB nothing is gained"
    floors = {(each.entry, each.used) for each in found.scaled if each.floor}
    assert ("media.s", "512m") in floors
    assert ("media.d", "2g") not in floors


def test_a_disk_holds_the_files_on_it_and_never_grows() -> None:
    # 1.5 × 8 GiB of files + 96 MiB for the file system + 8 MiB for the layout.
    assert study("workloads.timed.size=8g").media["d"].options["size"] == ("12392m",)
    found = study("workloads.timed.size=8g", text=TEXT.replace("size: 40g", "size: 9g"))
    assert found.media["d"].options["size"] == ("9g",)


def test_a_job_file_is_scaled_and_what_cannot_be_scaled_is_named() -> None:
    text = TEXT.replace(
        "  few:",
        "  job: {tool: fio, file: j.fio}\n  run: {tool: command, run: sync}\n"
        "  both: {tool: mixed, parts: {a: {tool: command, run: sync}, b: {tool: filebench, script: run, set: x=9}}}\n"
        "  few:",
    )
    files = {"j.fio": "[a]\nsize=1g\nruntime=40\n[b]\nsize=1g\nrw=write\n"}
    scaled = load_text(text.replace("[sweep, timed]", "[job, run, both]"), "s.yaml", (), files)
    (job,) = [cell for cell in expand(scaled) if cell.workload.name == "job" and cell.stack.name == "ext4"]
    found = parsed(job.workload)
    assert found.space_bytes() == 2 * (51 << 20)
    assert "size=51m\nruntime=2s" in found.commands(JOB).inputs["jobs.fio"]
    assert ("workloads.job", "scale", "1.0", "0.05") in {
        (each.entry, each.key, each.written, each.used) for each in scaled.scaled
    }
    assert any(
        cost.endswith("no amount of work in it: run, both a, both b set x")
        for cost in make_plan(scaled, images=Path("/i"), runtime=Path("/r")).costs
    )


def test_what_the_command_line_sets_stays_as_it_is() -> None:
    found = study("workloads.timed.runtime=20s", "media.d.size=3g")
    assert found.workloads["timed"].parameters["runtime"] == ("20s",)
    assert found.workloads["timed"].parameters["size"] == ("51m",)
    assert found.media["d"].options["size"] == ("3g",)


def test_what_the_command_line_sets_of_one_stack_stays_as_it_is() -> None:
    text = TEXT.replace("scale: 0.05", "scale: 0.05\non: uml\nguest_memory: 8g").replace(
        "small: {medium: s,", "small: {medium: {type: ram, size: 5g}, guest_memory: 4g,"
    )
    found = study("stacks.small.guest_memory=3g", "stacks.small.medium.size=4g", text=text)
    assert found.stacks["small"].guest_memory == "3g"
    assert found.stacks["fs"].guest_memory == "410m"
    assert found.media["small.medium"].options["size"] == ("4g",)
    assert not [each for each in found.scaled if "small" in each.entry]


def test_scale_one_changes_nothing_and_says_nothing() -> None:
    found = study("scale=1")
    assert found.scaled == ()
    assert found.workloads["timed"].parameters == {"rw": ("randread",), "size": ("1g",), "runtime": ("30s",)}


def test_the_same_study_comes_from_its_text_and_overrides() -> None:
    found = study("scale=0.1", "trials=3")
    assert load_text(found.text, found.id, found.overrides) == found


@pytest.mark.parametrize("value", ["0", "-1", "much", "1e9"])
def test_a_scale_is_a_positive_number(value: str) -> None:
    with pytest.raises(StudyError, match="scale"):
        study(f"scale={value}")


def test_the_plan_says_what_was_scaled_and_what_it_costs() -> None:
    plan = make_plan(study(), images=Path("/i"), runtime=Path("/r"), memory_bytes=1 << 30)
    assert plan.scale == 0.05
    said = "\n".join(plan.costs)
    assert "shorter than 30 s, so that commits and writeback occur in some trials only: timed" in said
    assert "files smaller than memory (1 GiB)" in said
    assert "sweep[size=1m,record=64k]" in said
    assert plan.costs[-1] == "minimum size reached: workloads.sweep size 1m, media.s size 512m"
    guest = make_plan(study("on=uml"), images=Path("/i"), runtime=Path("/r"), memory_bytes=1 << 20)
    assert "files smaller than memory (1 GiB)" in "\n".join(guest.costs)  # a guest's default
    journal = study("stacks.fs.layout={type: external-journal, journal_size: 1g}")
    costs = make_plan(journal, images=Path("/i"), runtime=Path("/r"), memory_bytes=1 << 30).costs
    told = "journals on a disk of their own keep their size (1 GiB), so that they fill up less often"
    assert (told in costs, "journals" in said) == (True, False)
    long = TEXT.replace("runtime: 30s", "runtime: 900s").replace(
        "filesystem: [ext4, xfs]", "filesystem: [ext4, btrfs]"
    )
    small, large = (
        make_plan(study(f"media.d.size={size}", "media.d.room=2g", text=long), images=Path("/i"), runtime=Path("/r"),
                  memory_bytes=1 << 30).costs
        for size in ("15g", "16g")
    )  # fmt: skip
    assert not any("shorter than 30 s" in each for each in small)
    assert set(small) - set(large) == {
        "volumes smaller than 16 GiB, on which btrfs is slower than on larger ones"
    }
    whole = make_plan(study("scale=1"), images=Path("/i"), runtime=Path("/r"), memory_bytes=1 << 30)
    assert whole.costs == ()
    assert whole.scaled == ()


@pytest.mark.parametrize("name", [name for name in shipped.ids() if "scale:" in shipped.text(name)])
@pytest.mark.parametrize("factor", ["1e-5", "0.003", "0.05", "0.4", "1"])
def test_a_published_study_is_possible_at_every_scale(name: str, factor: str) -> None:
    found = load(name, (f"scale={factor}",))
    cells = expand(found)
    assert cells
    assert len({cell.id for cell in cells}) == len(cells)
    assert (found.scaled == ()) is (factor == "1")


def test_the_published_studies_have_their_cells() -> None:
    """The studies have as many cells as the publications have measurements, counted there."""
    counts = {name: Counter(cell.workload.name for cell in expand(load(name))) for name in shipped.ids()}
    loop = counts["loop-vm"]
    assert loop["fio-randwrite-4k-qd32"] == 12, "mount variants"
    assert loop["dd-write-4k"] == loop["database-70-30-2-threads"] == 3
    assert counts["multi-disk"] == {
        "bonnie-data": 3 + 2 * 3 * (4 + 3),
        "bonnie-files": 3 + 2 * 3 * (4 + 3),
    }  # one disk; each manager: 2 to 5 disks, 3 more chunks
    assert counts["nas-file-management"].total() == 7 * 4 * 3
    assert counts["ext-generations"]["filebench-seqread-512k"] == 5
    assert counts["iozone-ssd-hdd"]["iozone-large"] == 4 * 2


def test_an_entry_can_have_a_scale_of_its_own() -> None:
    text = (
        TEXT.replace("size: 40g}", "size: 40g, room: 8g, scaled_by: 0.5}")
        .replace("runtime: 30s}", "runtime: 30s, scaled_by: 0.1}")
        .replace("operation: touch}", "operation: touch, scaled_by: 1}")
    )
    study = load_text(text, "s.yaml")
    assert study.media["d"].options["size"] == ("20g",)
    assert study.media["d"].options["room"] == ("4g",)
    assert study.workloads["timed"].parameters["runtime"] == ("3s",)
    assert "files" not in {each.key for each in study.scaled if each.entry == "workloads.few"}
    assert not any(each.floor for each in study.scaled if each.entry in {"workloads.timed", "media.d"})


def test_a_scale_of_the_command_line_is_for_every_entry() -> None:
    text = TEXT.replace("runtime: 30s}", "runtime: 30s, scaled_by: 0.1}")
    whole = load_text(text, "s.yaml", ["scale=1"])
    assert whole.workloads["timed"].parameters["runtime"] == ("30s",)
    assert load_text(text, "s.yaml", ["scale=0.5"]).workloads["timed"].parameters["runtime"] == ("15s",)


def test_a_study_without_a_scale_can_have_entries_with_one() -> None:
    text = TEXT.replace("scale: 0.05\n", "").replace("runtime: 30s}", "runtime: 30s, scaled_by: 0.1}")
    study = load_text(text, "s.yaml")
    assert study.workloads["timed"].parameters["runtime"] == ("3s",)
    assert study.media["d"].options["size"] == ("40g",)


def test_a_medium_of_full_size_does_not_keep_the_others_from_shrinking() -> None:
    text = TEXT.replace("{d: {type", "{a: {type: ram, size: 8g, scaled_by: 1}, d: {type").replace(
        "small: {medium: s", "small: {medium: [a, s]"
    )
    found = load_text(text, "s.yaml")
    assert (found.media["a"].options["size"], found.media["d"].options["size"]) == (("8g",), ("2g",))


def test_a_medium_holds_the_smallest_volume_of_its_file_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(FILESYSTEMS.get("ext4")), "min_size_bytes", 5 << 30)
    (size,) = study().media["d"].options["size"]
    assert 5 << 30 <= parse_size(str(size)) < 5.1 * (1 << 30)
    assert study(text=TEXT.replace("[ext4, xfs]", "xfs")).media["d"].options["size"] == ("2g",)


@pytest.mark.parametrize(("on", "used"), [("qemu", "512m"), ("uml", "192m"), ("host", "128m")])
def test_a_guest_has_the_memory_that_its_machine_needs(on: str, used: str) -> None:
    text = TEXT.replace("scale: 0.05", f"scale: 0.01\non: {on}\nguest_memory: 4g")
    text = text.replace("media: {d: {type: loop, size: 40g}", "media: {d: {type: ram, size: 40g}")
    found = load_text(text, "s.yaml")
    assert {stack.guest_memory for stack in found.stacks.values()} == {used}
    assert [(each.entry, each.written) for each in found.scaled if each.key == "guest_memory"] == [("", "4g")]
    own = load_text(text.replace("small: {", "small: {guest_memory: 2g, "), "s.yaml")
    entries = [(each.entry, each.written) for each in own.scaled if each.key == "guest_memory"]
    assert entries == [("", "4g"), ("stacks.small", "2g")]
