"""Statistics: pure functions on sequences of numbers, each with its reference.

No module here depends on trials or file systems, or reads or prints anything. Too few samples give a :class:`Reason`,
never an exception and never an invented number. numpy and scipy are imported only when something is computed.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a statistic does not exist for these samples."""

    NO_SAMPLES = "no_samples"
    TOO_FEW_SAMPLES = "too_few_samples"
    NOT_POSITIVE = "not_positive"
    NOT_FINITE = "not_finite"
    NO_EVENTS = "no_events"
