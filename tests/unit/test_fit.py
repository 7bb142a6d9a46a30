"""Tests of sentences that are shortened to the width of a terminal."""

import time

from fslab.report.fit import fitted, with_hint

TEXT = "each fsync waits for a commit of the journal, of which there were 412, or one for each file written"


def test_clauses_go_before_words() -> None:
    assert fitted(TEXT, 80) == "each fsync waits for a commit of the journal, of which there were 412"
    assert fitted(TEXT, 12, most=1) == "each fsync …"


def test_a_text_of_megabytes_is_shortened_soon() -> None:
    began_s = time.process_time()
    for piece in ("1, ", "word; ", "(", "x"):
        for shortened in (fitted(piece * 300_000, 80), with_hint(piece * 300_000, piece * 300_000, 80)):
            assert len(shortened) < 400
    assert time.process_time() - began_s < 5  # it took hours
