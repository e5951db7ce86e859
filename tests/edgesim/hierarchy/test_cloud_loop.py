"""Client-edge-cloud rounds: identities with one edge, and numbers that are computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

from edgesim import load, simulate
from tests.edgesim.hierarchy.conftest import ONE, TWO

TABLES = ("rounds", "device_rounds", "spans", "scores", "measures")
EXACT = "learning.method={name: fedavg, lr: 0.2, local_steps: 1, weighting: samples}"


def same(one, two, table, columns=None):
    a, b = getattr(one, table), getattr(two, table)
    assert len(a) == len(b), table
    for column in columns or [name for name in a.columns if name in b.columns]:
        numbers = a[column].dtype == float
        assert np.array_equal(a[column], b[column], equal_nan=numbers), (table, column)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("clock.mode=deadline", "budget.latency_threshold=9 ms"),
        ("network.channel.fading={kind: rayleigh, coherence: 2 ms}", "devices.0.availability=0.7"),
        ("learning.method={name: liu, personal_lr: 0.05, global_lr: 0.05}",
         "allocation={solver: kkt}", "budget.latency_threshold=9 ms"),
    ],
    ids=["rounds", "deadline", "fading", "liu"],
)  # fmt: skip
def test_one_edge_without_backhaul_is_the_cell_alone(scenario, changes):
    star, tiers = simulate(scenario(*changes)), simulate(scenario(*changes, ONE))
    for table in TABLES:
        same(star, tiers, table)
    assert star.rounds.time_s.iloc[-1] > 0.0 and (tiers.rounds.backhaul_bits_up > 0).all()


@pytest.mark.slow
def test_rounds_of_one_edge_between_two_exchanges_are_rounds(scenario):
    star = simulate(scenario("rounds=6", "evaluate.every=3"))
    tiers = simulate(scenario(ONE, "rounds=2", "tiers.local_rounds=3"))
    assert tiers.rounds.time_s.tolist() == star.rounds.time_s[2::3].tolist()
    for column in ("loss", "accuracy"):
        assert tiers.scores[column].tolist() == star.scores[column].tolist()
    for column in ("share", "finish_s", "energy_j", "bits_up"):
        by_device = [run.device_rounds.sort_values("device", kind="stable")[column].tolist()
                     for run in (star, tiers)]  # fmt: skip
        assert by_device[0] == pytest.approx(by_device[1], rel=1e-12)
    assert tiers.device_rounds.edge_round.tolist() == [0, 1, 2] * 8


@pytest.mark.slow
def test_an_exchange_after_every_round_is_the_star(scenario):
    """With the same batches by device and weights by samples the mean of means is the mean."""
    uneven = "tiers.members=[0, 0, 0, 1]"
    star, tiers = simulate(scenario(EXACT)), simulate(scenario(EXACT, TWO, uneven))
    assert tiers.rounds.loss.to_numpy() == pytest.approx(star.rounds.loss.to_numpy(), rel=1e-5)
    rare = simulate(scenario(EXACT, TWO, "tiers.local_rounds=3"))
    assert not np.allclose(rare.rounds.loss, star.rounds.loss, rtol=1e-3)


def test_edges_wait_for_each_other_only_at_the_cloud(scenario):
    """The latency of Section 3.1: max_e(kappa_2 T_e + t_bh,e), with given durations."""
    cell = (
        "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}",
        "devices=[{count: 3, tx_power: 23 dBm, cpu: {frequency: [1 GHz, 1 GHz, 1 GHz], "
        "flops_per_cycle: 4}}]",
        "network.channel.path_loss.loss=90 dB",
        "rounds=2",
    )
    backhaul = "{links: [{between: [edge 0, cloud], delay: 150 ms}, "
    backhaul += "{between: [edge 1, cloud], delay: 50 ms}]}"
    tiers = "{edges: [{}, {bandwidth: 2 MHz}], association: list, members: [0, 0, 1], "
    tiers += f"local_rounds: 3, backhaul: {backhaul}}}"
    run = simulate(scenario(*cell, f"tiers={tiers}"))
    jobs = run.device_rounds
    longest = jobs.groupby(["round", "edge", "edge_round"]).finish_s.max()
    of_edges = longest.groupby(["round", "edge"]).sum()
    expected = [max(of_edges[g, 0] + 0.3, of_edges[g, 1] + 0.1) for g in range(2)]
    assert run.rounds.latency_s.tolist() == pytest.approx(expected, rel=1e-12)
    starts = run.spans[run.spans.phase != "idle"].groupby(["edge", "round"]).start_s.min()
    assert starts[0, 0] == 0.15 and starts[1, 0] == 0.05
    # devices of 1.0 and 1.4 s and one of 2.0 s: max(3 x 1.4 + 0.3, 3 x 2.0 + 0.1) = 6.1 s
    first = jobs.drop_duplicates("device").sort_values("device")
    clocks = first.cycles / (np.array([1.0, 1.4, 2.0]) - first.upload_s)
    frequency = ", ".join(f"{hz!r} Hz" for hz in clocks.tolist())
    run = simulate(scenario(*cell, f"tiers={tiers}", f"devices.0.cpu.frequency=[{frequency}]"))
    assert run.rounds.latency_s.tolist() == pytest.approx([6.1, 6.1], rel=1e-12)


def test_a_failing_device_delays_its_own_edge_only(scenario):
    """Device 3 of edge 1 fails at once in every round; all others do as if it worked."""
    cell = (
        "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}",
        "network.channel.path_loss.loss=90 dB",
        "devices=[{count: 3, tx_power: 23 dBm, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}, "
        "{count: 1, tx_power: 23 dBm, failure_rate: %s, "
        "cpu: {frequency: 10 MHz, flops_per_cycle: 4}}]",
        "tiers={edges: [{}, {}], association: list, members: [0, 0, 1, 1], local_rounds: 2}",
    )
    sound, failing = (
        simulate(scenario(*(each.replace("%s", rate) for each in cell)))
        for rate in ("0 Hz", "1 GHz")
    )
    rows = failing.device_rounds
    status = rows.set_index(["round", "edge_round", "device"]).status.unstack()
    assert (status[3] == "failed").all() and (status[[0, 1, 2]] == "arrived").all().all()
    assert failing.rounds.failed.tolist() == [2] * 3 and failing.rounds.arrived.tolist() == [6] * 3
    columns = ["device", "edge_round", "share", "finish_s", "energy_j", "bits_up"]
    for e in (0, 1):
        one, other = (
            run.device_rounds.query(f"edge == {e} and device != 3")[columns].to_numpy()
            for run in (sound, failing)
        )
        assert other == pytest.approx(one, rel=1e-12) and len(one) == (12, 6)[e]
    # the slow device alone had kept the cloud waiting: now the others' rounds are all there is
    slow = sound.device_rounds.query("device == 3").finish_s.max()
    others = rows.query("device != 3").finish_s.max()
    assert sound.rounds.latency_s.tolist() == pytest.approx([2 * slow] * 3)
    assert failing.rounds.latency_s.tolist() == pytest.approx([2 * others] * 3)


def test_time_and_energy_are_kept(scenario):
    backhaul = (
        "backhaul: {rate: 50 Mbit/s, down_rate: 200 Mbit/s, delay: 1 ms, energy_per_bit: 2 nJ}"
    )
    run = simulate(scenario(f"{TWO[:-1]}, local_rounds: 2, {backhaul}}}"))
    end_s = run.rounds.time_s.iloc[-1]
    for _, spans in run.spans.groupby("device"):  # busy + idle is all the time
        assert (spans.end_s - spans.start_s).sum() == pytest.approx(end_s, rel=1e-9)
    assert run.rounds.energy_j.sum() == pytest.approx(run.spans.energy_j.sum(), rel=1e-12)
    bits = 32 * run.summary["weights"]["global"]
    assert run.rounds.backhaul_bits_up.tolist() == [2 * bits] * 3
    assert run.rounds.backhaul_energy_j.tolist() == pytest.approx([4 * bits * 2e-9] * 3)
    transfers = run.log.table("backhaul")
    seconds = {"down": bits / 200e6 + 1e-3, "up": bits / 50e6 + 1e-3}
    for row in transfers.itertuples():
        assert row.end_s - row.start_s == pytest.approx(seconds[row.direction], rel=1e-9)
    assert (transfers.groupby(["round", "edge"]).size() == 2).all()


QUADRATICS = """
name: quadratics
rounds: 1
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices: [{count: 3, tx_power: 23 dBm, cpu: {frequency: 1 GHz, flops_per_cycle: 4}}]
allocation: {solver: equal}
learning:
  dataset: ./quadratics.npz
  partition: {kind: natural}
  model: ./line.py:Line
  batch_size: 2
  method: {name: fedavg, lr: 0.1, local_steps: 1, weighting: samples}
