"""Devices that leave out the steps for which the threshold leaves no time."""

from __future__ import annotations

import math

import pytest

from edgesim import load, simulate
from edgesim.errors import EdgesimError
from edgesim.runs.setup import set_up
from fl.contracts import Job, Payload, Phase, Stage, Work
from fl.errors import LearningError
from fl.training.partial_work import steps_in_time, with_steps


@pytest.fixture
def scenario(three):
    return lambda *changes: three("clock={mode: deadline, partial: planned}", *changes)


def test_sixteen_steps_fit_into_what_download_and_upload_leave():
    """T_th 1 s, down 0.2 s, up 0.15 s, 0.04 s a step: 16.25."""
    assert steps_in_time(1.0 - 0.2 - 0.15, 0.04) == 16
    assert steps_in_time(0.4, 0.1) == 4 and steps_in_time(0.09, 0.1) == 0
    assert steps_in_time(-1.0, 0.1) == 0


def test_all_steps_are_the_same_job_and_fewer_cost_their_part():
    phases = Phase(0, 1, 3, 0.1), Phase(0, 1, 8, 0.1, submodel=tuple(range(8)))
    stages = Stage("personal", Work(1.0, 2.0)), Stage("global", Work(8.0, 16.0))
    job = Job(0, 0, phases, stages, Payload(0.0, 1.0), 0.0)
    assert with_steps(job, 8) is job
    part = with_steps(job, 2)
    assert part.phases[0] is phases[0] and part.phases[1].steps == 2
    assert part.phases[1].submodel == (0, 1)
    assert part.stages == (stages[0], Stage("global", Work(2.0, 4.0)))


def test_a_slow_device_is_in_time_with_fewer_steps(scenario):
    """Device 0 makes all steps, device 1 some, device 2 cannot make one and is late."""
    run, whole = simulate(scenario()), simulate(scenario("clock.partial=none"))
    first, before = (each.device_rounds[each.device_rounds["round"] == 0] for each in (run, whole))
    assert before.status.tolist() == ["arrived", "late", "late"]
    assert first.status.tolist() == ["arrived", "arrived", "late"]
    step = before.cycles[0] / 8
    done = first.cycles[1] / step
    assert done == pytest.approx(round(done)) and 1 <= round(done) < 8
    assert first.finish_s[1] <= 0.040 < first.finish_s[1] + step / 5e6
    assert first.cycles[0] == before.cycles[0]


