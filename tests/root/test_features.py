"""Tests of features on real scratch volumes of this host: the results match the documentation of the file systems."""

from __future__ import annotations

import pytest
from tests import made
from tests.feature_facts import check_declared

from fslab.campaign import cleanup
from fslab.campaign.feature_tests import Request, run_tests
from fslab.campaign.trial import run_trial
from fslab.campaign.trial_loop import new_id
from fslab.cell import Cache, TrialKey
from fslab.features import REGISTRY, Examination, Support
from fslab.filesystem_abilities import Ability
from fslab.storage import Workspace
from fslab.system import kernel
from fslab.trial_record import Status

SIZE = 320 << 20


def examined(filesystem: str, *only: str, size_bytes: int = SIZE, medium: str = "ram") -> Examination:
    with cleanup.opened_workspace(new_id(), frozenset()) as workspace:
        return run_tests(
            Request(filesystem=filesystem, medium=medium, size_bytes=size_bytes, only=only), workspace
        )


# Sources: ext4.rst, ext4(5), xfs(5), mkfs.xfs(8), btrfs(5).
KNOWN = {
    "ext4": {
        "checksums": "no", "compression": "no", "reflink": "no", "snapshots": "no", "acl": "yes", "holes": "yes",
        "rename": "yes", "hard-links": 65000, "longest-name": 255, "largest-file": (16 << 40) - 4096,
        "inodes": "fixed", "timestamps": 1, "shrink": "no",
    },
    "xfs": {
        "checksums": "no", "compression": "no", "reflink": "yes", "snapshots": "no", "acl": "yes", "holes": "yes",
        "rename": "yes", "encryption": "no", "longest-name": 255, "largest-file": (1 << 63) - 1, "xattr": 65536,
        "inodes": "dynamic", "timestamps": 1, "grow": "yes",
    },
    "btrfs": {
        "checksums": "yes", "compression": "yes", "reflink": "yes", "snapshots": "yes", "acl": "yes",
        "holes": "yes", "rename": "yes", "encryption": "no", "longest-name": 255, "largest-file": (1 << 63) - 1,
        "hard-links": 65535, "inodes": "dynamic", "timestamps": 1, "grow": "yes", "shrink": "yes", "quotas": "yes",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "filesystem", ["ext4", *(pytest.param(each, marks=pytest.mark.slow) for each in ("btrfs", "xfs"))]
)
def test_what_is_known_is_found_and_what_is_declared_is_so(filesystem: str) -> None:
    found = examined(filesystem)
    assert set(found.findings) == set(REGISTRY.names())
    wrong = {
        name: (finding.answer.value, finding.value, finding.detail)
        for name, known in KNOWN[filesystem].items()
        for finding in [found.findings[name]]
        if known not in {finding.answer.value, finding.value}
    }
    assert wrong == {}
    assert found.findings["dax"].answer is Support.UNKNOWN, "no loop device is persistent memory"
    # btrfs sends direct writes of files with checksums through the page cache since Linux 6.15.
    but = {Ability.DIRECT_WRITES} if filesystem == "btrfs" else set()
    check_declared(found, but=frozenset(but))


def test_a_feature_that_needs_an_option_is_tried_with_it() -> None:
    finding = examined("ext4", "encryption", size_bytes=64 << 20).findings["encryption"]
    if finding.answer is Support.NO:
        assert (finding.detail or "").startswith("also not with mkfs -O encrypt"), "a kernel without fscrypt"
    else:
        assert finding.switch == "mkfs -O encrypt"


def test_growing_leaves_the_image_as_it_was() -> None:
    found = examined("btrfs", "grow", "space", size_bytes=256 << 20)
    assert found.findings["grow"].answer is Support.YES
    assert found.findings["space"].detail is not None
    assert found.findings["space"].detail.endswith(f"of {256 << 20} bytes"), "made after the device had grown"


def test_images_on_a_disk_serve_as_well() -> None:
    found = examined("ext4", "holes", "checksums", size_bytes=64 << 20, medium="loop")
    assert [found.findings[name].answer for name in ("holes", "checksums")] == [Support.YES, Support.NO]


def test_what_this_kernel_lacks_is_not_possible_and_makes_nothing() -> None:
    found = examined("zfs")
    assert found.findings == {}
    assert "OpenZFS" in (found.not_possible or "")


@pytest.mark.parametrize(
    ("filesystem", "says"), [("nilfs2", "it needs direct writes"), ("zfs", "OpenZFS"), ("vfat", None)]
)
def test_a_trial_that_is_not_possible_is_unsupported_and_makes_nothing(
    filesystem: str, says: str | None, workspace: Workspace
) -> None:
    parameters = {"rw": "randwrite", "size": "1m", "runtime": "100ms", "direct": True}
    stack = made.spec(filesystem, options={"size": "160m"})
    cell = made.cell(stack, parameters=parameters, cache=Cache.WARM)
    record = run_trial(cell, TrialKey(campaign="test", block=0, seed=1), workspace, machine={})
    if says is None and kernel.has_filesystem(filesystem):
        assert record.status is not Status.UNSUPPORTED, "vfat takes direct writes where the kernel has it"
        return
    assert record.status is Status.UNSUPPORTED
    assert (says or f"has no {filesystem}") in (record.error or "")
    assert record.provenance.commands == ()
