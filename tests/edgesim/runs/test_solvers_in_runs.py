"""Every solver in a run: its plan is what the event log shows, with and without a threshold,
under both noises.
"""

from __future__ import annotations

import numpy as np
import pytest

import solvers
from edgesim import load, simulate
from edgesim.cli.listings import catalog
from edgesim.errors import InfeasibleScenarioError, RunError, ScenarioError
from edgesim.network.planning.pruning_problem import pruning_problem
from edgesim.runs.feasibility.round_0 import feasibility_table
from edgesim.runs.setup import set_up
from edgesim.runs.setup.training_and_evaluation import method_hooks
from solvers import WITHOUT_DEADLINE

SCENARIO = """
name: solvers
rounds: 2
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [90 dB, 97 dB, 104 dB, 110 dB]}}
devices:
  - {count: 4, tx_power: 28 dBm,
     cpu: {frequency: [1 GHz, 2 GHz, 3 GHz, 1.5 GHz], cycles_per_weight: 40}}
budget: {latency_threshold: 700 ms}
learning: {dataset: none, model: liu-cnn, batch_size: 128, method: {name: fedavg}}
"""
LIU = "learning.method={name: liu}"
DENSITY = "network.noise=-180 dBm/Hz"
GRID = "{{frequency: 3.5 GHz, bandwidth: 20 MHz, noise_figure: 5 dB, tdd: DDDSU, tdd_clock: {}}}"
NONE = "budget={latency_threshold: none}"
TABLES = ("rounds.csv", "device_rounds.parquet", "spans.parquet")


def ran(tmp_path, *changes):
    path = tmp_path / "solvers.yaml"
    path.write_text(SCENARIO)
    return simulate(load(path, list(changes)))


def test_the_logged_slopes_are_those_of_wider_bands_and_longer_thresholds(tmp_path):
    """Central differences of the summed ratios of round 0, by 0.2 MHz in 20 and by 2 ms in 250."""

    short = "budget.latency_threshold=250 ms"

    def pruned(change):
        run = ran(tmp_path, LIU, short, change)
        return run.device_rounds.rho[run.device_rounds["round"] == 0].sum()

    row = ran(tmp_path, LIU, short).rounds.iloc[0]
    by_band = (pruned("network.bandwidth=20.1 MHz") - pruned("network.bandwidth=19.9 MHz")) / 0.2e6
    by_time = (
        pruned("budget.latency_threshold=251 ms") - pruned("budget.latency_threshold=249 ms")
    ) / 2e-3
    assert row.pruning_per_hz < 0 and row.pruning_per_hz == pytest.approx(by_band, rel=1e-3)
    assert row.pruning_per_s < 0 and row.pruning_per_s == pytest.approx(by_time, rel=1e-3)
    assert ran(tmp_path, LIU, short, "allocation.solver=equal").rounds.pruning_per_hz.isna().all()


def planned(tmp_path, *changes):
    """(cell, demand, view) of round 0, as the run will ask them."""
    import simpy

    path = tmp_path / "solvers.yaml"
    path.write_text(SCENARIO)
    setup = set_up(load(path, list(changes)))
    cell, method = setup.cell(simpy.Environment()), method_hooks(setup)
    view = cell.view(0)
    return cell, method.demand(method.start(), view, view.idle), view


@pytest.mark.parametrize("noise", [(), (DENSITY,)])
@pytest.mark.parametrize("solver", ["kkt", "convex", "fair", "convex-fair"])
def test_pruning_meets_the_threshold_in_the_log(tmp_path, solver, noise):
    rows = ran(
        tmp_path, f"allocation.solver={solver}", LIU, "budget.latency_threshold=200 ms", *noise
    ).device_rounds
    inner = rows[(rows.rho > 0) & (rows.rho < 1)]
    assert len(inner) and inner.finish_s.to_numpy() == pytest.approx(0.2, rel=1e-9)
    assert (rows.status == "arrived").all()
    if "fair" in solver:
        assert np.ptp(rows.rho) < 1e-7  # all four have something to prune


