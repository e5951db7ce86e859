"""Devices of edge servers that come, go and crash: by hand, beside one cell, resumed, checked."""

from __future__ import annotations

import numpy as np
import pytest

from edgesim import simulate
from edgesim.errors import RunError
from edgesim.verification.verify import verify
from tests.edgesim.hierarchy.conftest import ONE, TWO
from tests.edgesim.resumed_runs import assert_resumed

COUNTED = (
    "learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}",
    "network.channel.path_loss.loss=90 dB",
    "devices.0.model_budget=1",
    "devices.0.cpu.frequency=1 GHz",
    "budget.latency_threshold=none",
)
COMING = (  # several sessions within a job, and devices that crash within them
    "devices.0.presence={kind: onoff, on: 60 ms, off: 20 ms}",
    "devices.0.cpu.flops_per_cycle=0.02",
    "devices.0.failure_rate=2 Hz",
)


def going(then):
    """The changes with what becomes of a job whose device leaves or crashes."""
    more = f"devices.0.on_leave={then}", f"devices.0.on_failure={then}"
    return (*COMING, *more, *(["devices.0.repair=10 ms"] if then != "lost" else []))


def times_of(run):
    """Device -> what its spans and its absences add up to, s."""
    end_s, away = run.rounds.time_s.iloc[-1], {}
    for k, rows in run.presence.groupby("device"):
        away[k] = end_s - (rows.end_s - rows.start_s).sum()
    spent = run.spans.groupby("device").apply(lambda spans: (spans.end_s - spans.start_s).sum())
    return [spent.get(k, 0.0) + away.get(k, 0.0) for k in range(run.summary["devices"])], end_s


def test_who_is_away_is_not_asked_and_who_leaves_loses_its_job(scenario, tmp_path):
    """Edge 0 has devices 0, 1, edge 1 has 2, 3; 1 is away at first, 3 leaves in the first round."""
    whole = simulate(scenario(*COUNTED, TWO, "tiers.members=[0, 0, 1, 1]", "rounds=1"))
    round_s = float(whole.rounds.time_s[0])
    rows = ["device,start_s,end_s", "0,0,99", f"1,{0.5 * round_s},99", "2,0,99"]
    rows += [f"3,0,{0.25 * round_s}", "3,50,99"]
    (tmp_path / "who.csv").write_text("\n".join(rows) + "\n")
    run = simulate(scenario(
        *COUNTED, TWO, "tiers.members=[0, 0, 1, 1]", "rounds=2",
        "devices.0.presence={kind: trace, file: who.csv}",
    ))  # fmt: skip
    first, second = (run.device_rounds[run.device_rounds["round"] == g] for g in (0, 1))
    assert first.device.tolist() == [0, 2, 3] and second.device.tolist() == [0, 1, 2]
    assert first.status.tolist() == ["arrived", "arrived", "left"]
    assert run.rounds.left.tolist() == [1, 0] and run.rounds.dispatched.tolist() == [3, 3]
    assert first.job.tolist() == [0, 1, 2] and second.job.tolist() == [3, 4, 5]
    spans = run.spans[(run.spans.device == 3)]
    assert spans.end_s.max() == pytest.approx(0.25 * round_s)
    spent, end_s = times_of(run)
    assert spent == pytest.approx([end_s] * 4, rel=1e-9)


def test_where_nobody_will_return_the_sentence_names_the_edge_and_what_is_read(scenario, tmp_path):
    """Device 3, alone at edge 1, leaves for ever; no threshold ends a round."""
    rows = ["device,start_s,end_s", "0,0,inf", "1,0,inf", "2,0,inf", "3,0,0.001"]
    (tmp_path / "who.csv").write_text("\n".join(rows) + "\n")
    left = "devices.0.presence={kind: trace, file: who.csv}", "tiers.members=[0, 0, 0, 1]"
    with pytest.raises(RunError) as ended:
        simulate(scenario(*COUNTED, TWO, *left))
    assert str(ended.value).startswith("edge 1: no device can take part in round 1, ")
    assert str(ended.value).endswith(
        "; give budget.latency_threshold, or let devices be there for longer (devices.presence)"
    )


@pytest.mark.parametrize("on_leave", ["lost", "restart", "resume"])
def test_one_edge_is_the_cell_alone(scenario, on_leave):
    star, tiers = (simulate(scenario(*going(on_leave), *more)) for more in ((), (ONE,)))
    for table in ("rounds", "device_rounds", "spans", "scores", "presence"):
        a, b = getattr(star, table), getattr(tiers, table)
        assert len(a) == len(b)
        for column in a.columns:
            numbers = a[column].dtype == float
            assert np.array_equal(a[column], b[column], equal_nan=numbers), (table, column)
    assert star.rounds.left.sum() > 0 or on_leave != "lost"
    assert star.rounds.failed.sum() > 0 or on_leave != "lost"


@pytest.mark.slow
@pytest.mark.parametrize("on_leave", ["lost", "resume"])
def test_a_run_that_is_killed_at_any_round_equals_the_whole_run(scenario, tmp_path, on_leave):
    """Jobs keep their numbers, time is kept, and the presence is drawn again."""
    given = scenario(*going(on_leave), f"{TWO[:-1]}, local_rounds: 2, backhaul: {{delay: 3 ms}}}}")
    names = "rounds.csv", "device_rounds.parquet", "spans.parquet", "model.safetensors"
    whole = assert_resumed(given, tmp_path, range(3), names)
    spent, end_s = times_of(whole)
    assert spent == pytest.approx([end_s] * 4, rel=1e-9)
    rows = whole.device_rounds
    assert sorted(rows.job) == list(range(len(rows))) and rows.job.nunique() == len(rows)
    assert (rows.sort_values("job").dispatched_s.diff().dropna() >= 0.0).all()
    ((_, checks),) = verify([tmp_path / "killed"])
    assert {each.outcome for each in checks} <= {"ok", "not checked"}, [
        each.detail for each in checks
    ]
    assert "presence" in [each.name for each in checks]


def test_a_device_whose_job_never_ends_is_named_by_its_own_number(scenario):
    """Device 3 is the second of its edge."""
    failing = "devices.0.failure_rate=[0 Hz, 0 Hz, 0 Hz, 10 kHz]", "devices.0.on_failure=restart"
    with pytest.raises(RunError, match=r"^a job of device 3 has started 5001 times"):
        simulate(scenario(*COUNTED, TWO, *failing))
