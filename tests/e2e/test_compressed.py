"""Tests of zeros on a file system that compresses: the warning, what explains the figure, and all figures of a run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab

STUDY = """
title: Does compression make a backup faster?
media: {disk: {type: ram, size: 512m, room: 512m}}
stacks: {fs: {medium: disk, filesystem: btrfs, mount_options: [defaults, "compress=zstd:3"]}}
workloads:
  dd: {tool: dd, op: write, bs: 1M, count: 64}
  job: {tool: fio, file: zeros.fio}
trials: 1
cache: warm
"""
JOBS = "[global]\nsize=16m\nbs=64k\nrw=write\nend_fsync=1\nfallocate=none\nzero_buffers\n[one]\n[two]\nstonewall\n"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes file systems")
def test_zeros_that_compress_are_named(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "zeros.fio").write_text(JOBS)
    (tmp_path / "z.yaml").write_text(STUDY)
    fslab("run", "z.yaml")
    warned = {
        (trial["stack"]["mount_options"], trial["workload"]["name"])
        for trial in fslab.trials()
        if any(each["kind"] == "zeros_only" for each in trial["validity"])
    }
    assert warned == {("compress=zstd:3", "dd"), ("compress=zstd:3", "job")}
    said = " ".join(fslab("explain").stdout.split())
    assert re.search(r"Compression: the device received 0\.\d+ bytes for each byte sent to it, and the tool writes "
                     r"hardly anything but zeros\. observed: \S+ on fs compress=zstd:3", said)  # fmt: skip
    assert "page cache" not in fslab("explain", "--all").stdout
    headline, every = (fslab.json("results", "--json", *more)["rows"] for more in ((), ("--all",)))
    assert [row["metric"] for row in headline] == [
        "write_bandwidth",
        "one_write_bandwidth",
        "two_write_bandwidth",
    ]
    assert {"one_write_iops", "two_write_clat_p99", "one_cpu_user"} <= {row["metric"] for row in every}
    assert "two write clat p99" in fslab("results", "--all").stdout
