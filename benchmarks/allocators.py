"""What a solve costs: milliseconds and memory by number of devices, and the ratio to cvxpy.

    python benchmarks/allocators.py [--most 1000000]

Prints two tables:

(i) The median time of `allocate` for 10 to 1,000,000 devices, certificate included, per method and
    noise, and the peak memory of a process that makes the largest problem and solves it once. To
    reach with kkt: 10 devices under 0.15 ms, 1e6 under 1 s and 1 GiB; with the hull 0.3 ms and 4 s.
(ii) `allocate` beside re-solves of the parametrised cvxpy problem on the same problems, and how far
    the objectives are apart. To reach with kkt: 200 times faster at 1000 devices. Under "refused"
    are problems on which the certificate refuses the answer of Clarabel.

All of `allocate` with its certificate is timed, for a problem that it has not seen before; making
the problem, which checks its numbers, is not. For cvxpy this is setting the parameters, its
canonicalisation, Clarabel, and the same certificate (which takes no more than all of `kkt`);
building the cvxpy problem is not. Both solve ten problems in a row, then the other does: after tens
of milliseconds of cvxpy the first fast solve finds the caches of the processor cold (about 1.4
times slower), which a simulation does not see. Compare ratios from one run only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)  # else this file would be the package of its name

from edgesim.network.adaptation.link_adaptation import make_law  # noqa: E402
from edgesim.scenario.radio.adaptation_schema import AdaptationSection  # noqa: E402
from solvers import EnergyTerms, PruningProblem, UncertifiedError, allocate  # noqa: E402

BAND_HZ, POWER_W, CLOCK_HZ = 20e6, 0.63, 3e9  # a device
METHODS = ("kkt", "fair", "latency", "energy")
ROW, TURNS = 10, 2  # problems that are solved in a row, and how often
REFERENCE = {
    "kkt": "convex",
    "fair": "convex-fair",
    "latency": "convex-latency",
    "energy": "convex-energy",
}


def problem(devices: int, seed: int, noise: str = "power", small: bool = False) -> PruningProblem:
    """A random cell around Liu's setting, 20 MHz a device, 5 to 33 dB in an equal share of it.

    With the noise hull it is a density, and the rates are those of the schemes of 64QAM (3GPP TS
    38.214, Table 5.1.3.1-1). Unpruned uploads take about twice the slack; small: a tenth of that,
    which all can send.
    """
    rng = np.random.default_rng(seed)
    snr = 10 ** rng.uniform(0.5, 3.3, devices) / (1 if noise == "power" else devices)
    law = make_law(AdaptationSection(rate="mcs")) if noise == "hull" else None
    bits_per_hz = np.log2(1.0 + snr) if law is None else law.efficiency(snr)
    cycles = rng.uniform(3e6, 18e6, devices)
    return PruningProblem(
        bits=rng.uniform(0.5e6, 1e6, devices) if small else 1.3e7,
        compute_s=cycles / CLOCK_HZ,
        slack_s=rng.uniform(18e-3, 24e-3, devices),
        rate_bps=BAND_HZ * devices * bits_per_hz,
        snr=None if noise == "power" else snr,
        law=law,
        energy=EnergyTerms(cycles, 1e-28, 0.0, CLOCK_HZ, POWER_W, snr / POWER_W),
    )


def timed(method: str, p: PruningProblem) -> tuple[float, float]:
    """(seconds, objective), nan where the certificate refuses."""
    begin = time.perf_counter()
    try:
        objective = allocate(p, method).objective
    except UncertifiedError:
        objective = np.nan
    return time.perf_counter() - begin, objective


def repeats(devices: int) -> int:
    return 400 if devices <= 10 else 60 if devices <= 1000 else 3


def costs(most: int) -> None:
    """Fresh problems every time: nothing that a problem remembers is timed away."""
    sizes = [k for k in (10, 1_000, 100_000, 1_000_000) if k <= most]
    print(
        f"{'method':10}{'noise':9}"
        + "".join(f"{k:>12}" for k in sizes)
        + "   devices; ms, and peak GiB of the last"
    )
    for method in METHODS:
        for noise in ("power", "density", "hull") if method == "kkt" else ("power", "density"):
            medians = []
            for devices in sizes[:-1]:
                spent_s = [
                    timed(method, fresh(method, devices, i, noise))[0]
                    for i in range(repeats(devices))
                ]
                medians.append(float(np.median(spent_s)))
            last_s, gib = alone(method, sizes[-1], noise)
            times = "".join(f"{1e3 * s:12.4g}" for s in (*medians, last_s))
            print(f"{method:10}{noise:9}{times}{gib:10.2f}", flush=True)


def fresh(method: str, devices: int, seed: int, noise: str) -> PruningProblem:
    return problem(devices, seed, noise, small=method == "energy")


def alone(method: str, devices: int, noise: str) -> tuple[float, float]:
    """(seconds of one solve, peak memory in GiB) of a process of its own."""
    command = [sys.executable, __file__, "--once", method, str(devices), noise]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    spent_s, gib = map(float, done.stdout.split())
    return spent_s, gib


def once(method: str, devices: str, noise: str) -> None:
    import resource

    timed(method, fresh(method, 10, 0, noise))  # what is imported on the way
    spent_s, _ = timed(method, fresh(method, int(devices), 0, noise))
    print(spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def ratios() -> None:
    print(
        f"\n{'method':10}{'noise':9}{'devices':>9}{'ms':>10}{'cvxpy ms':>10}"
        f"{'ratio':>8}{'apart':>10}{'refused':>9}"
    )
    for method in METHODS:
        for noise in ("power", "density"):
            most = 250 if method == "energy" else 1000  # cvxpy has no memory for more of energy
            for devices in (10, 100, most):
                compare(method, noise, devices)


def compare(method: str, noise: str, devices: int) -> None:
    """Both in turn, `ROW` problems in a row."""
    ours, theirs, apart = [], [], []
    timed(REFERENCE[method], fresh(method, devices, 0, noise))  # builds the cvxpy problem
    for turn in range(TURNS):
        problems = [fresh(method, devices, 1 + ROW * turn + i, noise) for i in range(ROW)]
        fast = [timed(method, p) for p in problems]
        slow = [timed(REFERENCE[method], p) for p in problems]
        ours += [spent_s for spent_s, _ in fast]
        theirs += [spent_s for spent_s, _ in slow]
        apart += [abs(a - b) / max(a, 1e-300) for (_, a), (_, b) in zip(fast, slow, strict=True)]
    refused, count = int(np.isnan(apart).sum()), len(apart)
    ours_ms, theirs_ms = 1e3 * float(np.median(ours)), 1e3 * float(np.median(theirs))
    worst = np.nan if np.isnan(apart).all() else np.nanmax(apart)
    print(
        f"{method:10}{noise:9}{devices:9}{ours_ms:10.3f}{theirs_ms:10.1f}"
        f"{theirs_ms / ours_ms:8.0f}{worst:10.1e}{refused:5} of {count}"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument(
        "--most", type=int, default=1_000_000, help="devices of the largest problem"
    )
    options.add_argument(
        "--once", nargs=3, metavar=("METHOD", "DEVICES", "NOISE"), help=argparse.SUPPRESS
    )
    given = options.parse_args()
    if given.once:
        once(*given.once)
    else:
        costs(given.most)
        ratios()
