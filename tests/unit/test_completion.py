"""Tests of what a shell completes. The shell's part is typer's."""

from __future__ import annotations

from pathlib import Path

from tests import made
from typer.testing import CliRunner

from fslab import shipped_studies
from fslab.cli import app


def completed(words: str) -> list[str]:
    """Return the values for the last of the words, which may be empty."""
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_FSLAB_COMPLETE": "complete_bash"}
    return CliRunner().invoke(app, [], env=typed, prog_name="fslab").stdout.split()


def test_what_help_calls_by_a_known_word_is_completed(tmp_path: Path) -> None:
    assert completed("fslab run ") == list(shipped_studies())
    assert completed("fslab plan quic") == ["quick"]
    assert completed("fslab run quick --on ") == ["auto", "host", "qemu", "uml"]
    assert completed("fslab features xf") == ["xfs"]
    assert completed("fslab explain --only parity") == ["parity-updates"]
    assert completed(f"fslab report --store {tmp_path}/none ") == [], "there is no store"
    assert completed("fslab run quick --report ") == [], "left to the shell"


def test_campaigns_of_the_store_are_completed_the_last_one_first(tmp_path: Path) -> None:
    campaigns = [
        made.campaign("20260101-a"),
        made.campaign("20260102-b").model_copy(update={"name": "nightly"}),
    ]
    store = made.stored(tmp_path / "store", [(each, []) for each in campaigns])
    assert completed(f"fslab results --store {store} ") == ["last", "nightly", "20260101-a"]
    assert completed(f"fslab claims --store {store} nig") == ["nightly"]