def test_fednova_leaves_out_who_makes_no_step(scenario):
    """tau_2 = 0: the mean is that of devices 0 and 1, as if device 2 had not been asked."""
    method = "{name: fednova, lr: 0.1, local_steps: 8, participants: %d}"
    rule = ["learning.selection=round-robin"]
    every, two = (
        simulate(scenario(f"learning.method={method % n}", *rule, "rounds=1")) for n in (3, 2)
    )
    assert every.device_rounds.status.tolist() == ["arrived", "arrived", "late"]
    assert two.device_rounds.status.tolist() == ["arrived", "arrived"]
    assert every.device_rounds.cycles[:2].tolist() == two.device_rounds.cycles.tolist()
    assert every.scores.loss.tolist() == two.scores.loss.tolist()


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fednova"])
def test_its_update_is_that_of_a_run_with_so_few_steps(scenario, method):
    """Device 1 alone: as with local_steps of what it has time for, bit for bit."""
    slow = "devices=[{count: 1, tx_power: 23 dBm, cpu: {frequency: 5 MHz, flops_per_cycle: 4}}]"
    own = f"learning.method={{name: {method}, lr: 0.1, local_steps: 8}}"
    run = simulate(scenario(slow, own))
    done = round(8 * run.device_rounds.cycles[0] / simulate(scenario(
        slow, own, "clock={mode: synchronous}", "rounds=1")).device_rounds.cycles[0])  # fmt: skip
    assert 1 <= done < 8
    fewer = simulate(scenario(slow, own, f"learning.method.local_steps={done}"))
    assert run.scores.loss.tolist() == fewer.scores.loss.tolist()
    assert run.rounds.time_s.tolist() == pytest.approx(fewer.rounds.time_s.tolist())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["learning.method={name: scaffold, lr: 0.1}"], "scaffold has no meaning for fewer steps"),
        (["clock.mode=synchronous"], "which reads no partial; remove it or write mode: deadline"),
        (
            ["learning={dataset: none, model: mlp, batch_size: 10, method: {name: fedavg}}"],
            "with learning.dataset: none there are no steps to leave out",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_sentence(scenario, changes, said):
    with pytest.raises((EdgesimError, LearningError)) as refused:
        set_up(scenario(*changes))
    assert said in str(refused.value) and "\n" not in str(refused.value)


ONE = "cpu: {frequency: 5.056 MHz, flops_per_cycle: 4}"  # 202,240 FLOP a step: 10 ms
BITS = 32.0 * (64 * 64 + 64 + 64 * 10 + 10)  # of the mlp: 153,920
LINKS = """
name: links
rounds: 1
network: {network}
devices:
{devices}
budget: {{latency_threshold: {threshold}}}
clock: {{mode: deadline, partial: planned}}
allocation: {{solver: equal}}
learning:
  dataset: digits
  partition: {{kind: iid}}
  samples_per_device: 20
  model: mlp
  batch_size: 10
  method: {{name: fedavg, lr: 0.01, local_steps: 400}}
"""
# Downlink 1 Mbit/s to the weak device (SNR 1), log2(1001) Mbit/s to the other; on their halves of
# the uplink's band both have an SNR of 7, so 1.5 Mbit/s.
WEAK_LISTENER = """
  bandwidth: 1 MHz
  noise: -180 dBm/Hz
  downlink: {mode: %s, tx_power: 1 mW}
  channel: {path_loss: {model: constant, loss: [90 dB, 120 dB]}}
"""
TWO = f"""
  - {{count: 2, tx_power: [3.5e-6 W, 3.5e-3 W], {ONE}}}
"""
# Both are 50 m from their own site and 100 m from the other, over all of its band: 7 mW arrive as
# 5.6e-12 W at the one and 7e-13 W at the other beside 1e-13 W of noise, an SINR of 7, so 3 Mbit/s;
# without interference 56, so log2(57) Mbit/s.
TWO_SITES = """
  bandwidth: 1 MHz
  noise: -160 dBm/Hz
  layout: {kind: sites, position: {list: [[0 m, 0 m], [150 m, 0 m]]}}
  channel: {path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 3}}
  interference: %s
"""
BETWEEN_THEM = f"""
  - count: 2
    position: {{list: [[50 m, 0 m], [100 m, 0 m]]}}
    tx_power: 7 mW
    {ONE}
"""
# SNR 7 over 25 blocks of 180 kHz, of which 14/15 of 0.92 carry data: 11.592 Mbit/s for the last
# 32 of 140 symbols of each 10 ms, so 2.6496 Mbit/s and 58.09 ms for the bits, and 7.71 ms more
# at worst.
TDD = """
  carrier: {frequency: 3.5 GHz, bandwidth: 5 MHz, noise_figure: 4 dB, tdd: DDDDDDDSUU, special: '6:4:4', scs: 15 kHz, tdd_clock: slots}
  channel: {path_loss: {model: constant, loss: 100 dB}}
"""  # noqa: E501
ALONE = f"""
  - {{count: 1, tx_power: 3.15 mW, {ONE}}}
"""


@pytest.fixture
def linked(tmp_path):
    """linked(network, devices, *changes) -> (status, steps) of the devices of one round."""

    def run(network, devices, *changes, threshold="1 s"):
        text = LINKS.format(network=network, devices=devices, threshold=threshold)
        (tmp_path / "links.yaml").write_text(text)
        rows = simulate(load(tmp_path / "links.yaml", changes)).device_rounds
        return rows.status.tolist(), (rows.compute_s / 0.01).tolist()

    return run


def test_a_broadcast_takes_everybody_as_long_as_its_weakest_listener(linked):
    """1 s - 153.92 ms - 102.61 ms leave 743.47 ms; to the strong device alone it takes 15.44 ms."""
    status, steps = linked(WEAK_LISTENER % "broadcast", TWO)
    assert status == ["arrived"] * 2 and steps == pytest.approx([74.0, 74.0])


def test_by_unicast_devices_wait_for_their_turns(linked):
    """Down 2 x 15.44 = 30.89 ms, and 15.44 + 153.92 = 169.36 ms: 866.5 and 728.0 ms are left."""
    strong_s, weak_s = BITS / 1e6 / math.log2(1001.0), BITS / 1e6
    left = [(1.0 - s - BITS / 1.5e6) / 0.01 for s in (2.0 * strong_s, strong_s + weak_s)]
    assert left == pytest.approx([86.65, 72.80], abs=0.01)
    status, steps = linked(WEAK_LISTENER % "unicast", TWO)
    assert status == ["arrived"] * 2 and steps == pytest.approx([86.0, 72.0])


@pytest.mark.parametrize(("interference", "up_s"), [("full", 0.0513067), ("none", 0.0263889)])
def test_uploads_are_counted_with_the_interference_of_the_plan(linked, interference, up_s):
    """Planned 94 and 97 steps of 10 ms; cut at 1 s less the upload."""
    network = TWO_SITES % interference
    status, steps = linked(network, BETWEEN_THEM)
    assert status == ["arrived"] * 2 and steps == pytest.approx([int(100.0 - 100.0 * up_s)] * 2)
    status, steps = linked(network, BETWEEN_THEM, "clock.partial=cut")
    assert status == ["arrived"] * 2 and steps == pytest.approx(
        [100.0 - 100.0 * up_s] * 2, abs=1e-4
    )


def test_uploads_are_counted_with_the_slots_for_which_they_wait_at_worst(linked):
    """299 - 58.09 - 7.71 = 233.19 ms; with 24 steps the upload from 240 ms on ends at 299.56 ms."""
    status, steps = linked(TDD, ALONE, threshold="299 ms")
    assert status == ["arrived"] and steps == pytest.approx([23.0])
