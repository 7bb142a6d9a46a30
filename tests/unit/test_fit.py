"""Tests of sentences that are shortened to the width of a terminal."""

from fslab.report.fit import fitted

TEXT = "each fsync waits for a commit of the journal, of which there were 412, or one for each file written"


def test_clauses_go_before_words() -> None:
    assert fitted(TEXT, 80) == "each fsync waits for a commit of the journal, of which there were 412"
    assert fitted(TEXT, 12, most=1) == "each fsync …"
