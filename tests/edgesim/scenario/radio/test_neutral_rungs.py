"""A rung of the ladder with its additions neutral is the rung below it, to 1e-12."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import simulate
from edgesim.network.propagation.tr38901_path_loss import path_loss_db
from edgesim.scenario import load

FILE = Path(__file__).parents[4] / "scenarios" / "ladder.yaml"
TIMING = ["learning.dataset=none", "learning.partition=none", "rounds=3", "seed=2"]
X_M = [40.0 + 20.0 * k for k in range(10)]
PLACES = f"devices.0.position={{list: [{', '.join(f'[{x} m, 0 m]' for x in X_M)}]}}"
UMA = "network.channel.path_loss={model: uma, antenna_gain: 8 dB}"
LOS = "network.channel.path_loss={model: uma, los: always, antenna_gain: 0 dB}"
SITE = "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}"
NOW = "allocation.rate=now"
STATIC = "network.channel.fading=none"
SHANNON = "network.adaptation={rate: shannon, implementation_loss: 0 dB}"
# additions of a rung made neutral; what the rung below needs to be asked the same
NEUTRAL = {
    "cell": (
        [LOS, PLACES, STATIC, "network.channel.shadowing=0 dB", "network.noise=-110 dBm", NOW],
        ["network.channel.path_loss={model: constant, loss: LOSSES}", "network.bandwidth=5 MHz"],
    ),
    # 14 symbols of a slot carry data for 15 of its time: W' = 14 / 15 W without overhead
    "adapted": (
        [SHANNON, "network.carrier.overhead_up=0", "accounting.bits_per_weight=28"],
        ["accounting.bits_per_weight=30", "network.bandwidth=3.96 MHz"],
    ),
    # 15 dB above the largest scheme's least ratio a block is lost with a probability of e^-150
    "errors": ([UMA.replace("8 dB", "60 dB"), STATIC], [UMA.replace("8 dB", "60 dB"), STATIC]),
    "network": ([SITE, UMA, PLACES, "network.power_control=none"], [UMA, PLACES]),
}
BELOW = {"cell": "paper", "adapted": "cell", "errors": "adapted", "network": "errors"}
NOT_COMPARED = {"bits_up", "bits_down", "rate_bps", "transmissions"}  # by weights of 28 and 30 bit


def losses():
    found = path_loss_db("uma", True, np.array(X_M), 25.0, 1.5, 3.5)
    return f"[{', '.join(f'{loss!r} dB' for loss in found.tolist())}]"


def tables(rung, changes, label):
    changes = [change.replace("LOSSES", losses()) for change in changes]
    run = simulate(load(FILE, [f"network.fidelity={rung}", *TIMING, *changes], label=label))
    return run.rounds, run.device_rounds


@pytest.mark.parametrize("label", ["joint", "personalization only"])
@pytest.mark.parametrize("rung", BELOW)
def test_a_rung_with_neutral_additions_is_the_rung_below(rung, label):
    neutral, below = NEUTRAL[rung]
    ours, theirs = tables(rung, neutral, label), tables(BELOW[rung], below, label)
    for one, other in zip(ours, theirs, strict=True):
        shared = [name for name in one if name in set(other) - NOT_COMPARED]
        assert {"energy_j"} < set(shared) and len(one) == len(other) > 0
        for name in shared:
            if one[name].dtype.kind in "fi":
                found, wanted = one[name].to_numpy(float), other[name].to_numpy(float)
                assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12, nan_ok=True), name
            else:
                assert list(one[name]) == list(other[name]), name


@pytest.mark.parametrize("rung", BELOW)
def test_the_additions_of_a_rung_change_its_rounds(rung):
    above, below = tables(rung, [], "joint"), tables(BELOW[rung], [], "joint")
    assert not np.allclose(above[1].finish_s, below[1].finish_s, rtol=1e-6)
