"""Other programs on the processor: their stationary work, and that they are a function of time."""

import math

import numpy as np
import pytest

from edgesim.network.hardware.background_load import BackgroundLoad
from edgesim.seeds import Seeds


def load(device=0, seed=1):
    return BackgroundLoad(0.2, 0.5, 0.4, Seeds(seed), device)


def work_s(chain, seconds):
    """Share of the processor, integrated over time."""
    time_s, done = 0.0, 0.0
    while time_s < seconds:
        until_s = min(chain.next_switch_s(time_s), seconds)
        done += chain.share(time_s) * (until_s - time_s)
        time_s = until_s
    return done


@pytest.mark.slow
def test_mean_and_standard_deviation_of_the_work_of_ten_seconds():
    """lambda .2, mu .5, s .4: mean .828571 f t, standard deviation .134146 f t."""
    assert load().mean_share == pytest.approx(0.828571, abs=5e-7)
    count = 4000
    done = np.array([work_s(load(k), 10.0) for k in range(count)]) / 10.0
    assert done.mean() == pytest.approx(0.828571, abs=4 * 0.134146 / math.sqrt(count))
    assert done.std() == pytest.approx(0.134146, rel=0.05)


def test_the_load_is_a_function_of_time_whatever_was_asked_before():
    forwards, backwards = load(), load()
    times = np.linspace(0.0, 2000.0, 301).tolist()
    late_first = [backwards.share(t) for t in reversed(times)][::-1]
    assert [forwards.share(t) for t in times] == late_first


def test_the_share_changes_at_a_switch_and_nowhere_else():
    chain, time_s = load(), 0.0
    for _ in range(200):
        share, switch_s = chain.share(time_s), chain.next_switch_s(time_s)
        assert chain.share(math.nextafter(switch_s, 0.0)) == share
        assert {share, chain.share(switch_s)} == {0.4, 1.0}
        time_s = switch_s


def test_changes_per_second():
    chain = load()
    count, time_s = 0, 0.0
    while (time_s := chain.next_switch_s(time_s)) < 20_000.0:
        count += 1
    cycle_s = 1.0 / chain.to_busy_hz + 1.0 / chain.to_idle_hz
    assert count / 20_000.0 == pytest.approx(2.0 / cycle_s, rel=0.05)
