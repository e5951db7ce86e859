"""What it costs that devices move: seconds of CPU per simulated second.

    python benchmarks/mobility.py [--devices 570] [--seconds 200]

Random waypoints at walking speed (0.5 to 1.5 m/s) in an urban macro cell: the positions alone,
every 40 ms as a handover samples them; and the gains, with line of sight, shadowing and K factor by
position, at the default refresh and every 100 ms. To reach with 570 devices: under 0.1 s for the
gains at the default refresh.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)  # else this file would be the package of its name

from edgesim.network.mobility.moving_channel import MovingChannel  # noqa: E402
from edgesim.runs.setup import set_up  # noqa: E402
from edgesim.scenario.loader import load  # noqa: E402

MOVING = (
    "devices=[{{count: {count}, tx_power: 23 dBm, position: {{ring: [35 m, 290 m]}}, mobility: "
    "{{waypoint: {{speed: {{uniform: [0.5 m/s, 1.5 m/s]}}}}}}, "
    "cpu: {{frequency: 2 GHz, cycles_per_weight: 5}}}}]"
)


def cpu_per_second(what: Callable[[float], object], step_s: float, seconds: float) -> float:
    """CPU seconds per simulated second of asking for something at every step."""
    what(0.0)
    begun = time.process_time()
    for time_s in np.arange(1, seconds / step_s) * step_s:
        what(float(time_s))
    return (time.process_time() - begun) / seconds


def main() -> None:
    """Measure and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=570)
    parser.add_argument("--seconds", type=float, default=200.0)
    given = parser.parse_args()
    scenario = ROOT / "scenarios" / "urban-macro.yaml"
    for refresh in ([], ["network.channel.refresh=100 ms"]):
        changes = ["~schemes", MOVING.format(count=given.devices), *refresh]
        channel = set_up(load(scenario, changes)).channel
        assert isinstance(channel, MovingChannel)
        if not refresh:
            cost = cpu_per_second(channel.movement.at, 0.04, given.seconds)
            print(f"positions every 40 ms: {cost:.4f} s of CPU per simulated second")
        cost = cpu_per_second(channel.large_scale_at, channel.refresh_s, given.seconds)
        print(f"gains every {channel.refresh_s:.3g} s: {cost:.4f} s of CPU per simulated second")


if __name__ == "__main__":
    main()
