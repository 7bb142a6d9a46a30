"""Tests of the journal after crashes, of the trial history (which cells are given up), and of campaign ids."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import made

from fslab.campaign.trial_loop import TrialHistory, new_id
from fslab.campaign.undo_journal import CampaignJournal, JournalEntry, is_running, leftover, parse
from fslab.cell import Cell
from fslab.errors import BusyError
from fslab.trial_record import Status, TrialRecord


def cell(name: str = "w") -> Cell:
    return made.cell(parameters={"rw": "read", "size": "1m"}, name=name)


def record(status: Status, of: Cell, duration_s: float = 2.0) -> TrialRecord:
    return made.trial(of=of, status=status, duration_s=duration_s)


class TestJournal:
    def test_a_file_that_cannot_be_removed_ends_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With chattr +a, files can be made and not removed."""

        def refused(path: Path) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

        journal = CampaignJournal("c1", tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refused)
            journal.close()
        CampaignJournal("c1", tmp_path).close()  # the lock is free
        assert list(tmp_path.iterdir()) == []

    def test_what_is_not_undone_is_pending_in_order(self, tmp_path: Path) -> None:
        with CampaignJournal("c", tmp_path) as journal:
            first = journal.will_create("image", "/a b/x.img")
            journal.will_create("loop", "/a b/x.img\nwith a newline")
            journal.undone(first)
            assert [(entry.kind, entry.target) for entry in journal.pending()] == [
                ("loop", "/a b/x.img\nwith a newline")
            ]
        assert list(leftover(tmp_path)) == ["c"]

    def test_a_full_disk_is_named(self, tmp_path: Path) -> None:
        former = resource.getrlimit(resource.RLIMIT_FSIZE)
        with CampaignJournal("c", tmp_path) as journal:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, former[1]))
            try:
                with pytest.raises(OSError, match="File too large") as raised:
                    journal.will_create("mount", "/m")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, former)
            assert raised.value.filename == str(journal.path)

    def test_nothing_pending_leaves_no_file(self, tmp_path: Path) -> None:
        with CampaignJournal("c", tmp_path) as journal:
            journal.undone(journal.will_create("mount", "/m"))
        assert not list(tmp_path.iterdir())

    def test_an_entry_is_on_disk_when_will_create_returns(self, tmp_path: Path) -> None:
        journal = CampaignJournal("c", tmp_path)
        journal.will_create("mount", "/m")
        assert "/m" in (tmp_path / "c.jsonl").read_text()
        journal.close()
        journal.close()

    def test_another_process_s_journal_is_left_alone(self, tmp_path: Path) -> None:
        with CampaignJournal("c", tmp_path) as journal:
            journal.will_create("mount", "/m")
            with pytest.raises(BusyError, match="running"):
                CampaignJournal("c", tmp_path)

    def test_a_campaign_runs_while_its_journal_is_held(self, tmp_path: Path) -> None:
        assert not is_running("c", tmp_path)
        journal = CampaignJournal("c", tmp_path)
        journal.will_create("mount", "/m")
        assert is_running("c", tmp_path)
        journal.close()
        assert not is_running("c", tmp_path)

    def test_who_only_looks_at_a_journal_keeps_nobody_from_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = CampaignJournal("c", tmp_path)
        left.will_create("mount", "/m")
        left.close()
        looks = os.open(left.path, os.O_RDONLY)
        fcntl.flock(looks, fcntl.LOCK_SH)
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(looks, fcntl.LOCK_UN))
        with CampaignJournal("c", tmp_path) as journal:
            assert len(journal.pending()) == 1
        os.close(looks)

    def test_a_line_cut_short_by_a_power_loss_is_dropped(self) -> None:
        whole = '{"id": "1-1", "kind": "image", "target": "/x"}\n'
        assert parse(whole + '{"id": "1-2", "kind": "lo') == [
            JournalEntry(id="1-1", kind="image", target="/x")
        ]
        assert parse("") == []

    @pytest.mark.parametrize("boot", ["[]", "{}", "1"])
    def test_a_boot_that_is_no_text_is_unknown(self, boot: str) -> None:
        (entry,) = parse(f'{{"id": "1-1", "kind": "image", "target": "/x", "boot": {boot}}}')
        assert (entry.boot, entry.rebooted) == (None, False)

    def test_ids_stay_unique_when_a_journal_is_opened_again(self, tmp_path: Path) -> None:
        with CampaignJournal("c", tmp_path) as journal:
            first = journal.will_create("mount", "/m")
        with CampaignJournal("c", tmp_path) as journal:
            assert journal.will_create("mount", "/n") != first
            assert len(journal.pending()) == 2


class TestTrialHistory:
    def test_two_failures_in_a_row_are_enough(self) -> None:
        history, one = TrialHistory(), cell()
        history.enter(record(Status.FAILED, one))
        history.enter(record(Status.OK, one))
        history.enter(record(Status.FAILED, one))
        assert not history.given_up(one)
        history.enter(record(Status.FAILED, one))
        assert history.given_up(one)
        assert not history.given_up(cell("other"))

    def test_what_the_machine_cannot_do_is_tried_once(self) -> None:
        history, one = TrialHistory(), cell()
        history.enter(record(Status.UNSUPPORTED, one))
        assert history.given_up(one)

    def test_an_invalid_trial_is_not_a_failure(self) -> None:
        history, one = TrialHistory(), cell()
        for _ in range(3):
            history.enter(record(Status.INVALID, one))
        assert not history.given_up(one)

    def test_expected_duration_is_the_cell_s_own_or_all(self) -> None:
        history, one, two = TrialHistory(), cell("one"), cell("two")
        assert history.expected_s(one) == 0
        history.enter(record(Status.OK, one, 2.0))
        history.enter(record(Status.OK, one, 4.0))
        assert history.expected_s(one) == pytest.approx(3.0)
        assert history.expected_s(two) == pytest.approx(3.0)
        history.enter(record(Status.OK, two, 9.0))
        assert history.expected_s(two) == pytest.approx(9.0)


def test_campaign_ids_sort_by_time_and_differ() -> None:
    early, late = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)
    assert new_id(early) < new_id(late)
    assert len({new_id(early) for _ in range(50)}) > 40
