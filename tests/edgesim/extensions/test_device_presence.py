"""The key presence: every kind runs, is verified and resumed, and its mistakes are one sentence."""

from __future__ import annotations

import hashlib

import pytest

from edgesim import simulate
from edgesim.errors import EdgesimError, ScenarioError
from edgesim.runs.run import feasibility
from edgesim.verification.verify import verify
from tests.edgesim.resumed_runs import assert_resumed

KINDS = {
    "onoff": "{kind: onoff, on: {uniform: [20 ms, 40 ms]}, off: 10 ms, law: weibull, shape: 0.7}",
    "diurnal": "{kind: diurnal, mean: 0.6, amplitude: 0.3, session: 9 ms, period: 0.1 s, "
    "phase: {choice: [0 ms, 50 ms]}}",
    "blocks": "{kind: blocks, group: north, a: 2, b: 1, block: 20 ms}",
    "trace": "{kind: trace, file: there.csv, period: 30 ms}",
    "always": "{kind: always, outage: {group: north, up: 30 ms, down: 5 ms}}",
}
BUFFERED = "clock={mode: buffered, buffer: 2}"
TABLES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "summary.json")


@pytest.fixture
def scenario(few, tmp_path):
    (tmp_path / "there.csv").write_text(
        "device,start_s,end_s\n0,0,0.02\n1,0.01,0.03\n2,0,0.03\n3,0,0.005\n"
    )
    return lambda *changes: few("rounds=12", "devices.0.idle_power=0.1 W", *changes)


def of(kind, *changes):
    return [f"devices.0.presence={KINDS[kind]}", *changes]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_goes_on_with_the_same_bytes_and_is_verified(scenario, tmp_path, kind):
    given = scenario(*of(kind, BUFFERED, "devices.0.on_leave=resume"))
    assert_resumed(given, tmp_path, [5], (*TABLES, "presence.parquet"))
    ((_, checks),) = verify([tmp_path / "killed"])
    outcomes = {check.name: check.outcome for check in checks}
    assert outcomes["presence"] == "ok" and "WRONG" not in outcomes.values()


@pytest.mark.slow
def test_a_checkpoint_holds_jobs_that_crash_and_are_repaired(scenario, tmp_path):
    crashes = ("devices.0.failure_rate=100 Hz", "devices.0.on_failure=restart")
    given = scenario(*of("onoff", BUFFERED, *crashes, "devices.0.repair=2 ms"))
    whole = assert_resumed(given, tmp_path, (2, 7), TABLES)
    assert (whole.spans.phase == "repair").any()


@pytest.mark.slow
def test_more_rounds_continue_a_synchronous_run(scenario, tmp_path):
    longer = simulate(scenario(*of("onoff")), out=tmp_path / "longer")
    simulate(scenario(*of("onoff", "rounds=5")), out=tmp_path / "run")
    continued = simulate(scenario(*of("onoff")), out=tmp_path / "run")
    assert continued.presence.equals(longer.presence) and continued.spans.equals(longer.spans)


@pytest.mark.slow
def test_a_changed_interval_is_found(scenario, tmp_path):
    import pandas as pd

    simulate(scenario(*of("trace")), out=tmp_path / "run")
    table = pd.read_parquet(tmp_path / "run" / "presence.parquet")
    table.loc[2, "end_s"] += 1e-6
    table.to_parquet(tmp_path / "run" / "presence.parquet")
    ((_, checks),) = verify([tmp_path / "run"])
    assert {check.name: check.outcome for check in checks}["files"] == "WRONG"
    content = (tmp_path / "run" / "presence.parquet").read_bytes()
    sums = tmp_path / "run" / "SHA256SUMS"
    lines = [line.split("  ") for line in sums.read_text().splitlines()]
    digests = {name: digest for digest, name in lines}
    digests["presence.parquet"] = hashlib.sha256(content).hexdigest()
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    ((_, checks),) = verify([tmp_path / "run"])
    (presence,) = [check for check in checks if check.name == "presence"]
    assert presence.outcome == "WRONG" and "drawn again" in presence.detail


def test_runs_without_presence_have_no_table_of_it(scenario, tmp_path):
    run = simulate(scenario(), out=tmp_path / "run")
    assert not (tmp_path / "run" / "presence.parquet").exists()
    assert "left" not in run.rounds and len(run.presence) == 0


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["devices.0.availability=0.9", *of("onoff")], "presence stands beside availability"),
        (["devices.0.on_leave=resume"], "without presence no device leaves"),
        (["devices.0.on_failure=resume"], "without failure_rate no device crashes"),
        (["devices.0.repair=3 s"], "repair is not read with on_failure: lost"),
        (["devices.0.presence={kind: always}"], "remove presence, write none, or give"),
        (["devices.0.presence=3"], "instance presence: {kind: onoff, on: 300 s, off: 100 s}"),
        (["devices.0.presence=onoff"], "instance presence: {kind: onoff, on: 300 s, off: 100 s}$"),
        (["devices.0.presence={kind: onoff, on: 1 s, off: 1 s, shape: 2}"], "reads no shape"),
        (["devices.0.presence={kind: on}"], "allowed is always or onoff or diurnal or blocks"),
        (
            ["devices.0.presence={kind: diurnal, mean: 0.5, amplitude: 0.5, session: 1 h}"],
            "must lie between 0 and 1",
        ),
        (
            ["devices.0.presence={kind: diurnal, mean: 0.5, amplitude: 0.3, session: 6 h}"],
            "allowed is at most 1.833e+04 s",
        ),
        (
            [*of("onoff"), "devices.0.on_leave=resume", "network.uplink={share: reclaim}"],
            "share: reclaim gives it away; write fixed, or lost",
        ),
        (
            [*of("onoff"), "devices.0.on_leave=resume", BUFFERED, "allocation.solver=kkt"],
            "solver: kkt gives it away; write equal, or lost",
        ),
        ([*of("onoff"), "devices.0.battery={capacity: 1 kJ}"], "is not known to devices with heat"),
        (["devices.0.presence={kind: trace, file: none.csv}"], "cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(scenario, changes, part):
    with pytest.raises((ScenarioError, EdgesimError), match=part.replace("+", r"\+")) as error:
        simulate(scenario(*changes))
    assert "\n" not in str(error.value)


def test_the_check_warns_of_devices_that_are_never_there(scenario, tmp_path):
    kinds = of("trace", "devices.0.presence.outage={group: north, up: 30 ms, down: 5 ms}")
    assert feasibility(scenario(*kinds)).warnings == []
    (tmp_path / "there.csv").write_text("device,start_s,end_s\n0,0,0.02\n2,0.01,0.03\n")
    (warning,) = feasibility(scenario(*kinds)).warnings
    assert warning.startswith("2 of 4 devices are never there") and warning.endswith(": 1, 3")


def test_one_group_has_one_law(scenario):
    laws = KINDS["blocks"], KINDS["blocks"].replace("block: 20 ms", "block: 10 ms")
    cpu = "cpu: {frequency: 1 GHz, flops_per_cycle: 4}"
    classes = (f"{{count: 4, tx_power: 23 dBm, {cpu}, presence: {law}}}" for law in laws)
    with pytest.raises(EdgesimError, match=r"devices.1.presence.group is north, as of an earlier"):
        simulate(scenario(f"devices=[{', '.join(classes)}]"))
