"""TR 38.901 (V19.4) as the package tr3gpp has it: its formulas evaluated, its tables compared."""

import math
import re

import numpy as np
import pytest

from edgesim.network.propagation import building_penetration as walls
from edgesim.network.propagation import tr38901_path_loss as tr
from edgesim.network.propagation.delay_spread import DELAYS, OFFSET
from edgesim.network.propagation.site_fields import LOS, NLOS, O2I, STATISTICS
from tests.edgesim.network.propagation.latex_formulas import Names, expression

standard = pytest.importorskip(
    "tr3gpp", reason="tr3gpp is not installed: pip install 'edgesim[oracles]'"
).tr38901
# names of a model in clause 7.4, of its line of sight, in clauses 7.5 and 7.6
NAMES = {
    "uma": ("UMa", "UMa", "UMa", "UMa"),
    "umi": ("UMi-StreetCanyon", "UMi-StreetCanyon", "UMi - Street Canyon", "UMi"),
    "rma": ("RMa", "RMa", "RMa", "RMa"),
    "inh": ("InH-Office", "Indoor-MixedOffice", "Indoor-Office", "Indoor"),
}
STATES = {LOS: "LOS", NLOS: "NLOS", O2I: "O2I"}


def places(model):
    """(d2, h_ut, GHz) [300] over the whole scope of a model."""
    rng, scope = np.random.default_rng(0), tr.SCOPES[model]
    far_m = np.exp(rng.uniform(np.log(scope.nearest_m), np.log(0.99 * scope.farthest_m), 300))
    low_m, high_m = scope.heights_m
    return far_m, rng.uniform(max(low_m, 1.0), high_m, 300), rng.choice([0.7, 2.0, 3.5, 28.0], 300)


@pytest.mark.parametrize("model", NAMES)
def test_path_losses_are_those_of_the_formulas(model):
    entries = [
        standard.section("7.4").pathloss(scenario=NAMES[model][0], condition=state)
        for state in ("LOS", "NLOS")
    ]
    label = {"umi": "UMi", "inh": "InH"}.get(model, NAMES[model][0])
    base = tr.SCOPES[model].base_height_m
    for d2, h_ut, fc in zip(*places(model), strict=True):
        known = {"d2": d2, "d3": np.hypot(d2, base - h_ut), "h_ut": h_ut, "h_bs": base, "fc": fc}
        if model == "rma":
            corner = 2 * np.pi * base * h_ut * fc * 1e9 / 3.0e8  # Note 5
        else:
            corner = 4 * (base - 1) * (h_ut - 1) * fc * 1e9 / 3.0e8  # Note 1 with h_E = 1 m
        names = Names([each.formula for each in entries], {**known, "corner": corner})
        names.update(h=tr.BUILDING_HEIGHT_M, W=tr.STREET_WIDTH_M)
        for state, sight in (("LOS", True), ("NLOS", False)):
            if model not in ("rma", "inh") or d2 <= tr.SCOPES[model].farthest_m:
                found = tr.path_loss_db(model, sight, d2, base, h_ut, fc)
                assert float(found) == pytest.approx(names[f"PL_{label}_{state}"], abs=1e-9)


@pytest.mark.parametrize("model", NAMES)
def test_lines_of_sight_are_those_of_the_formulas(model):
    latex = standard.section("7.4").los_probability(scenario=NAMES[model][1]).formula
    for d2, h_ut, _ in zip(*places(model), strict=True):
        expected = Names([latex], {"d2": d2, "h_ut": h_ut})["Pr_LOS"]
        found = float(tr.line_of_sight_probability(model, d2, h_ut))
        assert found == pytest.approx(expected, abs=1e-12)


def test_walls_are_those_of_the_tables():
    table = standard.section("7.4").o2i_penetration_loss
    lost = {
        each.formula.split("=")[0].strip(): expression(each.formula.split("=")[1])
        for each in table.materials
    }
    for high_loss, model in enumerate(table.building_models[:2]):
        latex = model.pl_tw_formula
        for name, formula in lost.items():
            latex = latex.replace(name, f"({formula})")
        latex = latex.replace(r"\left", "").replace(r"\right", "").replace(r"\log_{10}", " lg ")
        text = expression(latex.replace(r"\cdot", "*").replace("^", "**"))
        for ghz in (0.7, 2.0, 3.5, 6.0, 28.0):
            expected = eval(text, {}, Names([], {"f": ghz}))
            found = float(walls.wall_loss_db(bool(high_loss), ghz))
            assert found == pytest.approx(expected, abs=1e-9)
    spreads = [each.std_p_db for each in table.building_models[:2]]
    assert spreads == [walls.LOW_SPREAD_DB, walls.HIGH_SPREAD_DB]
    cars = table.car_penetration_loss
    assert (cars.mu_db, cars.sigma_p_db) == (walls.CAR_MEAN_DB, walls.CAR_SPREAD_DB)


@pytest.mark.parametrize("model", NAMES)
def test_shadowing_k_factor_and_delays_are_those_of_the_tables(model):
    table, (scenario, _, fading, consistency) = STATISTICS[model], NAMES[model]
    for state, name in STATES.items():
        if state == O2I and model == "inh":
            continue
        row = standard.section("7.5").channel_model_parameters(scenario=fading, condition=name)
        assert table.decorrelation_m[state] == float(row.corr_distance_SF_m)
        compare_delays(DELAYS[model][state], OFFSET[model], row)
        if state == O2I:
            assert table.shadowing_db[state] == float(row.sigma_SF)
            continue
        losses = standard.section("7.4").pathloss(scenario=scenario, condition=name)
        assert table.shadowing_db[state] == losses.shadow_fading_std_db[0].value_db
        if state == LOS:
            assert table.k_db == (float(row.mu_K), float(row.sigma_K))
            assert table.k_decorrelation_m == float(row.corr_distance_K_m)
            assert table.k_correlation == float(row.corr_SF_K)
    states = {} if model == "inh" else {"condition": "LOS"}
    row = standard.section("7.6").correlation_distance(scenario=consistency, **states)
    assert table.los_decorrelation_m == float(row.los_nlos_state_m)


def compare_delays(ours, offset, row):
    for text, (a, b) in ((row.mu_lgDS, ours.mean), (row.sigma_lgDS, ours.spread)):
        formula = re.sub(r",?\s*see note \d", "", text).replace("log10", "lg")
        value = eval(expression(formula), {}, Names([], {"fc": 9.0}))
        assert value == pytest.approx(a + b * math.log10(offset + 9.0), abs=1e-12)
    assert ours.decorrelation_m == float(row.corr_distance_DS_m)
    assert ours.with_shadowing == float(row.corr_DS_SF.replace("–", "-"))
    assert ours.with_k == (0.0 if row.corr_DS_K == "N/A" else float(row.corr_DS_K))
