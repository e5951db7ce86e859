"""CPU time of a round of 57 sectors and 570 devices whose uploads disturb each other.

    python benchmarks/interference.py

Static channel, interference `events`: to reach under 0.4 s a round, plans included. Beside it the
floor: the events of a round in bare numpy, where each takes the powers of those who send, the
interference of all sectors and the rates of all devices.
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

DEVICES, SECTORS, ROUNDS = 570, 57, 3
NETWORK = f"""
name: interference
rounds: {ROUNDS}
network:
  bandwidth: 18.36 MHz
  carrier: {{frequency: 3.5 GHz}}
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


def floor_s(events: int) -> float:
    """CPU seconds of so many events in numpy."""
    rng = np.random.default_rng(0)
    gain, serving = rng.random((DEVICES, SECTORS)), rng.integers(0, SECTORS, DEVICES)
    power, own = rng.random(DEVICES), gain[np.arange(DEVICES), serving]
    begin = time.process_time()
    for event in range(events):
        sending = np.where(np.arange(DEVICES) > event // 2, power, 0.0)
        density = np.einsum("k,ks->s", sending, gain)
        np.log1p(own * power / (1.0 + density[serving])).min()
    return time.process_time() - begin


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.yaml"
        file.write_text(NETWORK)
        print(f"{'interference':>16}{'CPU s a round':>15}{'mean upload ms':>16}")
        for mode in ("none", "full", "events"):
            scenario = load(file, [f"network.interference={mode}"])
            once = _seconds(scenario.with_rounds(1))[0]
            spent, upload_s = _seconds(scenario)
            print(f"{mode:>16}{(spent - once) / (ROUNDS - 1):15.3f}{1e3 * upload_s:16.1f}")
    print(f"{'numpy floor':>16}{floor_s(2 * DEVICES):15.3f}")


def _seconds(scenario) -> tuple[float, float]:
    begin = time.process_time()
    run = simulate(scenario)
    return time.process_time() - begin, float(run.device_rounds["upload_s"].mean())


if __name__ == "__main__":
    main()
