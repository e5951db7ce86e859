"""What `edgesim check` prints of a device: its upload, and what binds it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from edgesim.errors import InfeasibleScenarioError
from edgesim.runs.feasibility.round_0 import participation
from edgesim.runs.run import feasibility, simulate
from edgesim.scenario.loader import load

TEXT = """\
name: tiny
rounds: 1
network:
  bandwidth: {band}
  noise: {noise}
  channel: {{path_loss: {{model: constant, loss: 100 dB}}}}
devices: [{{count: 4, tx_power: 28 dBm, cpu: {{frequency: 3 GHz, cycles_per_weight: 5}}}}]
budget: {{latency_threshold: {threshold}}}
learning: {{dataset: none, model: mlp, batch_size: 20, method: {{name: {method}}}}}
allocation: {{solver: {solver}}}
"""


@pytest.fixture
def rows(tmp_path):
    def checked(method="fedavg", solver="equal", threshold="25 s", band="1 MHz", noise="-110 dBm"):
        (tmp_path / "tiny.yaml").write_text(TEXT.format_map(locals()))
        return feasibility(load(tmp_path / "tiny.yaml")).rows

    return checked


@pytest.mark.parametrize("noise", ["-110 dBm", "-170 dBm/Hz"])
def test_an_unpruned_upload_at_an_equal_share_is_the_equal_plan(rows, noise):
    for row in rows(noise=noise):
        in_all_ms = sum(row["stages"].values()) + row["upload_ms"]
        assert row["planned_ms"] == pytest.approx(in_all_ms, rel=1e-12)


def test_what_binds_is_the_longest_part_of_the_unpruned_round(rows):
    # so narrow that all of the shared part must be pruned: then nothing is sent, yet the band binds
    narrow = rows("liu", "kkt", "25 ms", band="1 Hz")
    assert min(row["rho"] for row in narrow) > 0.999
    assert {row["binds"] for row in narrow} == {"uplink"}
    assert {row["binds"] for row in rows("liu", "kkt", band="1 THz")} == {"personal"}


def test_where_nothing_helps_what_cannot_be_pruned_binds(rows):
    late = rows("liu", "kkt", "1 ns")
    assert not any(row["feasible"] for row in late)
    assert {row["binds"] for row in late} == {"personal"}


def test_each_device_waits_for_its_own_turns_of_a_unicast(tmp_path):
    """Downlink SNRs of 1000 and 1 over 1 MHz: the weak device goes on alone after the other."""
    path = tmp_path / "turns.yaml"
    text = TEXT.format(
        band="1 MHz", noise="-180 dBm/Hz", threshold="25 s", method="fedavg", solver="equal"
    )
    path.write_text(text.replace("count: 4", "count: 2").replace("100 dB", "[90 dB, 120 dB]"))
    scenario = load(path, ["network.downlink={mode: unicast, tx_power: 1 mW}"])
    done, rows = simulate(scenario).device_rounds, feasibility(scenario).rows
    weak_s = done.bits_down[0] / 1e6
    strong_s = weak_s / math.log2(1001.0)
    for row, turns_s in zip(rows, (2.0 * strong_s, strong_s + weak_s), strict=True):
        after_it_ms = sum(row["stages"].values()) + row["upload_ms"]
        assert row["planned_ms"] - after_it_ms == pytest.approx(1e3 * turns_s)
        assert row["planned_ms"] == pytest.approx(1e3 * done.finish_s[row["device"]])


def test_a_round_that_asks_few_is_planned_for_few(tmp_path):
    """100 devices, 10 of them in a round: a tenth of the band each, as in the run, and no more."""
    path = tmp_path / "few.yaml"
    text = TEXT.format(
        band="1 MHz", noise="-110 dBm", threshold="25 s", method="fedavg", solver="equal"
    )
    path.write_text(text.replace("count: 4", "count: 100"))
    few, all_of_them = (
        feasibility(load(path, changes)) for changes in (["learning.method.participants=10"], [])
    )
    run = simulate(load(path, ["learning.method.participants=10"]))
    asked = run.device_rounds.set_index("device")
    planned = [row for row in few.rows if row["share"] == row["share"]]
    assert [row["device"] for row in planned] == sorted(asked.index)
    for row in planned:
        assert row["share"] == pytest.approx(0.1)
        assert row["planned_ms"] == pytest.approx(1e3 * asked.finish_s[row["device"]], rel=1e-9)
    for one, other in zip(few.rows, all_of_them.rows, strict=True):
        assert one["upload_ms"] == pytest.approx(other["upload_ms"] / 10)
    assert few.note == (
        "all 100 devices can take part; a round asks 10 of them, and shares are planned for those "
        "of round 0"
    )


def test_a_device_of_another_round_that_never_is_in_time_is_named(tmp_path):
    path = tmp_path / "slow.yaml"
    text = TEXT.format(
        band="1 MHz", noise="-110 dBm", threshold="25 s", method="liu", solver="kkt"
    ).replace("count: 4", "count: 8")
    slow = "{frequency: [3 GHz, 3 GHz, 3 GHz, 3 GHz, 3 GHz, 3 GHz, 3 GHz, 9 Hz]"
    path.write_text(text.replace("{frequency: 3 GHz", slow))
    for count in (1, 2, 8):
        found = feasibility(load(path, [f"learning.method.participants={count}"]))
        assert [row["device"] for row in found.rows if not row["feasible"]] == [7]
        assert ": device 7 cannot meet budget.latency_threshold" in found.note


def test_a_plan_with_the_fade_of_the_instant_is_a_warning_where_devices_can_be_late(tmp_path):
    """Without a threshold nobody can. Where jobs overlap, and under losses of a file, no other rate
    can be planned with.
    """
    text = TEXT.format(
        band="1 MHz", noise="-110 dBm", threshold="25 s", method="fedavg", solver="equal"
    )
    path = tmp_path / "fading.yaml"
    path.write_text(text)
    fading = "network.channel.fading={kind: rayleigh, coherence: 20 ms}"
    (warning,) = feasibility(load(path, [fading])).warnings
    assert warning == (
        "allocation.rate: now plans with the fade of the instant, but fading changes every 20 ms "
        "of 25000 ms, so that devices may be late; write allocation: {rate: quantile, "
        "reliability: 0.95} to plan for fading"
    )
    assert not feasibility(load(path, [fading, "allocation.rate=quantile"])).warnings
    assert not feasibility(load(path, [fading, "budget.latency_threshold=none"])).warnings
    (tmp_path / "losses.csv").write_text("time [s],a [dB],b [dB],c [dB],d [dB]\n0,90,90,90,90\n")
    traced = "network.channel.path_loss={model: trace, file: losses.csv}"
    for change in "clock.mode=asynchronous", traced:
        (warning,) = feasibility(load(path, [fading, change])).warnings
        assert warning.endswith("of 25000 ms, so that devices may be late")


@pytest.mark.parametrize("rate", ["mean", "quantile"])
def test_a_rate_that_makes_no_difference_is_a_warning(rate, tmp_path):
    """Also of a run, in which it is said once; of `now` nothing is said."""
    path = tmp_path / "still.yaml"
    given = {"band": "1 MHz", "noise": "-110 dBm", "threshold": "25 s"}
    path.write_text(TEXT.format(**given, method="fedavg", solver="equal"))
    (warning,) = simulate(load(path, [f"allocation.rate={rate}", "rounds=2"])).summary["warnings"]
    assert warning == (
        f"allocation.rate is {rate}, but without fading plans are those of now; remove it, or "
        "write network.channel.fading"
    )
    assert not feasibility(load(path, ["allocation.rate=now"])).warnings
    fading = "network.channel.fading={kind: rayleigh, coherence: 20 ms}"
    assert not feasibility(load(path, [fading, f"allocation.rate={rate}"])).warnings


def test_the_rate_of_a_rung_is_not_one_that_is_written(tmp_path):
    """The rungs from cell on plan for a quantile, which need not go with their fading."""
    changes = ["network.fidelity=cell", "network.noise=-169 dBm/Hz", "devices.0.tx_power=23 dBm"]
    changes += ["network.channel={path_loss: {model: uma}, fading: {kind: none}}"]
    path = tmp_path / "rung.yaml"
    given = {"band": "20 MHz", "noise": "-110 dBm", "threshold": "25 s"}
    path.write_text(TEXT.format(**given, method="fedavg", solver="equal"))
    of_rung = load(path, changes)
    assert of_rung.allocation.rate == "quantile" and not feasibility(of_rung).warnings
    (warning,) = feasibility(load(path, [*changes, "allocation.rate=mean"])).warnings
    assert warning.startswith("allocation.rate is mean, but without fading")


@pytest.mark.parametrize("participants", [3, 1])
def test_who_hears_too_little_keeps_nobody_waiting_in_the_table(tmp_path, participants):
    """A path of 185 dB: its broadcast takes minutes, which the others do not wait for."""
    path = tmp_path / "weak.yaml"
    given = {"band": "20 MHz", "noise": "-110 dBm", "threshold": "200 ms"}
    path.write_text(TEXT.format(**given, method="liu", solver="kkt"))
    heard, weak = "network.channel.path_loss.loss=[100 dB, 100 dB, {} dB]", "185"
    changes = ["devices.0.count=3", "network.downlink={mode: broadcast, tx_power: 30 dBm}"]
    changes += [f"learning.method.participants={participants}", heard.format(weak)]
    table = feasibility(load(path, changes))
    changes[-1] = heard.format("100")
    everybody = feasibility(load(path, changes))
    assert [row["feasible"] for row in table.rows] == [True, True, False]
    least_ms = [row["least_ms"] for row in everybody.rows]
    assert [row["least_ms"] for row in table.rows[:2]] == pytest.approx(least_ms[:2], rel=1e-12)
    assert ": device 2 cannot meet" in table.note


def test_a_device_whose_channel_returns_is_out_of_reach_in_round_0_only():
    view = SimpleNamespace(rate_bps=np.array([1e6, 0.0, 1e6]), budget_s=0.1)
    said = participation(3, [1], view, np.zeros(3), moves=True)
    assert said == (
        "1 of 3 devices cannot take part in round 0: device 1 is out of reach when the run "
        "starts, and takes part once the channel lets it: its rate is 0 bit/s"
    )
    for_good = "1 of 3 devices cannot take part: device 1 is out of reach: its rate is 0 bit/s"
    assert participation(3, [1], view, np.zeros(3)) == for_good
    weak = participation(3, [0], view, np.zeros(3), too_weak=[0])
    assert weak.endswith(": the plan of device 0 takes more than the battery holds")


def test_a_channel_that_comes_back_costs_a_round_and_not_the_run(tmp_path):
    """Nobody is in reach for 30 s: the rounds of 25 s from 0 and 25 s are lost."""
    path, end = tmp_path / "away.yaml", "network.channel.path_loss={model: trace, file: losses.csv"
    text = TEXT.format(
        band="1 MHz", noise="-110 dBm", threshold="25 s", method="fedavg", solver="equal"
    )
    path.write_text(text)
    (tmp_path / "losses.csv").write_text(
        "time [s],a [dB],b [dB],c [dB],d [dB]\n0,inf,inf,inf,inf\n30,90,90,90,90\n"
    )
    changes = [f"{end}, end: hold}}", "rounds=3"]
    table = feasibility(load(path, changes))
    assert table.feasible and table.warnings == [table.note]
    assert "4 of 4 devices cannot take part in round 0: devices 0, 1, 2, 3 are out" in table.note
    for clock in ("synchronous", "deadline", "buffered"):
        run = simulate(load(path, [*changes, f"clock.mode={clock}"]))
        assert run.rounds.arrived.tolist()[:2] == [0, 0] and run.rounds.arrived[2] > 0
        assert run.rounds.time_s.tolist()[:2] == [25.0, 50.0]
    with pytest.raises(InfeasibleScenarioError, match=r"out of reach: their rate is 0 bit/s$"):
        simulate(load(path, [*changes, "budget.latency_threshold=none"]))  # no round would end
    (tmp_path / "losses.csv").write_text(
        "time [s],a [dB],b [dB],c [dB],d [dB]\n0,inf,inf,inf,inf\n"
    )
    assert not feasibility(load(path, changes)).feasible


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", ["kkt", "equal"])
def test_a_device_that_no_download_reaches_gives_nobody_more_time(tmp_path, solver):
    """Its turns of the downlink never end; the others are planned for 25 s, as without it."""
    path = tmp_path / "away.yaml"
    text = TEXT.format(
        band="1 MHz", noise="-110 dBm", threshold="25 s", method="fedavg", solver=solver
    )
    path.write_text(text)
    lines = "time [s],a [dB],b [dB],c [dB],d [dB]\n0,inf,90,90,90\n500,90,90,90,90\n"
    (tmp_path / "losses.csv").write_text(lines)
    traced = "network.channel.path_loss={model: trace, file: losses.csv, end: hold}"
    run = simulate(load(path, [traced, "network.downlink={mode: unicast, tx_power: 40 dBm}"]))
    assert run.device_rounds.status.tolist() == ["infeasible", "arrived", "arrived", "arrived"]
    assert run.rounds.latency_s[0] <= 25.0