tiers: {edges: [{}, {}], association: list, members: [0, 0, 1]}
"""
LINE = """
import torch


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.w.weight)

    def forward(self, x):
        return self.w(x)
"""


@pytest.fixture
def last_weight(tmp_path):
    """f_k = a_k / 2 (w - c_k)^2 as a squared error: edge A has (1, 0), (3, 2), edge B (1, 4) twice.

    The squared error is twice that, so a step size of 0.1 stands for 0.2.
    """
    c, owner = np.array([0.0, 2.0, 4.0, 4.0]), np.array([0, 1, 2, 2])
    (tmp_path / "quadratics.yaml").write_text(QUADRATICS)
    (tmp_path / "line.py").write_text(LINE)

    def run(*changes, of=(0, 1, 2), curvature=(1.0, 3.0, 1.0, 1.0)):
        a, here, data = np.array(curvature), np.isin(owner, of), {}
        for part in ("train", "test"):
            data |= {f"x_{part}": np.sqrt(a)[here, None].astype(np.float32)}
            data |= {f"y_{part}": (np.sqrt(a) * c)[here, None].astype(np.float32)}
            data |= {f"clients_{part}": owner[here] - min(of)}
        np.savez(tmp_path / "quadratics.npz", **data)
        given = load(tmp_path / "quadratics.yaml", changes)
        simulate(given, out=tmp_path / "run", fresh=True, allow_code=True)
        return float(load_file(tmp_path / "run" / "model.safetensors")["w"][0])

    return run


@pytest.mark.parametrize(
    ("steps", "local_rounds", "rounds", "expected"),
    [(1, 1, 1, 0.70), (2, 1, 1, 1.14), (1, 2, 1, 1.20), (2, 2, 1, 1.7688), (1, 1, 2, 1.19)],
)
def test_hierfavg_by_hand(last_weight, steps, local_rounds, rounds, expected):
    """kappa_1 steps, kappa_2 rounds of the edges, means by samples: Liu et al., ICC 2020."""
    changes = f"learning.method.local_steps={steps}", f"tiers.local_rounds={local_rounds}"
    assert last_weight(*changes, f"rounds={rounds}") == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("steps", "local_rounds", "expected"),
    [(1, 1, (0.60, 0.80)), (2, 1, (0.84, 1.44)), (1, 2, (0.96, 1.44)), (2, 2, (1.176, 2.3616))],
)
def test_an_edge_alone_has_the_model_that_it_sends(last_weight, steps, local_rounds, expected):
    """The two edges of `test_hierfavg_by_hand`, whose means are there."""
    for of, own in zip(((0, 1), (2,)), expected, strict=True):
        members = f"association: list, members: {[0] * len(of)}"
        edge = f"tiers={{edges: [{{}}], local_rounds: {local_rounds}, {members}}}"
        changes = edge, f"devices.0.count={len(of)}", f"learning.method.local_steps={steps}"
        assert last_weight(*changes, of=of) == pytest.approx(own)


def test_with_equal_curvature_two_steps_are_two_rounds(last_weight):
    once, twice = "learning.method.local_steps=2", "tiers.local_rounds=2"
    steps, rounds = (last_weight(each, curvature=(1.0,) * 4) for each in (once, twice))
    assert steps == pytest.approx(rounds, rel=1e-6) and steps != pytest.approx(0.5)
