"""Calibration of layouts: coupling loss and geometry of 57 sectors beside reference percentiles.

    python benchmarks/calibration.py --figure docs/images/calibration.png

Large scale, without fast fading: 30 drops of 570 devices for each of four cases after 3GPP TR
38.901, clause 7.8. The references are percentiles of two implementations that share no code (an
own one with 41,040 devices, and Sionna 2.2.0 with the wrap-around of this project). The uplink is
that of case C: every device sends over its share of its sector, with power control. Its rates are
then those of interference by resource block, over those of the mean over the band.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

if __name__ == "__main__":  # else allocators.py beside this file would be the package of its name
    sys.path[0] = str(Path(__file__).parent.parent)

from edgesim.network.adaptation.power_control import PowerControl
from edgesim.network.device import draw_fleet
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.resource_grid import ResourceGrid
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.interference.uplink_rates import UplinkRates
from edgesim.network.layout.cell_drop import make_drop
from edgesim.network.layout.coupling import make_coupling
from edgesim.network.layout.downlink_geometry import downlink_sinr, downlink_sir
from edgesim.scenario import Scenario, load
from edgesim.seeds import Seeds
from fl.contracts import Array, Grant

SCENARIO = Path(__file__).parents[1] / "scenarios" / "urban-macro.yaml"
PERCENTILES = (5, 25, 50, 75, 95)
DROPS, DEVICES = 30, 570
NOISE_W = 10.0 ** ((-174.0 + 9.0 - 30.0) / 10.0) * 20e6  # of a device: noise figure 9 dB, 20 MHz
INDOOR = "walls: {indoor: 0.8, high_loss: 0, heights: floors}"
COLUMN, ELEMENT = "antenna: {kind: column}", "antenna: {kind: element}"


@dataclass(frozen=True)
class Case:
    """One case: its propagation, and percentiles 5/25/50/75/95 of the references, dB.

    Args:
        label: in figure and tables.
        path_loss: YAML of the section.
        frequency: of the carrier.
        power_dbm: of a sector.
        loss_db: coupling loss.
        sir_db: geometry without noise.
        sinr_db: geometry with noise.
    """

    label: str
    path_loss: str
    frequency: str
    power_dbm: float
    loss_db: tuple[float, ...]
    sir_db: tuple[float, ...]
    sinr_db: tuple[float, ...]


CASES = {
    "A": Case(
        "UMa, 6 GHz, 80 % indoor",
        f"{{model: uma, {COLUMN}, {INDOOR}}}",
        "6 GHz",
        49.0,
        (83.7, 101.8, 113.4, 124.1, 136.2),
        (-1.4, 2.5, 8.0, 16.0, 25.4),
        (-2.2, 2.0, 7.5, 15.4, 25.2),
    ),
    "B": Case(
        "UMi, 6 GHz, 80 % indoor",
        f"{{model: umi, {COLUMN}, {INDOOR}}}",
        "6 GHz",
        44.0,
        (73.9, 91.7, 104.3, 115.3, 128.5),
        (-2.1, 1.8, 6.8, 14.4, 24.8),
        (-2.5, 1.5, 6.5, 14.1, 24.5),
    ),
    "C": Case(
        "UMa, 3.5 GHz, outdoor",
        f"{{model: uma, {COLUMN}}}",
        "3.5 GHz",
        49.0,
        (70.3, 85.6, 96.1, 103.7, 111.6),
        (-1.4, 2.3, 7.7, 15.5, 24.9),
        (-1.4, 2.3, 7.7, 15.5, 24.9),
    ),
    "D": Case(
        "UMi, 3.5 GHz, outdoor, one element",
        f"{{model: umi, {ELEMENT}}}",
        "3.5 GHz",
        44.0,
        (67.9, 76.2, 82.7, 89.6, 97.8),
        (-3.1, 0.4, 4.6, 10.8, 20.1),
        (-3.1, 0.4, 4.6, 10.8, 20.1),
    ),
}
# rates by resource block over those of the mean interference, in case C: mean, percentiles 5, 95
BY_BLOCK = (1.22, 1.08, 1.46)
BLOCKS, NOISE_DENSITY = 51, 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)  # of a sector
BAND_HZ = BLOCKS * 360e3
# percentiles 5/50/95 of the uplink in case C: power, dBm; interference over thermal, SINR, SNR, dB
UPLINK = {
    "power": (-19.1, 1.3, 14.3),
    "interference over thermal": (5.3, 7.5, 9.9),
    "SINR": (0.9, 5.0, 10.4),
    "SNR": (9.2, 12.4, 17.5),
}


@dataclass(frozen=True, eq=False)
class Drop:
    """One drop of a case.

    Args:
        coupling: gains [K, S], linear.
        home: nearest site of each device, int [K].
    """

    coupling: Array
    home: Array


@cache
def scenario_of(case: Case) -> Scenario:
    """The scenario of a case."""
    one = "tx_power: 23 dBm, cpu: {frequency: 2 GHz, cycles_per_weight: 5}"
    changes = [
        "network.layout={kind: hex}",
        f"network.channel.path_loss={case.path_loss}",
        "network.channel.fading=none",
        f"network.carrier.frequency={case.frequency}",
        f"devices.0={{count: {DEVICES}, {one}}}",
    ]
    return load(SCENARIO, ["~schemes", *changes])


def drop(case: Case, seed: int) -> Drop:
    """One drop of devices over the 19 cells of a case."""
    scenario, streams = scenario_of(case), Seeds(seed)
    network = scenario.network
    fleet = draw_fleet(scenario.devices, streams, make_drop(network, streams))
    position_m = np.stack([fleet.x_m, fleet.y_m], axis=1)
    coupling = make_coupling(network, fleet, streams)
    return Drop(coupling.at(position_m).coupling, coupling.sites.nearest(position_m)[0])


def downlink_db(case: Case, gains: Array) -> dict[str, Array]:
    """Coupling loss, geometry without and with noise of devices [K], dB."""
    power_w = 10.0 ** (case.power_dbm / 10.0) * 1e-3
    ratios = {
        "coupling loss": 1.0 / gains.max(axis=1),
        "SIR": downlink_sir(gains),
        "SINR": downlink_sinr(gains, power_w, NOISE_W),
    }
    return {name: 10.0 * np.log10(ratio) for name, ratio in ratios.items()}


def sent(gains: Array, whole: bool = False) -> tuple[Couplings, Array, Array]:
    """Couplings, shares and powers [K], W, of devices that all send; see `uplink_db`.

    Args:
        gains: of one drop [K, S], linear.
        whole: shares are whole numbers of resource blocks, as equal as possible.
    """
    couplings = Couplings(gains, gains.argmax(axis=1))
    share = 1.0 / np.bincount(couplings.serving, minlength=couplings.sectors)[couplings.serving]
    for s in range(couplings.sectors) if whole else ():
        devices = np.flatnonzero(couplings.serving == s)
        edges = np.arange(len(devices) + 1) * BLOCKS // max(len(devices), 1)
        share[devices] = np.diff(edges) / BLOCKS
    control, most_w = PowerControl(10.0**-11.5, 0.8), 10.0**-0.7
    return couplings, share, control.sent_w(share * BAND_HZ, most_w, couplings.own)


def uplink_db(gains: Array) -> dict[str, Array]:
    """Power [K], dBm, interference over thermal [S], SINR and SNR [K], dB, of one drop.

    Everybody sends, over equal shares of its sector: P0 -85 dBm, alpha 0.8, at most 23 dBm, at 51
    resource blocks of 30 kHz; noise figure of the sectors 5 dB.
    """
    couplings, share, power_w = sent(gains)
    noise = NOISE_DENSITY
    heard = couplings.interference(power_w / BAND_HZ)
    received = power_w * couplings.own / (share * BAND_HZ)
    ratios = {
        "power": power_w / 1e-3,
        "interference over thermal": 1.0 + heard / noise,
        "SINR": received / (noise + heard[couplings.serving]),
        "SNR": received / noise,
    }
    return {name: 10.0 * np.log10(ratio) for name, ratio in ratios.items()}


def by_block(gains: Array, seeds: range = range(100)) -> Array:
    """Rates by resource block over those of the mean interference [N, K], in `uplink_db`'s uplink.

    Args:
        gains: of one drop [K, S], linear.
        seeds: of the first blocks of the sectors, N.
    """
    couplings, share, power_w = sent(gains, whole=True)
    bands, everybody = SectorBands(couplings), np.ones(len(share), dtype=bool)
    bands.grant([Grant(k, float(b), 0.0, 1e9, 0.0) for k, b in enumerate(share)])
    bands.sending[:] = True
    channel = SectorChannel(couplings, bandwidth_hz=BAND_HZ, noise_w_per_hz=NOISE_DENSITY)

    def rates_bps(grid: ResourceGrid | None) -> Array:
        rates = UplinkRates(couplings, channel, bands, grid=grid)
        rates.power_w[:] = power_w
        return rates(everybody, 0.0)[0]

    mean = rates_bps(None)
    return np.array([rates_bps(ResourceGrid(bands, BLOCKS, Seeds(n))) / mean for n in seeds])


def main(figure: str | None, drops: int) -> None:
    """Print the percentiles of all cases beside the references; draw them."""
    found = {}
    for name, case in CASES.items():
        each = [drop(case, seed) for seed in range(drops)]
        found[name] = downlink_db(case, np.concatenate([one.coupling for one in each]))
        print(f"{name}: {case.label}, {drops * DEVICES} devices; reference, here")
        for what, target in _targets(case).items():
            _row(what, target, np.percentile(found[name][what], PERCENTILES))
        if name == "C":
            uplink = [uplink_db(one.coupling) for one in each]
            print("C, uplink with power control, percentiles 5, 50, 95; reference, here")
            for what, target in UPLINK.items():
                values = np.concatenate([one[what] for one in uplink])
                _row(what, target, np.percentile(values, (5, 50, 95)))
            ratio = np.concatenate([by_block(one.coupling) for one in each], axis=1)
            print("C, rates by resource block over those of the mean: mean, percentiles 5, 95")
            for what, values in (("over 100 places", ratio.mean(axis=0)), ("of one place", ratio)):
                found_here = values.mean(), *np.percentile(values, (5, 95))
                texts = [" / ".join(f"{x:.2f}" for x in row) for row in (BY_BLOCK, found_here)]
                print(f"  {what:26s} {texts[0]:36s} {texts[1]}")
    if figure is not None:
        draw(found, figure)


def _targets(case: Case) -> dict[str, tuple[float, ...]]:
    return {"coupling loss": case.loss_db, "SIR": case.sir_db, "SINR": case.sinr_db}


def _row(what: str, target: tuple[float, ...], here: Array) -> None:
    worst = np.abs(here - np.array(target)).max()
    texts = [" / ".join(f"{value:.1f}" for value in row) for row in (target, here)]
    print(f"  {what:26s} {texts[0]:36s} {texts[1]:36s} off by at most {worst:.2f} dB")


def draw(found: dict[str, dict[str, Array]], path: str) -> None:
    """The distributions of all cases as lines, with the references as points."""
    import matplotlib.pyplot as plt

    # of Okabe and Ito, which stay apart without colour vision
    palette = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.4), layout="constrained")
    levels = np.linspace(0.5, 99.5, 199)
    for (name, case), colour in zip(CASES.items(), palette, strict=True):
        for ax, what in zip(axes, ("coupling loss", "SINR"), strict=True):
            ax.plot(np.percentile(found[name][what], levels), levels, color=colour, lw=1.2)
            target = _targets(case)[what]
            ax.plot(target, PERCENTILES, "o", color=colour, ms=4, label=f"{name}: {case.label}")
    axes[0].set(xlabel="coupling loss, dB", ylabel="devices, %", ylim=(0, 100))
    axes[1].set(xlabel="downlink SINR, dB", ylim=(0, 100), xlim=(-8, 30))
    for ax in axes:
        ax.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figure", help="file of the figure")
    parser.add_argument("--drops", type=int, default=DROPS, help="drops of 570 devices")
    main(**vars(parser.parse_args()))
