"""Clocks of a processor with levels: rounded up, and just in time."""

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.network.hardware.clock_levels import ClockLevels

LEVELS = ClockLevels(
    np.array([[6e8, 1.2e9, 2e9], [1e9, 3e9, np.inf], [np.inf] * 3]), np.array([False, True, False])
)
CELL = """
name: levels
rounds: 2
network: {bandwidth: 40 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices:
  - count: 3
    tx_power: 23 dBm
    cpu:
      {frequency: 2 GHz, levels: [500 MHz, 1.2 GHz, 2 GHz], cycles_per_weight: 400,
       static_power: 10 mW, governor: GOVERNOR}
  - {count: 1, tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 400}}
budget: {latency_threshold: 1 s}
allocation: {solver: equal}
learning: {dataset: none, model: liu-cnn, batch_size: 32, method: {name: fedavg}}
"""


def test_a_clock_is_rounded_up_to_a_level():
    asked = np.array([5e8, 2.1e9, 1.234e9])
    everybody = np.arange(3)
    assert LEVELS.rounded_up(everybody, asked, np.ones(3)).tolist() == [6e8, 3e9, 1.234e9]
    # A clock that is a level but for rounding is that level, also of half a processor.
    asked = np.array([6e8 * (1 + 1e-12), 1.5e9, 1.0])
    found = LEVELS.rounded_up(everybody, asked, np.array([1.0, 0.5, 1.0]))
    assert found.tolist() == [6e8, 1.5e9, 1.0]


def test_just_in_time_by_hand():
    """1e9 cycles at 2 GHz and half a second to spare: one second at 1 GHz; others keep theirs."""
    clocks, cycles = np.full(2, 2e9), np.full(2, 1e9)
    found = LEVELS.just_in_time(np.array([0, 1]), clocks, cycles, np.array([0.5, 0.5]))
    assert found.tolist() == [2e9, 1e9]
    for spare_s in (-0.1, np.inf):  # late already, or no threshold
        late = LEVELS.just_in_time(np.array([1]), clocks[:1], cycles[:1], np.array([spare_s]))
        assert late.tolist() == [2e9]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place, found = tmp_path_factory.mktemp("levels") / "levels.yaml", {}
    for governor in ("performance", "powersave", "deadline"):
        place.write_text(CELL.replace("GOVERNOR", governor))
        found[governor] = simulate(load(place)).device_rounds
    return found


def test_governors_trade_time_for_joules(runs):
    """The cycles are the same; powersave takes four times as long as performance, and deadline
    the least level that is in time, so that it saves joules and is never late.
    """
    clock = {
        name: (rows["cycles"] / rows["compute_s"])[rows["device"] == 0].to_numpy()
        for name, rows in runs.items()
    }
    assert clock["performance"] == pytest.approx(2e9)
    assert clock["powersave"] == pytest.approx(5e8)
    assert clock["deadline"] == pytest.approx(1.2e9)
    joules = {name: rows["energy_j"][rows["device"] == 0].sum() for name, rows in runs.items()}
    assert joules["powersave"] < joules["deadline"] < joules["performance"]
    assert (runs["deadline"]["status"] == "arrived").all()
    assert (runs["powersave"]["status"][runs["powersave"]["device"] == 0] == "late").all()
    for rows in runs.values():  # without levels: the whole clock
        last = rows[rows["device"] == 3]
        assert (last["cycles"] / last["compute_s"]).to_numpy() == pytest.approx(2e9)


def test_joules_of_a_processor_with_static_power(runs):
    """kappa f^2 a cycle, 10 mW while computing, and 200 mW while sending."""
    rows = runs["performance"][runs["performance"]["device"] == 0]
    expected = 1e-28 * 4e18 * rows["cycles"] + 0.01 * rows["compute_s"]
    expected += 10**-0.7 * rows["upload_s"]
    assert rows["energy_j"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-12)


def test_the_solver_energy_gets_a_level(tmp_path):
    """Rounding its clock up keeps every upload in time."""
    text = CELL.replace("governor: GOVERNOR", "governor: performance")
    text = text.replace("static_power: 10 mW, ", "").replace("solver: equal", "solver: energy")
    (tmp_path / "energy.yaml").write_text(text)
    rows = simulate(load(tmp_path / "energy.yaml")).device_rounds
    own = rows[rows["device"] < 3]
    clock_hz = np.round((own["cycles"] / own["compute_s"]).to_numpy(), -3)
    assert set(clock_hz) <= {5e8, 1.2e9, 2e9}
    assert clock_hz.min() < 2e9
    assert (rows["status"] == "arrived").all()
