"""Statistics: pure functions on sequences of numbers, each with its reference.

Nothing here knows what a trial or a file system is, reads or prints anything, or needs numpy. Too few
samples is an answer (a :class:`Reason`), never an exception and never a made-up number.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a statistic does not exist for these samples."""

    NO_SAMPLES = "no_samples"
    TOO_FEW_SAMPLES = "too_few_samples"
    NOT_POSITIVE = "not_positive"
    NOT_FINITE = "not_finite"
