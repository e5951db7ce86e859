"""Plans that count with the interference of the last round: by hand, and round by round."""

import numpy as np
import pytest

from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.measured import MeasuredInterference


def test_the_mean_is_over_the_time_in_which_somebody_sends_to_the_sector():
    """Sector 0: 4 for 1 s and 1 for 2 s; sector 1: 6 for 2 s; nobody sends to sector 2."""
    met = MeasuredInterference(3)
    met.begin_round(10.0)
    assert np.isnan(met.mean(10.0)).all()
    met.change(np.array([4.0, 9.0, 9.0]), np.array([True, False, False]), 11.0)
    met.change(np.array([1.0, 6.0, 9.0]), np.array([True, True, False]), 12.0)
    assert met.mean(13.0)[:2].tolist() == [2.5, 6.0]
    met.change(np.full(3, 9.0), np.zeros(3, dtype=bool), 14.0)
    for now_s in (14.0, 20.0):
        assert met.mean(now_s)[:2].tolist() == [2.0, 6.0] and np.isnan(met.mean(now_s)[2])
    again = MeasuredInterference(3)
    again.restore(met.arrays(20.0))
    assert again.mean(25.0)[:2].tolist() == [2.0, 6.0] and np.isnan(again.mean(25.0)[2])
    again.begin_round(25.0)
    assert np.isnan(again.mean(25.0)).all()
    with pytest.raises(ValueError, match="cannot reshape"):  # a checkpoint that no run wrote
        MeasuredInterference(2).restore(met.arrays(20.0))


def following(played):
    """The plan of the round after those that were played, of all devices."""
    from tests.edgesim.conftest import TimingMethod

    view = played.cell.view(len(played.log.table("rounds")))
    return played.cell.plan(TimingMethod().demand(None, view, view.idle), view)


def uploads(played):
    """(start, end) of the uploads of the last round [K], s."""
    spans = played.log.table("spans")
    last = spans[(spans.phase == "upload") & (spans["round"] == spans["round"].max())]
    return last.sort_values("device")[["start_s", "end_s"]].to_numpy()


@pytest.mark.parametrize("rounds", [1, 2])
def test_two_sectors_by_hand(network, rounds):
    """2e-19 W/Hz, for the part of the own upload in which the other one is under way."""
    two = Couplings([[1e-10, 1e-11], [1e-11, 1e-10]], [0, 1])
    about = {"bandwidth_hz": 10e6, "budget_s": 0.2, "rounds": range(rounds)}
    played = network.play(two, planned="measured", **about)
    (start_0, end_0), (start_1, end_1) = uploads(played)
    both_s = min(end_0, end_1) - max(start_0, start_1)
    part = both_s / np.array([end_0 - start_0, end_1 - start_1])
    assert (part > 0.1).all() and part.min() < 0.99
    assert following(played).density == pytest.approx(2e-19 * part, rel=1e-9, abs=0.0)
    noise = played.cell.channel.noise_w_per_hz
    seen_bps = 10e6 * np.log2(1 + 0.2 * 1e-10 / 10e6 / (noise + 2e-19 * part))
    assert played.cell.view(rounds).rate_bps == pytest.approx(seen_bps, rel=1e-9)
    if rounds == 1:  # the first round is planned as if both sent all the time
        full = network.play(two, planned="full", **about)
        assert played.log.table("device_rounds").equals(full.log.table("device_rounds"))


def test_a_sector_that_met_nothing_counts_with_everybody(network):
    """The devices of sector 1 have nothing that may be sent in time, and stay silent."""
    gain = [[1e-10, 1e-12, 1e-11], [1e-30, 1e-30, 1e-30], [1e-11, 1e-12, 1e-10]]
    played = network.play(Couplings(gain, [0, 1, 2]), planned="measured", budget_s=0.5)
    full = network.play(Couplings(gain, [0, 1, 2]), planned="full", budget_s=0.5)
    plans = following(played), following(full)
    assert plans[0].density[1] == pytest.approx(plans[1].density[1], rel=1e-12, abs=0.0)
    assert (plans[0].density[[0, 2]] < plans[1].density[[0, 2]]).all()


@pytest.mark.parametrize("heard", ["full", "events"])
def test_later_rounds_prune_less_where_less_is_heard_than_everybody(network, heard):
    """Where everybody is heard all the time nothing else is measured."""
    played, full = (
        network.play(network.gains(3), heard, planned, budget_s=0.3, rounds=range(2))
        for planned in ("measured", "full")
    )
    rho = [each.log.table("device_rounds").groupby("round").rho.sum() for each in (played, full)]
    assert rho[0][0] == rho[1][0]
    if heard == "full":
        assert rho[0][1] == pytest.approx(rho[1][1], rel=1e-12)
    else:
        assert rho[0][1] < rho[1][1] - 0.02
