"""Tests of sentences that are shortened to the width of a terminal."""

from fslab.report.fit import fitted, lines_of

ABOUT = "observed: files on ext4 defaults: "
TEXT = "each fsync waits for a commit of the journal, of which there were 412, or one for each file written"


def test_what_a_sentence_is_about_is_never_all_that_is_left() -> None:
    for width in range(30, 140):
        text = fitted(TEXT, width, before=ABOUT)
        assert text.startswith(ABOUT + "each"), f"{width} columns: {text}"
        assert len(lines_of(text, width)) <= 2, f"{width} columns: {text}"


def test_clauses_go_before_words() -> None:
    assert fitted(TEXT, 80) == "each fsync waits for a commit of the journal, of which there were 412"
    assert fitted(TEXT, 12, most=1) == "each fsync …"
