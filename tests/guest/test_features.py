"""Tests of features of file systems that the host's kernel may lack, in a guest. Declared limits match the results."""

from __future__ import annotations

import pytest
from tests.feature_facts import NEEDED, check_declared

from fslab.campaign.feature_tests import Request, in_guest
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import MachineSpec
from fslab.features import Examination, Support

UML = MachineSpec(type="uml")


def examined(guests: TrialMachines, filesystem: str, *only: str, size_mib: int = 160) -> Examination:
    request = Request(filesystem=filesystem, medium="ram", size_bytes=size_mib << 20, only=only)
    found = in_guest(request, UML, guests)
    assert found.not_possible is None
    assert found.machine == "uml"
    return found


@pytest.mark.slow
def test_what_f2fs_and_nilfs2_and_vfat_can_do(guests: TrialMachines) -> None:
    only = ("checksums", "snapshots", "timestamps", "largest-file", "case-folding", "direct-io")
    f2fs, nilfs2, vfat = (examined(guests, name, *only).findings for name in ("f2fs", "nilfs2", "vfat"))
    assert f2fs["largest-file"].value == 4_329_687_105_536, "1057052516 blocks of 4 KiB"
    assert (f2fs["checksums"].answer, f2fs["timestamps"].value) == (Support.NO, 1)
    assert nilfs2["snapshots"].detail == "checkpoints, read-only"
    assert nilfs2["direct-io"].value == "reads only"
    assert (vfat["timestamps"].value, vfat["largest-file"].value) == (2_000_000_000, (4 << 30) - 1)
    assert vfat["case-folding"].detail == "always"


@pytest.mark.slow
def test_what_the_guest_s_kernel_lacks(guests: TrialMachines) -> None:
    request = Request(filesystem="exfat", medium="ram", size_bytes=64 << 20)
    assert "has no exfat" in (in_guest(request, UML, guests).not_possible or "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "filesystem", ["ext2", "ext3", "f2fs", "jfs", "nilfs2", "reiserfs", "udf", "vfat", "btrfs"]
)
def test_declared_limits_are_those_that_are_found(filesystem: str, guests: TrialMachines) -> None:
    check_declared(examined(guests, filesystem, *NEEDED))
