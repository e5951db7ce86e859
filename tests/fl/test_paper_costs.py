"""FLOPs, parameters and bits of the papers' tables, where the printed settings determine them."""

from math import ceil

import numpy as np
import pytest

from fl.accounting import Accounting, step_cost, submodel_cost
from fl.contracts import Work
from fl.models.architectures import build
from tests.edgesim.network.fleets import make_fleet

FEDLPS = Accounting(backward="twice", count_biases=True)  # FedLPS, released code
SPAFL = Accounting(backward="twice")  # SpaFL, eq. (50)
MNIST = build("fedlps-cnn", (1, 28, 28), 10)
CIFAR = build("vgg11", (3, 32, 32), 10)
CIFAR_100 = build("vgg13", (3, 32, 32), 100)
TINY = build("vgg16", (3, 64, 64), 200)
LENET = build("lenet5-caffe", (1, 28, 28), 10)


def at_least_one(share, units):  # FedLPS, eq. (5): k = max(1, floor(s J))
    return np.arange(units) < max(1, int(share * units + 1e-9))


def width(share, units):  # HeteroFL
    return np.arange(units) < ceil(share * units - 1e-9)


def hidden_units(architecture, share, rule, full=()):
    groups = [
        group
        for group in architecture.layout.groups.values()
        if group.hidden and group.name not in full
    ]
    return {group.name: rule(share, group.units) for group in groups}


def round_mflop(architecture, kept, iterations, batch):
    return FEDLPS.work(submodel_cost(architecture, kept, FEDLPS), iterations, batch).flops / 1e6


def rows_kept(architecture, share):
    return architecture.layout.expand(hidden_units(architecture, share, at_least_one), rows=True)


# --- FedLPS --------------------------------------------------------------------------------------


def test_a_forward_batch_of_mnist():
    everything = np.ones(MNIST.layout.size, dtype=bool)
    assert 32 * submodel_cost(MNIST, everything, FEDLPS).flops == 3 * 30_979_200
    assert 32 * step_cost(MNIST, everything, ~everything, FEDLPS).flops == 3 * 30_979_200
    assert 32 * submodel_cost(MNIST, rows_kept(MNIST, 0.5), FEDLPS).flops == 3 * 15_619_200


@pytest.mark.parametrize(
    ("share", "mflop", "bits_up"),
    [
        (1 / 16, 203.96, 58_400),
        (1 / 8, 301.65, 97_120),
        (1 / 4, 672.13, 183_360),
        (1 / 2, 1405.728, 358_880),
        (1, 2788.128, 698_880),
    ],
)
def test_the_rows_of_mnist(share, mflop, bits_up):
    kept = rows_kept(MNIST, share)
    assert round_mflop(MNIST, kept, 30, 32) == pytest.approx(mflop, abs=0.005)
    assert FEDLPS.weight_bits(kept.sum()) == bits_up


def test_a_round_of_mnist_in_full():
    everything = np.ones(MNIST.layout.size, dtype=bool)
    assert round_mflop(MNIST, everything, 30, 32) == 2788.128
    assert round_mflop(MNIST, rows_kept(MNIST, 0.5), 30, 32) == 1405.728
    assert round_mflop(MNIST, everything, 45, 20) == 2613.87  # 9 batches of 20
    levels = [round_mflop(MNIST, rows_kept(MNIST, 2.0**-i), 30, 32) for i in range(5)]
    assert np.mean(levels) == pytest.approx(1074.3, abs=0.05)


@pytest.mark.parametrize(
    ("architecture", "iterations", "printed", "mflops"),
    [
        (CIFAR, 45, 0.05, [51_994.9, 103_552.8, 206_668.8, 412_900.8, 825_364.7]),
        (CIFAR_100, 180, 1.0, [311_959, 620_112, 1_236_420, 2_469_034, 4_934_262.2]),
        (TINY, 180, 1.0, [1_712_055, 3_403_316, 6_785_839, 13_550_884, 27_080_974.9]),
    ],
)
def test_the_rows_of_the_vggs(architecture, iterations, printed, mflops):
    """FedLPS, Table I: 825.4, 4,934.3 and 27,081.0 x 1e12 in 1,000 dense rounds."""
    shares = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]
    rounds = [round_mflop(architecture, rows_kept(architecture, s), iterations, 20) for s in shares]
    assert rounds == pytest.approx(mflops, abs=printed)


