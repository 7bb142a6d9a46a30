"""Tests of what the journal says of a mount of the user's: a manipulated entry mounts nothing."""

from __future__ import annotations

import json

import pytest

from fslab.campaign import cleanup
from fslab.campaign.undo_journal import JournalEntry
from fslab.errors import UnsafeError
from fslab.storage import mounted_again

GOOD = ["ext4", "rw,noatime", "/mnt/a b"]


def test_a_mount_is_read_as_it_was_written() -> None:
    found = mounted_again.parse(json.dumps(GOOD))
    assert found
    assert [*map(str, found)] == GOOD


@pytest.mark.parametrize(
    "target",
    [
        *(json.dumps(each) for each in (["evil", *GOOD[1:]], GOOD[:2], [*GOOD, ""], ["none", *GOOD[1:]])),
        *(json.dumps([*GOOD[:2], place]) for place in ("--bind", "mnt", "", "/mnt/\0", 1)),
        "[[[", "[" * 100_000, "null", "",
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_cannot_be_a_mount_belongs_to_no_campaign(target: str) -> None:
    assert mounted_again.parse(target) is None
    with pytest.raises(UnsafeError, match="does not belong to this campaign"):
        cleanup._check_ours("c", JournalEntry(id="1", kind=mounted_again.KIND, target=target))
