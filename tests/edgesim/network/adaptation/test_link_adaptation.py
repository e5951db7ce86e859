"""Modulation and coding schemes: thresholds from the capacity, hulls, and runs that use them."""

from pathlib import Path

import numpy as np
import pytest
import scipy
from numpy.polynomial.hermite import hermgauss
from scipy.optimize import brentq

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.adaptation.link_adaptation import (
    LEAST_DB,
    TABLES,
    make_law,
    make_single_scheme,
    schemes,
)
from edgesim.scenario import load
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from solvers import PruningProblem, allocate
from solvers.rate_laws.efficiency_laws import HullLaw

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
NOW = ["~schemes", "allocation={solver: kkt}"]
# what other implementations print: 10 % of block errors of every scheme, dB
PRINTED_DB = {
    "64qam": "-6.38 -5.10 -4.09 -2.76 -1.67 -.51 .50 1.52 2.47 3.41 3.49 4.19 5.16 6.08 7.08 8.06 "
    "8.72 9.10 9.67 10.69 11.66 12.59 13.55 14.57 15.62 16.63 17.72 18.59 19.61",
    "256qam": "-6.38 -4.09 -1.67 .50 2.47 4.19 5.16 6.08 7.08 8.06 8.72 9.67 10.69 11.66 12.59 "
    "13.55 14.57 15.62 16.63 17.72 18.40 19.06 20.07 21.10 22.18 23.32 24.19 25.16",
}
# TS 38.214, Table 5.2.2.1-2: Qm and 1024 R by channel quality indicator
CQI = [*((2, r) for r in (78, 120, 193, 308, 449, 602)), (4, 378), (4, 490), (4, 616)]
CQI += [(6, r) for r in (466, 567, 666, 772, 873, 948)]
PRINTED_64 = [0.2344, 0.3066, 0.3770, 0.4902, 0.6016, 0.7402, 0.8770, 1.0273, 1.1758, 1.3262]
NODES, WEIGHTS = hermgauss(64)


def capacity(qm, decibel):
    """Of Gray-mapped bit-interleaved coded modulation with 2^qm points, bit/s/Hz."""
    bits = qm // 2
    code = np.arange(2**bits)
    gray = code ^ (code >> 1)
    level = (2.0 * code - (2**bits - 1)) * np.sqrt(1.5 / (4.0**bits - 1)) / np.sqrt(1.0)
    level *= np.sqrt(0.5 / (level**2).mean())
    s2 = 0.5 / 10 ** (decibel / 10)
    y = level[:, None] + np.sqrt(2 * s2) * NODES
    exponent = -((y[:, :, None] - level) ** 2) / (2 * s2)
    everything = scipy.special.logsumexp(exponent, axis=2)
    lost = 0.0
    for bit in range(bits):
        same = (gray[:, None] >> bit & 1) == (gray[None, :] >> bit & 1)
        part = scipy.special.logsumexp(np.where(same[:, None, :], exponent, -np.inf), axis=2)
        lost += ((everything - part) @ WEIGHTS).mean() / np.sqrt(np.pi) / np.log(2)
    return 2.0 * (bits - lost)


@pytest.mark.parametrize("table", TABLES)
def test_thresholds_are_those_of_the_capacity(table):
    for qm, rates in TABLES[table].items():
        for rate in rates:
            for wrong_db, sign in ((-2e-6, -1.0), (2e-6, 1.0)):
                found = capacity(qm, LEAST_DB[qm][rate] - 1.15 + wrong_db)
                assert sign * (found - qm * rate / 1024) > 0.0
    printed = np.array([float(each) for each in PRINTED_DB[table].split()])
    assert 10 * np.log10(schemes(table)[0]) == pytest.approx(printed, abs=0.0051)


def test_tables_have_the_printed_efficiencies_and_hulls_drop_a_few_rows():
    _, bits = schemes("64qam")
    assert bits[:10].round(4).tolist() == PRINTED_64 and bits[-1].round(4) == 5.5547
    assert len(bits) == 29 and len(schemes("256qam")[0]) == 28
    assert schemes("256qam")[1][-1] == 7.40625
    for table, dropped in (("64qam", {9, 10, 17, 18}), ("256qam", {11})):
        snr, _ = schemes(table)
        law = make_law(AdaptationSection(rate="mcs", table=table))
        assert {i for i, g in enumerate(snr) if g not in law.snr} == dropped


def test_the_same_rule_gives_the_channel_quality_indicators():
    """The first needs -8.38 dB, and all fifteen are corners of their hull."""
    bits = np.array([qm * rate / 1024 for qm, rate in CQI])
    least_db = [
        brentq(lambda d, qm=qm, r=r: capacity(qm, d - 1.15) - qm * r / 1024, -12, 30)
        for qm, r in CQI
    ]
    assert least_db[0] == pytest.approx(-8.38, abs=0.005)
    assert len(HullLaw(10 ** (np.array(least_db) / 10), bits).snr) == 15


def test_rates_of_shares_at_10_db():
    """64QAM, c = 10, b 0.05, 0.2, 0.5 and 1, bit/s/Hz; and c = 1 over the whole band."""
    law, b = make_law(AdaptationSection(rate="mcs")), np.array([0.05, 0.2, 0.5, 1.0])
    found = b * law.efficiency(10.0 / b)
    assert found == pytest.approx([0.277734, 0.981151, 1.864502, 2.845081], abs=1e-6)
    shannon = b * np.log2(1 + 10.0 / b)
    assert shannon == pytest.approx([0.382553, 1.134485, 2.196159, 3.459432], abs=1e-6)
    assert law.efficiency(1.0) == pytest.approx(0.805523, abs=1e-6)
    alone = make_single_scheme(AdaptationSection(rate="mcs", split=False))
    found = b * alone.efficiency(10.0 / b)
    assert found == pytest.approx([0.277734, 0.963281, 1.804688, 2.730469], abs=1e-6)
    assert found == pytest.approx(staircase(10.0, b), rel=1e-12)
    assert alone.efficiency(1.0) == pytest.approx(0.740234, abs=1e-6)