def test_times_of_cifar_on_the_papers_devices():
    """At 744,448 MFLOP/s: the dense round, and rows in proportion to the capability (RCR)."""
    levels = 0.5 ** np.arange(5)
    devices = make_fleet(0.5, 744_448e6, flops_per_cycle=1, capability=levels)
    kept = np.array([1e6 * round_mflop(CIFAR, rows_kept(CIFAR, z), 45, 20) for z in levels])
    dense, equal = (
        devices.seconds(np.arange(5), Work(0.0, flops), 744_448e6 * levels)
        for flops in (kept[0], kept)
    )
    assert dense[[0, 4]] == pytest.approx([1.10869, 17.739], abs=5e-4)
    assert dense[0] == pytest.approx(1.10869, abs=5e-6)
    assert equal == pytest.approx(
        dense[0], rel=0.01
    )  # rounding of units, and layers that are never cut


@pytest.mark.parametrize(
    ("architecture", "share", "full", "parameters", "mflop"),
    [
        (MNIST, 1 / 16, ("linear1",), 1412, 101.7),
        (MNIST, 1 / 8, ("linear1",), 2238, 115.7),
        (MNIST, 1 / 4, ("linear1",), 4867, 288.4),
        (MNIST, 1 / 2, ("linear1",), 9950, 934.8),
        (CIFAR, 1 / 16, ("conv1", "conv8"), 187_554, 21_922.5),
        (CIFAR, 1 / 8, ("conv1", "conv8"), 419_514, 39_255.3),
        (CIFAR, 1 / 4, ("conv1", "conv8"), 1_042_410, 89_448.2),
        (CIFAR, 1 / 2, ("conv1", "conv8"), 2_924_106, 251_942.4),
    ],
)
def test_submodels_of_reduced_width_as_the_released_code_cuts_them(
    architecture, share, full, parameters, mflop
):
    """On MNIST only the convolutions shrink, in VGG not the first and not the last one."""
    kept = architecture.layout.expand(hidden_units(architecture, share, at_least_one, full))
    assert kept.sum() == parameters
    steps = (30, 32) if architecture is MNIST else (45, 20)
    assert round_mflop(architecture, kept, *steps) == pytest.approx(mflop, abs=0.06)


# --- SpaFL and FedMAP ----------------------------------------------------------------------------


def test_a_dense_participation_in_spafl():  # 3 x 5 epochs x 600 samples x 2,293,000
    everything = np.ones(LENET.layout.size, dtype=bool)
    assert submodel_cost(LENET, everything, SPAFL).flops / 2 * 5 * 600 == 20_637_000_000


@pytest.mark.parametrize(
    ("share", "parameters", "macs"),
    [
        (1 / 2, 109_000, 646_500),
        (1 / 4, 29_000, 203_250),
        (1 / 8, 8286, 84_486),
        (0.8, 276_400, None),
        (0.6, 156_300, 895_800),
        (0.4, 70_200, 437_200),
    ],
)
def test_lenet_of_reduced_width(share, parameters, macs):
    kept = LENET.layout.expand(hidden_units(LENET, share, width))
    assert kept.sum() == parameters
    if macs:
        assert submodel_cost(LENET, kept, SPAFL).flops / 2 == 3 * macs


def test_half_of_the_rows_of_lenet():
    """10/20, 25/50, 100/500, 10/10 rows alive: parameters, multiply-adds, structure."""
    units = {"conv1": 0.5, "conv2": 0.5, "linear1": 0.2}
    kept = {name: width(share, LENET.layout.groups[name].units) for name, share in units.items()}
    rows = LENET.layout.expand(kept, rows=True)
    dense = submodel_cost(LENET, np.ones_like(rows), SPAFL).flops
    assert rows.mean() == pytest.approx(0.2271, abs=5e-5)
    assert submodel_cost(LENET, rows, SPAFL).flops / dense == pytest.approx(0.4488, abs=5e-5)
    assert submodel_cost(LENET, LENET.layout.expand(kept), SPAFL).flops / dense == pytest.approx(
        0.2551, abs=5e-5
    )