@pytest.mark.parametrize("noise", [(), (DENSITY,)])
@pytest.mark.parametrize("threshold", [(), (NONE,)])
@pytest.mark.parametrize("solver", ["latency", "convex-latency"])
def test_all_are_back_together(tmp_path, solver, threshold, noise):
    run = ran(tmp_path, f"allocation.solver={solver}", *threshold, *noise)
    finish_s = run.device_rounds.finish_s.to_numpy()
    assert (run.device_rounds.rho == 0).all() and np.ptp(finish_s) <= 1e-9 * finish_s.max()
    equal = ran(tmp_path, "allocation.solver=equal", *threshold, *noise)
    assert run.rounds.latency_s[0] < equal.rounds.latency_s[0]


def test_latency_counts_unprunable_work_without_a_threshold(tmp_path):
    """Liu's personal and warm-up steps come before: devices with other clocks still are back
    together.
    """
    run = ran(tmp_path, "allocation.solver=latency", LIU, NONE)
    compute_s = run.device_rounds.compute_s.to_numpy()
    assert np.ptp(compute_s) > 1e-3 and np.ptp(run.device_rounds.finish_s) <= 1e-9


def planned_energy(cell, demand, view, budget_s):
    """What the allocator of a cell answers to the problem of a round."""
    fixed_s = cell.planner.unprunable_s(demand, view)
    everybody, slack_s, gains = np.arange(4), budget_s - fixed_s, cell.channel.gains(0.0)
    asked = demand, view, everybody, slack_s, fixed_s, gains
    return cell.planner.allocator(pruning_problem(cell.channel, cell.fleet, *asked))


@pytest.mark.parametrize("noise", [(), (DENSITY,)])
def test_energy_is_what_the_ledger_says(tmp_path, noise):
    """The plan's joules are those of the log; everybody is back at T_th; kkt with full clocks and
    powers takes more.
    """
    run = ran(tmp_path, "allocation.solver=energy", *noise)
    rows = run.device_rounds[run.device_rounds["round"] == 0]
    assert (
        rows.finish_s.to_numpy() == pytest.approx(0.7, rel=1e-9)
        and (rows.status == "arrived").all()
    )
    cell, demand, view = planned(tmp_path, "allocation.solver=energy", *noise)
    grants, answer = cell.plan(demand, view).grants, planned_energy(cell, demand, view, 0.7)
    assert answer.objective == pytest.approx(rows.energy_j.sum(), rel=1e-12)
    assert (grants.cpu_hz < view.cpu_hz).all() and (grants.power_w < cell.fleet.tx_power_w).all()
    spent = ran(tmp_path, "allocation.solver=kkt", *noise).rounds.energy_j[0]
    assert run.rounds.energy_j[0] < 0.2 * spent
    rows = feasibility_table(cell, set_up(load(tmp_path / "solvers.yaml")).method).rows
    assert [row["planned_ms"] for row in rows] == pytest.approx([700.0] * 4)


@pytest.mark.parametrize("solver", ["energy", "convex-energy"])
@pytest.mark.parametrize("clock", ["fluid", "slots"])
def test_energy_is_what_the_ledger_says_under_a_tdd_pattern(tmp_path, clock, solver):
    """Sending costs p x 16 / 70 of its time at the mean rate, in the plan and in the log."""
    carrier = ["network.bandwidth=18.36 MHz", "network.noise=-169 dBm/Hz"]
    carrier += [f"network.carrier={GRID.format(clock)}", "budget.latency_threshold=9 s"]
    run = ran(tmp_path, f"allocation.solver={solver}", *carrier)
    rows = run.device_rounds[run.device_rounds["round"] == 0]
    assert (rows.status == "arrived").all()
    cell, demand, view = planned(tmp_path, f"allocation.solver={solver}", *carrier)
    grants, answer = cell.plan(demand, view).grants, planned_energy(cell, demand, view, 9.0)
    assert answer.objective == pytest.approx(rows.energy_j.sum(), rel=1e-12)
    rate_bps = cell.channel.rate_bps(grants.share, grants.power_w, cell.channel.gains(0.0))
    spans = run.spans[(run.spans["round"] == 0) & (run.spans.phase == "upload")]
    sent_j = grants.power_w * 16 / 70 * spans.bits / rate_bps
    assert spans.energy_j.to_numpy() == pytest.approx(sent_j.to_numpy(), rel=1e-12)


