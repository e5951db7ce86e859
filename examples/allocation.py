"""Who gets which share of the band, and where the closed form of Liu et al. leaves its bounds.

Four devices of Liu's setting share a band. Their pruning ratios rho and shares b are drawn against
the latency threshold T_th and against the bandwidth B: exactly (`kkt`, with every bound) and as
eqs. (54), (58) are printed. Run it with `python examples/allocation.py [picture.png]`, or cell by
cell in an editor that knows `# %%`.
"""

# %% The cell: 28 dBm through 98 to 101 dB of path loss, -110 dBm of noise, the CNN of Liu, Sec. V
from __future__ import annotations

import sys

import matplotlib
import numpy as np

from solvers import Allocation, PruningProblem, allocate

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LOSS_DB = np.array([98.0, 99.0, 100.0, 101.0])
SNR = 10 ** ((28.0 - LOSS_DB + 110.0) / 10)
GLOBAL, PERSONAL = 402_826, 52_096  # weights that travel, weights that stay
CYCLE_S = 5 / 3e9  # seconds per weight and step: 5 cycles at 3 GHz
THRESHOLDS_S = np.linspace(6e-3, 60e-3, 217)
BANDS_HZ = np.linspace(10e6, 400e6, 196)


def problem(threshold_s: float, bandwidth_hz: float) -> PruningProblem:
    """5 personal steps and 1 of warm-up come before 5 on the global part: Liu, Section IV."""
    before_s = (5 * PERSONAL + GLOBAL) * CYCLE_S
    return PruningProblem(
        bits=32 * GLOBAL,
        compute_s=5 * GLOBAL * CYCLE_S,
        slack_s=threshold_s - before_s,
        rate_bps=bandwidth_hz * np.log2(1 + SNR),
    )


# %% One allocation, in words
def explained(threshold_s: float = 25e-3, bandwidth_hz: float = 80e6) -> str:
    """One point of the curves, explained by the solver."""
    return allocate(problem(threshold_s, bandwidth_hz)).explain()


# %% Both axes: exact, and as printed
def swept(method: str) -> tuple[list[Allocation], list[Allocation]]:
    """Allocations against T_th at 80 MHz, and against B at 25 ms."""
    against_time = [allocate(problem(t, 80e6), method) for t in THRESHOLDS_S]
    return against_time, [allocate(problem(25e-3, b), method) for b in BANDS_HZ]


def outside(allocations: list[Allocation]) -> np.ndarray:
    """Where an allocation breaks a bound: a share or a ratio below 0 or above 1."""
    return np.array([bool(a.certificate.broken) for a in allocations])


# %% The picture
def draw(path: str = "allocation.png") -> None:
    """Pruning ratios above, shares below; against T_th left, against B right.

    Grey: the printed form is out of bounds.
    """
    exact, printed = swept("kkt"), swept("printed")
    axes_of = (
        (THRESHOLDS_S * 1e3, "latency threshold $T_{th}$, ms"),
        (BANDS_HZ / 1e6, "bandwidth $B$, MHz"),
    )
    figure, axes = plt.subplots(
        2, 2, figsize=(9, 6), sharex="col", sharey="row", layout="constrained"
    )
    for column, (x, label) in enumerate(axes_of):
        for row, (name, title) in enumerate(
            (("rho", "pruning ratio $\\rho_k$"), ("share", "share of the band $b_k$"))
        ):
            panel = axes[row, column]
            curves(panel, x, exact[column], printed[column], name)
            panel.set_ylim(-0.35, 1.15 if name == "rho" else 0.85)
            panel.set_xlim(x[0], x[-1])
            if column == 0:
                panel.set_ylabel(title)
        axes[1, column].set_xlabel(label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def curves(
    panel, x: np.ndarray, exact: list[Allocation], printed: list[Allocation], name: str
) -> None:
    """One panel: solid exact, dashed as printed; the bounds 0 and 1 as thin lines."""
    band = outside(printed)
    panel.fill_between(
        x, -2, 2, where=band, color="0.93", linewidth=0, step="mid", label="printed: out of bounds"
    )
    panel.axhline(0, color="0.6", linewidth=0.6)
    panel.axhline(1, color="0.6", linewidth=0.6)
    ours, theirs = (np.array([getattr(a, name) for a in each]) for each in (exact, printed))
    for k, colour in enumerate(plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(SNR)))):
        panel.plot(
            x, ours[:, k], color=colour, linewidth=1.8, label=f"device {k}, {LOSS_DB[k]:.0f} dB"
        )
        panel.plot(
            x,
            theirs[:, k],
            color=colour,
            linewidth=1.0,
            linestyle=(0, (4, 2)),
            label="as printed" if k == 3 else None,
        )


# %% All of it
if __name__ == "__main__":
    print(explained())
    for axis, allocations in zip(("T_th", "B"), swept("printed"), strict=True):
        broken = f"{outside(allocations).mean():.0%}"
        print(f"Against {axis} the printed form breaks a bound at {broken} of the points.")
    draw(*sys.argv[1:2])
