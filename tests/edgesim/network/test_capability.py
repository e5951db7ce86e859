"""Capability z_k and model budget gamma_k: drawn once or every round; time, energy, plan follow
the clock z_k f_k.
"""

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.device import capability_by_round, draw_fleet
from edgesim.runs.run import feasibility, simulate
from edgesim.runs.setup import set_up
from edgesim.scenario.loader import load
from edgesim.seeds import Seeds
from fl.contracts import Work
from tests.edgesim.network.fleets import make_fleet

LEVELS = (1, 0.5, 0.25, 0.125, 0.0625)  # FedLPS, Section V: {1, 1/2, 1/4, 1/8, 1/16}
FILES = ("rounds.csv", "device_rounds.parquet", "spans.parquet")
TEXT = """\
name: cell
rounds: 4
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
  - count: 5
    tx_power: 28 dBm
    cpu: {frequency: 2 GHz, cycles_per_weight: 5}
    capability: {choice: [1, 0.5, 0.25, 0.125, 0.0625]}
    model_budget: 0.25
learning:
  dataset: digits
  partition: {kind: iid}
  model: mlp
  batch_size: 20
  method: {name: fedavg, local_steps: 1}
allocation: {solver: equal}
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "cell.yaml").write_text(TEXT)
    return tmp_path / "cell.yaml"


def drawn(path, *changes, seed=0):
    """(the fleet, g -> its capabilities) of the scenario with ``changes``."""
    classes, seeds = load(path, changes).devices, Seeds(seed)
    devices = draw_fleet(classes, seeds)
    return devices, capability_by_round(classes, devices, seeds)


EVERY_ROUND = "devices.1.capability_drawn=round"


def test_without_the_keys_a_device_gives_all_and_holds_all(path):
    devices, _ = drawn(path)
    assert devices.capability[:3].tolist() == devices.model_budget[:3].tolist() == [1.0] * 3
    assert devices.model_budget[3:].tolist() == [0.25] * 5
    assert set(devices.capability[3:]) <= set(LEVELS)


def test_drawn_for_the_run_it_stays_and_drawn_every_round_it_changes(path):
    devices, z = drawn(path)
    assert all((z(g) == devices.capability).all() for g in range(5))
    moving, z = drawn(path, EVERY_ROUND)
    assert (z(0) == moving.capability).all()  # what devices.csv shows
    assert (z(0)[3:] != devices.capability[3:]).any()  # a stream of its own
    assert len({tuple(z(g)) for g in range(20)}) > 15
    assert all((z(g)[:3] == 1.0).all() for g in range(20))
    assert (z(7) == drawn(path, EVERY_ROUND)[1](7)).all()  # whatever was drawn before
    assert z(7) is z(7)  # drawn once, however often hot devices ask
    assert (z(7) != drawn(path, EVERY_ROUND, seed=1)[1](7)).any()


def test_all_levels_are_equally_likely_in_every_round(path):
    _, z = drawn(path, EVERY_ROUND, "devices.1.count=4000")
    for g in (0, 3):
        counts = [int((z(g)[3:] == level).sum()) for level in LEVELS]
        assert sum(counts) == 4000
        assert min(counts) > 800 - 4 * np.sqrt(4000 * 0.2 * 0.8)  # 4 standard deviations


@given(st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_a_device_added_at_the_end_moves_nobodys_level(tmp_path_factory, count, g):
    file = tmp_path_factory.getbasetemp() / "grow.yaml"
    file.write_text(TEXT)
    few, more = (drawn(file, EVERY_ROUND, f"devices.1.count={n}")[1](g) for n in (count, count + 1))
    assert (more[:-1] == few).all()


def test_times_of_the_papers_device():
    """FedLPS, Section VI-B: the dense MNIST round of 2788.128 MFLOP at 744,448 MFLOP/s: 3.75 ms at
    z = 1, 59.9 ms at 1/16.
    """
    device = make_fleet(0.5, 744_448e6, flops_per_cycle=1, capability=LEVELS)
    view_hz = device.cpu_hz * device.capability
    seconds = device.seconds(np.arange(5), Work(0.0, 2788.128e6), view_hz)
    assert seconds[[0, 4]] * 1e3 == pytest.approx([3.75, 59.9], rel=2e-3)
    assert seconds / seconds[0] == pytest.approx([1, 2, 4, 8, 16], rel=1e-15)


@pytest.mark.parametrize("clock", ["synchronous", "deadline"])
def test_half_of_twice_the_clock_is_the_clock(engine, tmp_path, clock):
    """Byte for byte: 2 f and z = 1/2 are exact in binary."""
    world = {
        "tx_power_w": 0.63,
        "cycles_per_weight": 5,
        "failure_rate_hz": 15.0,
        "idle_power_w": 0.1,
    }
    whole = make_fleet(cpu_hz=[1e9, 2e9, 4e8], **world)
    half = make_fleet(cpu_hz=[2e9, 4e9, 8e8], capability=0.5, **world)
    for devices, name in ((whole, "whole"), (half, "half")):
        played = engine.play(devices, 1e-10, clock=clock, coherence_s=3e-3, rounds=range(4))
        played.log.write_tables(tmp_path / name)
    for file in FILES:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "half" / file).read_bytes()


def test_the_view_says_what_the_server_knows(engine):
    devices = make_fleet(
        0.63, [1e9, 3e9], cycles_per_weight=5, capability=[1.0, 0.25], model_budget=[1.0, 1 / 16]
    )
    view = engine.play(devices, 1e-10).cell.view(0)
    assert view.capability.tolist() == [1.0, 0.25]
    assert view.cpu_hz.tolist() == [1e9, 0.75e9]
    assert view.model_budget.tolist() == [1.0, 1 / 16]


def test_energy_by_hand(engine):
    """1e6 weight steps x 5 cycles at z f = 1e9: 5 ms, and kappa (z f)^2 = 1e-10 J a cycle: 0.5
    mJ.
    """
    method = engine.method(
        personal_weights=0,
        warmup_steps=0,
        global_weights=1e5,
        global_steps=10,
        rho_bounds=(0.0, 0.0),
    )
    devices = make_fleet(0.2, 4e9, cycles_per_weight=5, capacitance=1e-28, capability=0.25)
    spans = (
        engine.play(devices, 1.0, method, solver="equal", budget_s=1.0)
        .log.table("spans")
        .set_index("phase")
    )
    assert spans.energy_j["global"] == pytest.approx(5e-4, rel=1e-12)
    assert (spans.end_s - spans.start_s)["global"] == pytest.approx(5e-3, rel=1e-12)


def test_the_plan_knows_the_clock_of_its_round(engine):
    """Drawn anew every round: whoever is pruned is back at exactly the threshold, in every round."""  # noqa: E501
    levels = np.array([[1.0, 0.5, 0.8], [0.4, 1.0, 0.6], [0.7, 0.7, 0.35]])
    devices = make_fleet(0.63, 3e9, cycles_per_weight=[5, 5, 5])
    played = engine.play(
        devices, 1e-10, rounds=range(3), capability=levels.__getitem__, bandwidth_hz=1e8
    )
    rows = played.log.table("device_rounds")
    assert rows.finish_s.to_numpy() == pytest.approx(np.full(9, 0.025), rel=1e-9)
    assert ((rows.rho > 0) & (rows.rho < 1)).sum() == 8  # one is so fast that it keeps all
    seconds = (5 * 5e4 + 4e5 + (1 - rows.rho) * 5 * 4e5) * 5 / (3e9 * levels.ravel())
    assert rows.compute_s.to_numpy() == pytest.approx(seconds.to_numpy(), rel=1e-9)


def test_who_gives_too_little_is_left_out_in_that_round_only(engine):
    """0.65e6 weight steps x 5 / 3e9 Hz = 1.08 ms are unprunable: at z = 0.04 they take 27 ms of
    25 ms.
    """
    levels = np.array([[1.0, 0.04], [1.0, 1.0]])
    devices = make_fleet(0.63, [3e9, 3e9], cycles_per_weight=5)
    rows = engine.play(devices, 1e-10, rounds=range(2), capability=levels.__getitem__).log.table(
        "device_rounds"
    )
    assert rows.status.tolist() == ["arrived", "infeasible", "arrived", "arrived"]


def test_a_resumed_run_draws_the_same_levels(engine, tmp_path):
    seeds = Seeds(3)
    world = {
        "fleet": make_fleet(0.63, [2e9, 3e9, 4e9], cycles_per_weight=5),
        "path_gain": 1e-10,
        "capability": lambda g: seeds.stream("devices/0/capability", round=g).uniform(0.3, 1.0, 3),
    }
    engine.play(**world, rounds=range(6)).log.write_tables(tmp_path / "whole")
    before = engine.play(**world, rounds=range(2))
    begin = {
        "log": before.log,
        "state": before.state,
        "start_s": before.log.columns("rounds")["time_s"][-1],
    }
    engine.play(**world, rounds=range(2, 6), **begin).log.write_tables(tmp_path / "resumed")
    for file in FILES:
        assert (tmp_path / "whole" / file).read_bytes() == (
            tmp_path / "resumed" / file
        ).read_bytes()


@pytest.mark.slow
def test_a_whole_run_computes_with_the_levels_of_each_round(path, tmp_path):
    """compute_s x z_k f_k is the same for everybody in every round; devices.csv has the levels of
    round 0.
    """
    scenario = load(path, [EVERY_ROUND])
    run = simulate(scenario, out=tmp_path / "out")
    setup = set_up(scenario)
    z = capability_by_round(scenario.devices, setup.fleet, setup.seeds)
    levels = np.stack([z(g) for g in range(4)])
    rows = run.device_rounds
    cycles = rows.compute_s.to_numpy().reshape(4, 8) * levels * setup.fleet.cpu_hz
    assert cycles == pytest.approx(np.full((4, 8), rows.cycles[0]), rel=1e-9)
    assert len({tuple(row) for row in levels}) == 4
    lines = [line.split(",") for line in (run.folder / "devices.csv").read_text().splitlines()]
    columns = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
    assert columns["capability"] == tuple(map(repr, levels[0].tolist()))
    assert columns["cpu_hz"] == tuple(map(repr, [3e9] * 3 + [2e9] * 5))
    assert columns["model_budget"] == tuple(["1.0"] * 3 + ["0.25"] * 5)


def test_check_shows_the_clock_of_round_0(path):
    whole = feasibility(load(path, ["devices.1.capability=1"]))
    scaled = feasibility(load(path))
    setup = set_up(load(path))
    times = np.array([[row["stages"]["train"] for row in table.rows] for table in (whole, scaled)])
    assert times[0] / times[1] == pytest.approx(setup.fleet.capability, rel=1e-12)
    assert (scaled.rows[7]["planned_ms"] > whole.rows[7]["planned_ms"]) == (
        setup.fleet.capability[7] < 1
    )
    moving = feasibility(load(path, [EVERY_ROUND]))
    cell = set_up(load(path, [EVERY_ROUND])).cell(simpy.Environment())
    now = np.array([row["stages"]["train"] for row in moving.rows])
    assert times[0] / now == pytest.approx(cell.view(0).capability, rel=1e-12)
    assert "round 0" in moving.note and "round 0" not in scaled.note


def test_check_charges_the_submodel_of_each_device(path):
    """A device that holds a quarter of the model gets half of the units (HeteroFL), and less than
    half of the work.
    """
    quarter = "devices.1.model_budget=0.25"
    method = "learning.method={name: heterofl, local_steps: 1}"
    rows = feasibility(load(path, [method, quarter, "devices.1.capability=1"])).rows
    cycles = np.array([row["stages"]["train"] for row in rows]) * ([3e9] * 3 + [2e9] * 5)
    assert cycles[:3] == pytest.approx(np.full(3, cycles[0]))
    assert (cycles[3:] < 0.51 * cycles[0]).all()
    assert all(row["planned_ms"] > row["stages"]["train"] for row in rows)


def test_classes_in_a_row_share_capacities_out_by_index(path):
    """FedMAP: capacities in equal shares by client index are device classes one after the other."""
    one = (
        "{count: 2, tx_power: 1 W, cpu: {frequency: 1 GHz, cycles_per_weight: 5}, model_budget: %s}"
    )
    classes = "[" + ", ".join(one % budget for budget in (1, 0.25, 0.0625, 0.015625)) + "]"
    expected = [1, 1, 1 / 4, 1 / 4, 1 / 16, 1 / 16, 1 / 64, 1 / 64]
    assert drawn(path, f"devices={classes}")[0].model_budget.tolist() == expected
    listed = "devices.1.model_budget=[1, 1, 0.25, 0.0625, 0.015625]"
    assert drawn(path, listed)[0].model_budget[3:].tolist() == [1, 1, 1 / 4, 1 / 16, 1 / 64]