@pytest.mark.parametrize("noise", [(), (DENSITY,)])
def test_the_reference_spends_the_same(tmp_path, noise):
    ours, theirs = (
        ran(tmp_path, f"allocation.solver={name}", *noise).rounds.energy_j[0]
        for name in ("energy", "convex-energy")
    )
    assert ours == pytest.approx(theirs, rel=1e-7) and ours <= theirs * (1 + 1e-9)


def test_energy_keeps_f_min_and_the_capability(tmp_path):
    """f_min is one of the whole processor: half of it given, half of it is the least clock."""
    slow = "devices.0.cpu.min_frequency=900 MHz"
    run, _, _ = planned(
        tmp_path,
        "allocation.solver=energy",
        slow,
        "devices.0.capability=0.5",
        "budget.latency_threshold=5 s",
    )
    assert run.fleet.min_cpu_hz.tolist() == [9e8] * 4
    cell, demand, view = planned(
        tmp_path,
        "allocation.solver=energy",
        slow,
        "devices.0.capability=0.5",
        "budget.latency_threshold=5 s",
    )
    grants = cell.plan(demand, view).grants
    assert grants.cpu_hz == pytest.approx([4.5e8] * 4)


@pytest.mark.parametrize("solver", ["energy", "kkt", "fair"])
def test_too_short_a_threshold_is_stretched_to_the_same_least_one(tmp_path, solver):
    short = "budget.latency_threshold=10 ms"
    cell, demand, view = planned(tmp_path, f"allocation.solver={solver}", short)
    least_s = ran(tmp_path, "allocation.solver=latency", NONE).rounds.latency_s[0]
    assert cell.plan(demand, view).budget_s == pytest.approx(least_s, rel=1e-6)
    with pytest.raises(InfeasibleScenarioError):
        ran(tmp_path, f"allocation.solver={solver}", short, "allocation.when_infeasible=stop")


def test_proportional_and_late(tmp_path):
    run = ran(tmp_path, "allocation.solver=proportional", "budget.latency_threshold=10 ms")
    assert (
        run.device_rounds.share.to_numpy() == pytest.approx(0.25)
        and (run.device_rounds.status == "late").all()
    )


def test_which_solvers_need_a_threshold(tmp_path):
    for solver in ("kkt", "fair", "energy", "convex-energy"):
        with pytest.raises(
            ScenarioError, match=f"is {solver}, which needs budget.latency_threshold"
        ):
            ran(tmp_path, f"allocation.solver={solver}", NONE)
    for solver in WITHOUT_DEADLINE:
        ran(tmp_path, f"allocation.solver={solver}", NONE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            ["allocation.solver=nine"],
            "allowed are kkt, fair, alpha-fair, latency, energy, levels, equal, proportional, ",
        ),
        (["allocation.solver=printed"], "breaks its bounds and is for comparison only; use kkt"),
        (["allocation.solver=levels"], "is levels, which needs allocation.levels; write for"),
        (["allocation.levels=[0, 0.5]"], "levels is not read by the solver kkt; remove it, or use"),
        (
            ["allocation={solver: energy, resource_blocks: 50}"],
            "resource_blocks is 50, which the solver energy does not take; .* use kkt, fair, lat",
        ),
        (
            ["allocation={solver: levels, levels: [0.5, 0.75]}"],
            "command line: allocation.levels cannot be used: levels of device 0 have none between",
        ),
        (["devices.0.cpu.min_frequency=1 GHz"], "min_frequency is not read by the solver kkt"),
        (
            ["devices.0.cpu.min_frequency=2 GHz", "allocation.solver=energy"],
            "cpu.min_frequency 2e[+]09 Hz, above its cpu.frequency",
        ),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path, changes, words):
    with pytest.raises((ScenarioError, RunError), match=words) as caught:
        ran(tmp_path, *changes)
    assert "solvers.yaml:" in str(caught.value) or "command line" in str(caught.value)


