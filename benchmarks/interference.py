"""CPU time of a round of 57 sectors and 570 devices whose uploads disturb each other.

    python benchmarks/interference.py

(i) Static channel: seconds a round, plans included; to reach with interference `events`: under 0.4,
with `resolved`, by 51 resource blocks: under 2.
(ii) Rayleigh blocks of 5 ms, `events`: seconds per simulated second, plans included; to reach: 0.3
where links fade to their own sector, 0.6 where all do.
(iii) 1e5 devices of one cell without training, a round: a noise density without and with the
schemes of 64QAM (`network.adaptation`); to reach: 1.3 times as long at most.
(iv) Gains of 1e6 devices of `uma` before fading, once in a run; to reach: 1.5 s.

Beside them the floor: the events of a round, or the blocks of a second, in bare numpy, where each
takes the powers of those who send, the interference of all sectors and the rates of all devices;
by block, where every sector has one owner of each; of (iv) the cosines of two fields, of line of
sight and of shadowing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)

from edgesim import load, simulate  # noqa: E402
from edgesim.network.propagation.building_penetration import draw_surroundings  # noqa: E402
from edgesim.network.propagation.large_scale import SitePropagation  # noqa: E402
from edgesim.network.propagation.path_loss import path_gains  # noqa: E402
from edgesim.network.propagation.random_field import CHUNK, WAVES  # noqa: E402
from edgesim.seeds import Seeds  # noqa: E402

DEVICES, SECTORS, BLOCKS, ROUNDS = 570, 57, 51, 3
NETWORK = f"""
name: interference
rounds: {ROUNDS}
network:
  carrier: {{frequency: 3.5 GHz, bandwidth: 20 MHz}}
  noise: -169 dBm/Hz
  layout: {{kind: hex}}
  channel: {{path_loss: {{model: uma, antenna: {{kind: column}}}}}}
devices:
  - count: {DEVICES}
    tx_power: 23 dBm
    cpu: {{frequency: {{uniform: [1 GHz, 3 GHz]}}, cycles_per_weight: 5}}
budget: {{latency_threshold: 1 s}}
learning: {{dataset: none, model: liu-cnn, batch_size: 20, method: {{name: liu, personal_lr: 0.02, global_lr: 0.02}}}}
"""  # noqa: E501


FADING = "network.channel.fading={{kind: rayleigh, coherence: 5 ms, links: {}}}"
CROWD = """
name: crowd
rounds: 3
network:
  bandwidth: 2000 GHz
  noise: -190 dBm/Hz
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 100000, tx_power: 28 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
allocation: {solver: kkt}
learning: {dataset: none, model: liu-cnn, batch_size: 128, method: {name: liu, personal_lr: 0.02, global_lr: 0.02}}
"""  # noqa: E501


def floor_s(events: int, fading: str = "none") -> float:
    """CPU seconds of so many events in numpy; with the fading of own or all links redrawn."""
    rng = np.random.default_rng(0)
    gain, serving = rng.random((DEVICES, SECTORS)), rng.integers(0, SECTORS, DEVICES)
    power, own = rng.random(DEVICES), gain[np.arange(DEVICES), serving]
    begin = time.process_time()
    for event in range(events):
        sending = np.where(np.arange(DEVICES) > event // 2, power, 0.0)
        own = own if fading == "none" else rng.standard_exponential(DEVICES)
        gain = gain if fading != "all" else rng.standard_exponential((DEVICES, SECTORS))
        density = np.einsum("k,ks->s", sending, gain)
        np.log1p(own * power / (1.0 + density[serving])).min()
    return time.process_time() - begin


def floor_by_block_s(events: int) -> float:
    """CPU seconds of so many events in numpy, with an owner of each block in every sector."""
    rng = np.random.default_rng(0)
    gain, serving = rng.random((DEVICES, SECTORS)), rng.integers(0, SECTORS, DEVICES)
    power, own = rng.random(DEVICES), gain[np.arange(DEVICES), serving]
    owner = rng.integers(0, DEVICES, (SECTORS, BLOCKS))
    begin = time.process_time()
    for event in range(events):
        sending = np.where(np.arange(DEVICES) > event // 2, power, 0.0)
        density = np.einsum("jr,jrs->sr", sending[owner], gain[owner])
        rate = np.log1p(own[owner] * sending[owner] / (1.0 + density))
        np.bincount(owner.ravel(), rate.ravel(), DEVICES).min()
    return time.process_time() - begin


def gains_s(count: int = 1_000_000) -> tuple[float, float]:
    """(CPU seconds of the gains of devices up to 250 m away, of their cosines alone)."""
    rng = np.random.default_rng(0)
    distance_m, angle = 250.0 * np.sqrt(rng.random(count)), 2.0 * np.pi * rng.random(count)
    position_m = distance_m[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height_m, phase = np.full(count, 1.5), rng.random((CHUNK, WAVES), dtype=np.float32)
    begin = time.process_time()
    around = draw_surroundings("uma", height_m, 3.5, Seeds(0))
    path_gains(SitePropagation("uma", 25.0, 3.5, Seeds(0), around).at(position_m))
    spent_s = time.process_time() - begin
    for _ in range(2 * count // CHUNK):
        np.cos(phase)
    return spent_s, time.process_time() - begin - spent_s


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.yaml"
        file.write_text(NETWORK)
        print(f"{'interference':>16}{'CPU s a round':>15}{'mean upload ms':>16}")
        for mode in ("none", "full", "events", "resolved"):
            spent_s, _, upload_s = _further_rounds(load(file, [f"network.interference={mode}"]))
            print(f"{mode:>16}{spent_s / (ROUNDS - 1):15.3f}{1e3 * upload_s:16.1f}")
        print(f"{'numpy floor':>16}{floor_s(2 * DEVICES):15.3f}")
        print(f"{'by block':>16}{floor_by_block_s(2 * DEVICES):15.3f}", flush=True)
        print(f"{'fading links':>16}{'CPU s per s':>15}{'numpy floor':>16}")
        for links in ("own", "all"):
            spent_s, simulated_s, _ = _further_rounds(load(file, [FADING.format(links)]))
            print(f"{links:>16}{spent_s / simulated_s:15.3f}{floor_s(200, links):16.3f}")
        file.write_text(CROWD)
        print(f"{'1e5 devices':>16}{'CPU s a round':>15}")
        for rate in ("shannon", "mcs"):
            spent_s, *_ = _further_rounds(load(file, [f"network.adaptation={{rate: {rate}}}"]))
            print(f"{rate:>16}{spent_s / (ROUNDS - 1):15.3f}", flush=True)
    print("gains of 1e6 devices: {:.2f} s of CPU, cosines alone {:.2f}".format(*gains_s()))


def _further_rounds(scenario) -> tuple[float, float, float]:
    """(CPU seconds of all rounds but the first, their simulated time, mean upload), s."""
    once_s, first_s, _ = _seconds(scenario.with_rounds(1))
    spent_s, simulated_s, upload_s = _seconds(scenario)
    return spent_s - once_s, simulated_s - first_s, upload_s


def _seconds(scenario) -> tuple[float, float, float]:
    begin = time.process_time()
    run = simulate(scenario)
    spent_s = time.process_time() - begin
    return (
        spent_s,
        float(run.rounds["latency_s"].sum()),
        float(run.device_rounds["upload_s"].mean()),
    )


if __name__ == "__main__":
    main()
