"""Tests of what the journal says of a mount of the user's: a manipulated entry mounts nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fslab.campaign import cleanup
from fslab.campaign.undo_journal import CampaignJournal, JournalEntry
from fslab.errors import FslabError, UnsafeError
from fslab.storage import named_devices, user_mounts
from fslab.storage.layouts import volume_name

GOOD = ["ext4", "rw,noatime", "/mnt/a b", "shared"]


def test_a_mount_is_read_as_it_was_written() -> None:
    found = user_mounts.parse(json.dumps(GOOD))
    assert found
    assert [*map(str, found)] == GOOD


@pytest.mark.parametrize(
    "target",
    [
        *(json.dumps(each) for each in (["evil", *GOOD[1:]], GOOD[:3], [*GOOD, ""], ["none", *GOOD[1:]])),
        *(json.dumps([*GOOD[:2], place, GOOD[3]]) for place in ("--bind", "mnt", "", "/mnt/\0", 1)),
        json.dumps([*GOOD[:3], "rshared"]),
        "[[[", "[" * 100_000, "null", "",
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_cannot_be_a_mount_belongs_to_no_campaign(target: str) -> None:
    assert user_mounts.parse(target) is None
    with pytest.raises(UnsafeError, match="does not belong to this campaign"):
        cleanup._check_ours("c", JournalEntry(id="1", kind=user_mounts.KIND, target=target))


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (user_mounts.KIND, json.dumps(["ext4", "rw", "/not there", "private"])),
        (named_devices.SIGNATURE, f"{volume_name('c')} ext4 1234"),
    ],
)
def test_what_is_on_a_disk_that_is_gone_stays_in_the_journal(kind: str, target: str, tmp_path: Path) -> None:
    """``fslab clean`` said that it was restored or removed."""
    disk = {"name": "/dev/disk/by-id/gone", "number": "8:0", "sequence": "1"}
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"id": "1-1", "kind": kind, "target": target, "devices": [disk]}) + "\n")
    path.chmod(0o600)
    with CampaignJournal("c", tmp_path) as journal:
        with pytest.raises(FslabError, match=f"{kind} not undone: /dev/disk/by-id/gone is gone") as found:
            cleanup.undo_pending(journal)
        assert str(path) in str(found.value.hint)
        assert journal.pending()


def test_what_is_mounted_by_now_needs_no_disk(tmp_path: Path) -> None:
    with CampaignJournal("c", tmp_path) as journal:
        journal.will_create(user_mounts.KIND, json.dumps(["ext4", "rw", "/proc", "private"]))
        assert cleanup.undo_pending(journal)
        assert not journal.pending()
