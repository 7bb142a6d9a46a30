"""Tests of the sentence that states how quiet the machine is: for a plan, and for the trials of a campaign."""

from math import exp

import pytest
from tests.unit.compared import cell, trials

from fslab.api import plans
from fslab.trial_record import TrialRecord, Value
from fslab.units import Unit


def beside(rate: float) -> TrialRecord:
    """Return a trial in which the reference loop ran at this rate."""
    (record,) = trials(cell(), [1.0])
    loop = Value(value=rate, unit=Unit.OPERATIONS_PER_SECOND)
    return record.model_copy(update={"probes": {"reference_rate": loop}})


def test_what_the_noise_costs_is_told_in_trials_and_in_time() -> None:
    assert "varies by 16 % here" in plans.trials_sentence(0.16)
    assert plans.trials_sentence(0.16).endswith("10 % takes about 45 trials of each cell")
    assert plans.trials_sentence(0.16, block_s=40).endswith("45 trials of each cell, 30 min 00 s in total")


def test_the_trials_of_a_campaign_tell_it_from_five_on_and_look_back_on_thirty() -> None:
    rates = plans.LoopRates()
    for number in range(4):
        rates.enter(beside(exp(number)))
    assert rates.words() is None
    for number in range(30):  # ± 0.1 in the logarithm; they replace the first four, which differ more
        rates.enter(beside(exp(0.1 * (-1) ** number)))
    assert "varies by 10 % here" in (rates.words() or "")


@pytest.mark.parametrize("missing", [True, False])
def test_a_trial_without_the_loop_does_not_count(missing: bool) -> None:
    rates = plans.LoopRates()
    for _ in range(5):
        record = beside(100.0)
        rates.enter(record.model_copy(update={"probes": {}}) if missing else record)
    assert (rates.words() is None) is missing
