"""Checks the declared limits of file systems against the results of feature tests."""

from __future__ import annotations

from fslab.features import Examination, FeatureFinding, Support
from fslab.features.calls import NOT_SPARSE
from fslab.filesystem_abilities import Ability
from fslab.storage.filesystems import REGISTRY


def able(found: Examination) -> dict[Ability, bool]:
    """Return for each ability that a file system can lack whether the feature tests found it."""
    findings = found.findings
    direct = findings["direct-io"]
    return {
        Ability.DIRECT_READS: direct.answer is Support.VALUE and direct.value != "writes only",
        Ability.DIRECT_WRITES: direct.answer is Support.VALUE and direct.value != "reads only",
        Ability.FALLOCATE: "allocate" in (findings["fallocate"].detail or "").split(", "),
        Ability.HARD_LINKS: findings["hard-links"].answer is Support.VALUE,
        Ability.XATTR: findings["xattr"].answer is Support.VALUE,
        Ability.SPARSE: findings["holes"].detail != NOT_SPARSE,
        Ability.REFLINK: findings["reflink"].answer is Support.YES,
        Ability.CASE: findings["case-folding"].detail != "always",
    }


NEEDED = ("direct-io", "fallocate", "hard-links", "xattr", "holes", "reflink", "case-folding", "largest-file")


def check_declared(found: Examination, *, but: frozenset[Ability] = frozenset()) -> None:
    """Assert that the file system lacks exactly the abilities that it is declared to lack.

    ``but``: abilities that depend on the kernel, and are not checked.
    """
    limits = REGISTRY.get(found.filesystem).limits
    for ability, possible in able(found).items():
        if ability not in but:
            assert possible is (ability not in limits.lacks), (found.filesystem, ability)
    check_largest(found.findings["largest-file"], limits.largest_file_bytes)


def check_largest(finding: FeatureFinding, declared: int | None) -> None:
    assert isinstance(finding.value, int)
    if declared is None:
        assert finding.value >= 1 << 40
    else:
        assert abs(finding.value - declared) <= declared // 500, (
            "within what the last block and pointers take"
        )
