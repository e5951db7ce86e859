"""More band, more power and lower thresholds of schemes slow no device of a single cell."""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.adaptation.link_adaptation import make_law, schemes
from edgesim.network.channel import Channel
from edgesim.network.fading.processes import BlockFading
from edgesim.network.tdd_service import ALWAYS, TddService
from edgesim.network.uplink import Uplink
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.seeds import Seeds
from fl.contracts import Grant
from solvers.rate_laws.efficiency_laws import HullLaw

DENSITY = 10.0**-19.9
LAWS = {
    "shannon": None,
    "mcs": make_law(AdaptationSection(rate="mcs")),
    "truncated": make_law(AdaptationSection(rate="truncated")),
    "errors": make_law(AdaptationSection(rate="mcs", errors="expected")),
}
GAINS = st.floats(-15.0, -8.0).map(lambda exponent: 10.0**exponent)
MORE = st.floats(1.0, 30.0)


def rate_bps(law, gain, share, band_hz=10e6, power_w=0.2, **noise):
    noise = noise or {"noise_w_per_hz": DENSITY}
    channel = Channel(band_hz, np.array([gain]), law=law, **noise)
    return float(channel.rate_bps(np.array([share]), np.array([power_w]), np.array([gain]))[0])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@settings(max_examples=60)
@given(gain=GAINS, share=st.floats(1e-3, 1.0), more=MORE)
def test_more_band_and_more_power_never_lower_a_rate(law, gain, share, more):
    least = rate_bps(law, gain, share) * (1 - 1e-12)
    assert least <= rate_bps(law, gain, share, power_w=0.2 * more)
    assert least <= rate_bps(law, gain, share, band_hz=10e6 * more)
    assert least <= rate_bps(law, gain, min(1.0, share * more))
    if law is None:
        fixed = {"noise_w": 1e-13}
        least = rate_bps(law, gain, share, **fixed) * (1 - 1e-12)
        assert least <= rate_bps(law, gain, share, power_w=0.2 * more, **fixed)
        assert least <= rate_bps(law, gain, share, band_hz=10e6 * more, **fixed)


@pytest.mark.parametrize("table", ["64qam", "256qam"])
@settings(max_examples=60)
@given(gain=GAINS, share=st.floats(1e-3, 1.0), data=st.data())
def test_lower_thresholds_never_lower_a_rate(table, gain, share, data):
    """Of some schemes, by up to 3 dB, in an order that stays."""
    snr, bits = schemes(table)
    down_db = data.draw(st.lists(st.floats(0.0, 3.0), min_size=len(snr), max_size=len(snr)))
    lower = np.maximum.accumulate(snr * 10.0 ** (-np.array(down_db) / 10.0))
    lower = lower * (1.0 + 1e-13 * np.arange(len(snr)))  # increasing, for equal ones
    easier = rate_bps(HullLaw(lower, bits), gain, share)
    assert rate_bps(HullLaw(snr, bits), gain, share) <= easier * (1 + 1e-9)


def ends(law, gains, share="fixed", band_hz=10e6, power_w=0.2, **options):
    """When 1 to 3 Mbit of each device have arrived, all from the start, s."""
    env, done = simpy.Environment(), {}
    channel = Channel(band_hz, np.array(gains), noise_w_per_hz=DENSITY, law=law, **options)
    uplink = Uplink(env, channel, share)
    grants = [Grant(k, 1.0 / len(gains), 0.0, 1e9, power_w) for k in range(len(gains))]
    uplink.begin_round(grants)

    def one(grant):
        yield from uplink.carry(1e6 * (1 + grant.device % 3), grant, None)
        done[grant.device] = env.now

    for grant in grants:
        env.process(one(grant))
    env.run()
    return np.array([done[k] for k in range(len(gains))])


@settings(max_examples=12)
@given(
    st.sampled_from(list(LAWS)),
    st.lists(st.floats(-12.0, -9.0), min_size=1, max_size=3),
    st.sampled_from(["still", "fading", "slots"]),
    MORE,
)
def test_uploads_end_no_later_with_more_of_either(name, exponents, kind, more):
    gains, law = [10.0**each for each in exponents], LAWS[name]
    if kind == "slots":
        options = {"air_times": (TddService(2.5e-3, 1.9e-3, 2.5e-3), ALWAYS)}
    else:
        fading = BlockFading(Seeds(1), len(gains), 5e-3) if kind == "fading" else None
        options = {"fading": fading}
    before = ends(law, gains, **options) * (1 + 1e-9)
    assert (ends(law, gains, power_w=0.2 * more, **options) <= before).all()
    assert (ends(law, gains, band_hz=10e6 * more, **options) <= before).all()