@pytest.mark.parametrize("solver", ["kkt", "fair", "latency"])
def test_shares_are_whole_resource_blocks(tmp_path, solver):
    given = [f"allocation={{solver: {solver}, resource_blocks: 50}}", LIU]
    run = ran(tmp_path, *given, "budget.latency_threshold=250 ms")
    blocks = run.device_rounds.share.to_numpy() * 50
    assert blocks == pytest.approx(blocks.round(), abs=1e-12) and blocks.min() >= 1
    assert run.device_rounds.groupby("round").share.sum().max() <= 1 + 1e-12
    assert run.rounds.solver_residual.max() <= 1e-8  # certified
    assert run.rounds.pruning_per_hz.isna().all()  # steps have no slope


@pytest.mark.parametrize("otherwise", ["stretch", "stop"])
@pytest.mark.parametrize("solver", ["kkt", "fair", "latency"])
def test_fewer_resource_blocks_than_devices_are_no_matter_of_time(tmp_path, solver, otherwise):
    """Four devices have something to send; a longer threshold gives none of them a block."""
    given = f"{{solver: {solver}, resource_blocks: 2, when_infeasible: {otherwise}}}"
    with pytest.raises(InfeasibleScenarioError, match="block") as caught:
        ran(tmp_path, f"allocation={given}")
    assert "stretch" not in str(caught.value) and "inf" not in str(caught.value)


def test_ratios_are_among_the_levels(tmp_path):
    levels = "allocation={solver: levels, levels: [0, 0.3, 0.6, 0.9]}"
    run = ran(tmp_path, levels, LIU, "budget.latency_threshold=250 ms")
    assert set(run.device_rounds.rho) <= {0.0, 0.3, 0.6, 0.9} and run.device_rounds.rho.max() > 0
    assert run.rounds.solver_residual.max() <= 1e-8
    assert (run.device_rounds.status == "arrived").all()


@pytest.mark.slow
def test_the_solvers_that_are_listed_are_those_that_runs_accept(tmp_path):
    listed = [name for name, *_ in catalog("solvers")]
    assert set(solvers.METHODS) - set(listed) == {"printed"}
    for name in listed:
        options = ", levels: [0, 0.5, 0.9]" if name == "levels" else ""
        assert len(ran(tmp_path, f"allocation={{solver: {name}{options}}}", "rounds=1").rounds) == 1


@pytest.mark.parametrize("solver", ["energy", "latency", "fair"])
def test_devices_that_train_keep_the_plan_as_well(tmp_path, solver):
    """The same grants by processes instead of columns: a trained round on the digits."""
    model = "model: digits-cnn, batch_size: 10, method: {name: fedavg, lr: 0.05}"
    digits = f"learning={{dataset: digits, partition: {{kind: iid}}, {model}}}"
    run = ran(tmp_path, digits, f"allocation.solver={solver}", "rounds=1")
    finish_s = run.device_rounds.finish_s.to_numpy()
    assert (finish_s <= 0.7 * (1 + 1e-9)).all() and len(finish_s) == 4
    if solver == "energy":
        assert finish_s == pytest.approx(0.7, rel=1e-9)
    if solver == "latency":
        assert np.ptp(finish_s) <= 1e-9
    assert run.rounds.energy_j[0] == pytest.approx(run.spans.energy_j.sum(), rel=1e-12)
