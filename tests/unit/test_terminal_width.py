"""Tests of sentences that are shortened to the width of a terminal."""

import time

from fslab.report.terminal_width import fitted, joined, with_hint

TEXT = "each fsync waits for a commit of the journal, of which there were 412, or one for each file written"


def test_clauses_go_before_words() -> None:
    assert fitted(TEXT, 80) == TEXT
    assert fitted(TEXT, 80, most=1) == "each fsync waits for a commit of the journal, of which there were 412"
    assert fitted(TEXT, 12, most=1) == "each fsync …"


def test_as_many_texts_as_fit_and_how_many_more_there_are() -> None:
    texts = ["the first one", "the second one", "the third one", TEXT]
    assert joined(texts[:3], 50, what="note") == "the first one; the second one; the third one"
    assert joined(texts, 50, what="note", most=1) == "the first one; the second one; 2 notes"
    assert joined(texts, 28, what="note", before="! ", most=1) == "! the first one; 3 notes"
    assert joined([TEXT, *texts], 12, what="note", most=1) == "each fsync …"
    assert joined([TEXT, *texts], 80, what="note", most=1) == (
        "each fsync waits for a commit of the journal, of which there were 412; 4 notes"
    ), "a clause less, and not the number less"


def test_what_is_meant_is_not_dropped_after_a_colon() -> None:
    reason = "unsupported: fill: the file system is in use to 84% and cannot be filled to 90%, on a medium of 512 MiB"
    assert fitted(reason, 60) == reason
    assert (
        fitted(reason, 40) == "unsupported: fill: the file system is in use to 84% and cannot be filled to …"
    )
    assert fitted("this machine was busy in 9 of 9 trials: less is not seen", 50, most=1).endswith(" trials")


def test_a_text_of_megabytes_is_shortened_soon() -> None:
    began_s = time.process_time()
    for piece in ("1, ", "word; ", "(", "x"):
        long = piece * 300_000
        for shortened in (fitted(long, 80), with_hint(long, long, 80), joined([long, long], 80, what="note")):
            assert len(shortened) < 400
    assert time.process_time() - began_s < 5  # it took hours
