"""Numbers of a single run, against numbers made by hand."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from edgesim.results.finished_run import FinishedRun
from reports.run_data.statistics.metrics import LOSS
from reports.run_data.statistics.run_totals import cost_to_target, final, rho_mean

NAN = float("nan")


def test_first_evaluated_round_at_the_target(scheme_of):
    run = scheme_of(latency_s=(0.01, 0.02, 0.03, 0.04), accuracy=(0.1, 0.8, 0.7, 0.9)).first
    hit = cost_to_target(run, 0.8)
    assert (hit.rounds, hit.time_s, hit.bits, hit.energy_j) == (
        2,
        approx(0.03),
        approx(60e6),
        approx(1.0),
    )
    assert cost_to_target(run, 0.85).time_s == approx(0.1)
    assert cost_to_target(run, 0.91) is None
    # what rounding leaves of six devices with 80 %
    run.rounds["accuracy"] = [0.1, 0.7999999999999999, 0.7, 0.9]
    assert cost_to_target(run, 0.8) == hit


def test_a_round_without_evaluation_reaches_nothing(scheme_of):
    run = scheme_of(accuracy=(NAN, NAN, 0.85, 0.8)).first
    assert cost_to_target(run, 0.8).rounds == 3
    assert final(run, "accuracy") == 0.8


def test_real_targets_have_a_final_loss_without_an_accuracy(scheme_of):
    scheme = scheme_of(accuracy=(0.5, NAN, 0.8, NAN))  # the loss is 1 less the accuracy
    scheme.first.rounds["accuracy"] = NAN
    assert math.isnan(final(scheme.first, "accuracy"))
    assert LOSS.of(scheme.first) == approx(0.2)


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.just(NAN), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_higher_target_is_never_cheaper(accuracy, one, other):
    rounds = pd.DataFrame({"round": range(len(accuracy)), "accuracy": accuracy}).assign(
        bits_up=1.0, bits_down=2.0
    )
    rounds = rounds.assign(time_s=rounds["round"] + 1.0, energy_j=0.5)
    run = FinishedRun(None, {}, {}, "", rounds, *[None] * 6)
    low, high = (cost_to_target(run, target) for target in sorted((one, other)))
    assert high is None or (low.rounds <= high.rounds and low.bits <= high.bits)
    assert (low is None) == (not any(value >= min(one, other) for value in accuracy))


def test_ratio_is_the_mean_over_devices_that_took_part(scheme_of):
    run = scheme_of(rho=(0.0, 0.6)).first
    run.device_rounds.loc[run.device_rounds["device"] == 0, "status"] = "infeasible"
    assert rho_mean(run) == approx(0.6)
