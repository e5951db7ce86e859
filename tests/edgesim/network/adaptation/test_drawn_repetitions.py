"""Drawn repetitions agree with what is expected of them, and runs use them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import simpy

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.adaptation.block_errors import Harq, RepeatedSchemes
from edgesim.network.adaptation.drawn_repetitions import DrawnRepetitions
from edgesim.network.adaptation.link_adaptation import make_repetitions, schemes
from edgesim.network.channel import Channel
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.uplink import Uplink
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Grant
from solvers.rate_laws.efficiency_laws import HullLaw

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
STATIC = ["~schemes", "allocation={solver: kkt}", "rounds=2", "network.channel.fading=none"]
STATIC += ["devices.0.count=5", "budget.latency_threshold=1 s"]
BLOCK_S = 1e-3


def test_drawn_and_expected_agree_in_mean_upload_time():
    """1,000 uploads of about 1,000 blocks at 4.2 dB, where a tenth is lost, within 0.5 %."""
    schemes_64 = RepeatedSchemes(*schemes("64qam"), Harq())
    drawn = DrawnRepetitions(schemes_64, Seeds(1), BLOCK_S)
    se = float(schemes_64.bits[schemes_64.best(4.2)])
    used_hz = 1e6
    bits = 1000 * used_hz * 14 / 15 * BLOCK_S * se
    factors, tails = np.transpose(
        [drawn.draw(0, k * 0.01, 10**0.42, used_hz, bits) for k in range(1000)]
    )
    assert (1.0 / factors).mean() == pytest.approx(1.0, abs=5e-3)
    assert 1e-3 < (1.0 / factors).std() < 0.03
    assert set(np.round(tails / 4e-3)) <= {0.0, 1.0, 2.0, 3.0}
    assert drawn.draw(0, 0.01, 10**0.42, used_hz, bits) == (factors[1], tails[1])


def test_a_variance_that_rounding_makes_negative_counts_as_none():
    """Far below the first scheme each block takes all M transmissions."""
    drawn = DrawnRepetitions(RepeatedSchemes(*schemes("64qam"), Harq()), Seeds(1), BLOCK_S)
    first_db = drawn.schemes.half_db[0]
    above_db = np.random.default_rng(0).uniform(-9.0, -8.0, 400)
    lost = drawn.schemes.harq.lost(above_db, 0.0)
    below = above_db[drawn.schemes.harq.transmissions(lost)[1] < 0.0]
    assert below.size
    for each in below:
        snr = 10.0 ** ((first_db + each) / 10.0)
        factor, _ = drawn.draw(
            0, 0.0, snr, 1e6, 1e6, snr
        )  # with the whole share, as by an estimate
        assert factor == pytest.approx(1.0, abs=0.2)


def test_below_the_first_corner_blocks_are_lost_as_at_it():
    """Plans use a part of the share there; every upload had M - 1 round trips and a status delay,
    32 ms with these."""
    drawn = DrawnRepetitions(
        RepeatedSchemes(*schemes("64qam"), Harq()), Seeds(1), 5e-4, 4e-3, 0.0, 0.02
    )
    law = HullLaw(*drawn.schemes.curve())
    low, corner = law.least / 4.0, law.least
    found = [drawn.draw(0, 0.01 * k, low, 1e6, 1e5) for k in range(50)]
    assert found == [drawn.draw(0, 0.01 * k, corner, 0.25e6, 1e5) for k in range(50)]
    assert np.mean([tail_s for _, tail_s in found]) < 0.012
    assert float(law.efficiency(np.array([low]))[0]) == pytest.approx(
        0.25 * float(law.efficiency(np.array([corner]))[0])
    )


@pytest.mark.parametrize(("layers", "larger"), [(1, 1.0), (4, 4.0), (6, 3.0), (8, 4.0)])
def test_a_block_has_the_bits_of_up_to_four_layers(layers, larger):
    """So many layers more are so many blocks fewer, whose mean varies more."""
    several, one = (
        DrawnRepetitions(RepeatedSchemes(*schemes("64qam"), Harq()), Seeds(1), layers=n)
        for n in (layers, 1)
    )
    snr, bits = 10**0.42, 1e6
    assert several.draw(0, 0.0, snr, 1e6, bits) == one.draw(0, 0.0, snr, 1e6, bits / larger)
    assert several.draw(0, 0.0, snr, 1e6, bits) != one.draw(0, 0.0, snr, 1e6, 1.5 * bits / larger)


@pytest.mark.parametrize("several_cells", [False, True], ids=["cell", "network"])
def test_an_upload_with_the_band_of_those_who_are_done_is_drawn_as_one_that_was_granted_it(
    several_cells,
):
    """At the ratio within the share that it has; a quarter of the band had 4 times that ratio."""

    def end_s(share_rule, grants, done=()):
        env, repeated = simpy.Environment(), RepeatedSchemes(*schemes("64qam"), Harq())
        about = {"bandwidth_hz": 1e6, "noise_w_per_hz": 1e-20, "law": HullLaw(*repeated.curve())}
        draws = {"share": share_rule, "repetitions": DrawnRepetitions(repeated, Seeds(1))}
        if several_cells:
            couplings = Couplings([[2e-13], [2e-13]], [0, 0])
            channel = SectorChannel(couplings, **about)
            link = NetworkUplink(env, channel, couplings, **draws)
        else:
            link = Uplink(env, Channel(path_gain=[2e-13, 2e-13], **about), **draws)
        link.begin_round(grants)
        for device in done:
            link.release(device)
        env.run(env.process(link.carry(1e5, grants[-1])))
        return env.now

    whole = Grant(1, 1.0, 0.0, 1e9, 0.14)
    part = [Grant(0, 0.75, 0.0, 1e9, 0.14), replace(whole, share=0.25)]
    assert end_s("reclaim", part, done=[0]) == pytest.approx(end_s("fixed", [whole]), rel=1e-12)


def test_layers_of_the_carrier_reach_the_blocks():
    carrier = [
        "~network.bandwidth",
        "network.carrier={frequency: 3.5 GHz, bandwidth: 20 MHz, layers: 4}",
    ]
    carrier += ["network.adaptation={rate: mcs, errors: drawn}"]
    network = load(FILE, [*STATIC, *carrier]).network
    assert make_repetitions(network, Seeds(0)).layers == 4


def test_a_run_plans_with_the_expectation_and_draws():
    none, expected, drawn = (
        simulate(load(FILE, [*STATIC, f"network.adaptation={{rate: mcs, errors: {errors}}}"]))
        for errors in ("none", "expected", "drawn")
    )
    assert none.summary["rho_mean"] < expected.summary["rho_mean"]
    assert expected.summary["late_share"] == 0.0
    assert drawn.summary["rho_mean"] == expected.summary["rho_mean"]  # the plan is the same
    assert not drawn.rounds.equals(expected.rounds)  # its uploads are longer and shorter


@pytest.mark.parametrize(
    ("adaptation", "part"),
    [
        ("{rate: truncated, errors: expected}", "has no blocks"),
        ("{rate: mcs, harq: {most: 2}}", "repeats no blocks"),
        ("{rate: mcs, errors: drawn, harq: {most: 0}}", "most"),
        ("{rate: mcs, errors: maybe}", "maybe"),
        ("{rate: mcs, errors: drawn, harq: {combining: soft}}", "soft"),
    ],
)
def test_what_does_not_fit_is_one_sentence(adaptation, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*STATIC, f"network.adaptation={adaptation}"])
    assert part in str(refused.value) and "\n" not in str(refused.value)