def test_a_truncated_uplink_has_its_cap_from_22_db_on():
    """0.4 log2(1 + g): at 22 dB 0.4 x 7.317315, at -10 dB 0.4 x 0.137504; below g / 0.1 of it."""
    law = make_law(AdaptationSection(rate="truncated"))
    found = law.efficiency(10.0 ** (np.array([-20.0, -10.0, 22.0, 25.0, 60.0]) / 10.0))
    assert found == pytest.approx([0.0055001, 0.0550014, 2.926926, 2.926926, 2.926926], abs=1e-6)


def test_the_indicators_of_256qam_are_every_other_scheme_of_their_table():
    """TS 38.214, Table 5.2.2.1-3, but the first of -8.38 dB; all are corners of their hull."""
    indicators = [*((2, r) for r in (193, 449)), *((4, r) for r in (378, 490, 616))]
    indicators += [*((6, r) for r in (466, 567, 666, 772, 873))]
    indicators += [*((8, r) for r in (711, 797, 885, 948))]
    snr, bits = (each[1::2] for each in schemes("256qam"))
    assert bits.tolist() == [qm * rate / 1024 for qm, rate in indicators]
    printed = "-4.09 .50 4.19 6.08 8.06 9.67 11.66 13.55 15.62 17.72 19.06 21.10 23.32 25.16"
    assert 10 * np.log10(snr) == pytest.approx(
        [float(each) for each in printed.split()], abs=0.0051
    )
    assert len(HullLaw(np.append(10**-0.838, snr), np.append(2 * 78 / 1024, bits)).snr) == 15


def staircase(c, b):
    """What the best scheme alone carries over shares b at c over the whole band, bit/s/Hz."""
    snr, bits = schemes("64qam")
    return b * np.array([bits[snr <= each].max(initial=0.0) for each in c / b])


@pytest.mark.parametrize("table", TABLES)
def test_a_thousand_rates_are_concave_increasing_and_above_the_staircase(table):
    law, rng = make_law(AdaptationSection(rate="mcs", table=table)), np.random.default_rng(0)
    c = 10.0 ** rng.uniform(-3.0, 4.0, 1000)
    low, high = np.sort(rng.uniform(1e-4, 1.0, (2, 1000)), axis=0)
    least, middle, most = (b * law.efficiency(c / b) for b in (low, (low + high) / 2, high))
    assert (least <= most * (1 + 1e-12)).all()
    assert (middle >= (least + most) / 2 * (1 - 1e-12)).all()
    snr, bits = schemes(table)
    alone = np.where(snr[:, None] <= c / high, bits[:, None], 0.0).max(axis=0)
    assert (most >= high * alone * (1 - 1e-12)).all() and (most > 1.001 * high * alone).any()


def test_an_allocation_of_three_devices():
    """c = 1, 10, 100, by a dual bisection and cvxpy."""
    law, snr = make_law(AdaptationSection(rate="mcs")), np.array([1.0, 10.0, 100.0])
    rate_bps = 16.8912e6 * law.efficiency(snr)
    found = allocate(PruningProblem(2e6, 0.01, 0.06, rate_bps, snr=snr, law=law))
    assert found.share == pytest.approx([0.0682911, 0.5053848, 0.4263241], abs=1e-7)
    assert found.rho == pytest.approx([0.8871927, 0.1788029, 0.0], abs=1e-7)
    assert found.rho.sum() == pytest.approx(1.06599565, abs=5e-8)
    assert found.certificate.residual <= 1e-12


@pytest.mark.parametrize("rate", ["mcs", "truncated"])
def test_a_run_with_link_adaptation_meets_its_certified_plan(rate):
    changes = [*NOW, "rounds=2", "network.channel.fading=none", "devices.0.count=5"]
    shannon = simulate(load(FILE, changes)).summary
    adapted = simulate(load(FILE, [*changes, f"network.adaptation={{rate: {rate}}}"])).summary
    assert adapted["late_share"] == 0.0 and adapted["certificate_worst"] <= 1e-8
    assert adapted["rho_mean"] >= shannon["rho_mean"]
    worse = f"network.adaptation={{rate: {rate}, implementation_loss: 6 dB}}"
    assert simulate(load(FILE, [*changes, worse])).summary["rho_mean"] >= adapted["rho_mean"]


def test_without_a_change_of_rate_nothing_changes():
    changes = [*NOW, "rounds=1", "devices.0.count=4"]
    plain, same = (
        simulate(load(FILE, [*changes, *more])).rounds
        for more in ([], ["network.adaptation={rate: shannon}"])
    )
    assert plain.equals(same)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["network.noise=-100 dBm"], "needs a noise density"),
        (["allocation.solver=fair"], "one of the solvers kkt, equal, proportional"),
        (["allocation.resource_blocks=51"], "without resource_blocks"),
        (["network.adaptation={rate: truncated, table: 64qam}"], "reads no table"),
        (["network.adaptation={rate: truncated, split: false}"], "which has no schemes"),
        (["network.adaptation.split=no"], "true or false"),
        (["network.adaptation.table=16qam"], "64qam"),
        (["network.adaptation.implementation_loss=-1 dB"], "at least 0"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*NOW, "network.adaptation={rate: mcs}", *changes])
    assert part in str(refused.value) and "\n" not in str(refused.value)
