"""Air time of TDD slots: closed-form finishes, and runs whose plans leave time for the gaps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.tdd_service import TddService, make_air_times
from edgesim.scenario import load
from edgesim.scenario.radio.carrier_schema import CarrierSection

FILE = Path(__file__).parents[3] / "scenarios" / "ladder.yaml"
TDD = "{frequency: 3.5 GHz, tdd: DDDSU, tdd_clock: slots, noise_figure: 5 dB}"
TIMING = ["learning.dataset=none", "learning.partition=none", "rounds=3"]
TIMING += ["network.fidelity=adapted", "network.channel.fading=none", "devices.0.count=4"]
TIMING += ["budget.latency_threshold=100 ms"]
SECTION = CarrierSection(frequency="3.5 GHz", bandwidth="20 MHz", tdd="DDDSU", tdd_clock="slots")


def test_a_millisecond_of_air_from_the_start():
    """DDDSU at 30 kHz: 4 / 7 ms of air in 2.5 ms; the second period ends it at 4.857143 ms."""
    up, down = make_air_times(SECTION)
    assert up.share == pytest.approx(16 / 70) and down.share == pytest.approx(52 / 70)
    mean_s = 1e-3 / up.share
    assert mean_s == pytest.approx(4.375e-3)
    assert up.finish_s(0.0, mean_s) == pytest.approx(4.857143e-3, abs=1e-9)
    assert down.finish_s(0.0, 1e-3 / down.share) == pytest.approx(1e-3)
    assert up.longest_gap_s == pytest.approx(2.5e-3 * 54 / 70)


def test_air_that_a_period_just_gives_ends_with_it():
    assert TddService(4.0, 2.0, 4.0).finish_s(0.0, 4.0) == 4.0
    # 4 / 7 ms in each 2.5 ms of DDDSU round: none of these ends 1.929 ms late, behind the gap
    up, _ = make_air_times(SECTION)
    for start in range(30):
        ends_s = [2.5e-3 * (start + periods) for periods in range(1, 40)]
        found_s = [up.finish_s(2.5e-3 * start, up.served_s(2.5e-3 * start, e)) for e in ends_s]
        assert found_s == pytest.approx(ends_s, abs=1e-12)


@pytest.mark.parametrize("start_s", [0.0, 1e5, 1e6, 1e7])
def test_bits_that_fill_their_slots_late_in_a_run_end_with_them(start_s):
    """In n periods of 2.5 ms n x 4 / 7 ms of air; doubles near 1e5 s are 1.5e-11 s apart.

    Behind the gap an upload would end 1.929 ms later.
    """
    up, _ = make_air_times(SECTION)
    for periods in [*range(1, 200), 4 * 10**7]:
        end_s = start_s + periods * 2.5e-3
        assert up.finish_s(start_s, periods * 2.5e-3) == pytest.approx(end_s, abs=1e-6)
    # from the middle of the first slots on: 3 / 7 ms less
    for periods in range(1, 200):
        begun_s = start_s + 2.5e-3 - 1e-3 / 7
        needed_s = (periods * 2.5e-3) - 3e-3 / 7 / up.share
        found_s = up.finish_s(begun_s, needed_s)
        assert found_s == pytest.approx(start_s + periods * 2.5e-3, abs=1e-6)


@given(start=st.floats(0, 0.1), needed=st.floats(1e-6, 0.1), begin=st.floats(0, 0.7))
def test_the_finish_serves_what_is_needed_and_no_later_than_the_gap(start, needed, begin):
    link = TddService(2.5e-3, begin * 2.5e-3, (begin + 0.3) * 2.5e-3)
    end = link.finish_s(start, needed)
    assert link.served_s(start, end) == pytest.approx(needed, rel=1e-6, abs=1e-12)
    assert end <= start + needed + link.longest_gap_s + 1e-12


@given(start=st.floats(0, 1e4), length=st.floats(0, 0.02), begin=st.sampled_from([0.0, 0.3, 0.7]))
def test_the_air_time_is_the_sum_over_the_edges(start, length, begin):
    """Of slots that end with the period (up), begin with it (down), or neither."""
    link = TddService(2.5e-3, begin * 2.5e-3, (begin + 0.3) * 2.5e-3)
    now, end, air = start, start + length, 0.0
    while now < end:
        edge = min(link.next_edge_s(now), end)
        assert edge > now
        air, now = air + link.share_at(now) * (edge - now), edge
    assert air == pytest.approx(link.air_s(start, end), abs=1e-10)
    assert 0.0 <= link.air_s(start, end) <= end - start


def test_a_static_cell_in_slots_is_never_late():
    """A plan at the mean rate would be; and it takes more pruning than the fluid."""
    slots = simulate(load(FILE, [*TIMING, f"network.carrier={TDD}"], label="joint")).summary
    fluid = TDD.replace("slots", "fluid")
    mean = simulate(load(FILE, [*TIMING, f"network.carrier={fluid}"], label="joint")).summary
    assert slots["late_share"] == 0.0 and slots["max_latency_s"] <= 0.1 * (1 + 1e-6)
    assert slots["max_latency_s"] > 0.1 - 2.5e-3
    assert slots["rho_mean"] > mean["rho_mean"]


def test_a_noise_figure_gives_the_noise_and_layers_multiply_the_rate():
    """-174 + 5 dBm/Hz over 18.36 MHz: -96.361273 dBm."""
    one, two = (
        load(FILE, [*TIMING, "network.carrier=" + text], label="joint").network
        for text in (TDD, TDD.replace("}", ", layers: 2}"))
    )
    assert one.noise.density_w_per_hz * 18.36e6 == pytest.approx(10**-12.6361273, rel=1e-8)
    shares = one.carrier.resource_shares
    assert two.carrier.resource_shares == pytest.approx([2 * each for each in shares])


@pytest.mark.parametrize(
    ("carrier", "part"),
    [
        ("{frequency: 3.5 GHz, tdd_clock: slots}", "read with tdd only"),
        ("{frequency: 3.5 GHz, layers: 0}", "layers"),
        ("{frequency: 3.5 GHz, noise_figure: -3 dB}", "noise_figure"),
        ("{frequency: 3.5 GHz, scs: 120 kHz}", "15, 30 or 60 kHz"),
        ("{frequency: 3.5 GHz, tdd: DDDSX}", "DDDSU"),
    ],
)
def test_what_does_not_fit_is_one_sentence(carrier, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*TIMING, f"network.carrier={carrier}"], label="joint")
    assert part in str(refused.value) and "\n" not in str(refused.value)


def test_a_noise_beside_another_noise_figure_is_refused():
    changes = [*TIMING, f"network.carrier={TDD}"]
    load(FILE, [*changes, "network.noise=-169 dBm/Hz"], label="joint")
    with pytest.raises(ScenarioError, match="stands beside carrier"):
        load(FILE, [*changes, "network.noise=-170 dBm/Hz"], label="joint")
