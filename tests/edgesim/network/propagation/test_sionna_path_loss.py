"""TR 38.901, clause 7.4, as Sionna 2.2 (without ray tracing) computes it, with c = 3.0e8 m/s."""

import numpy as np
import pytest

from edgesim.network.propagation import building_penetration as walls
from edgesim.network.propagation import tr38901_path_loss as tr
from edgesim.network.propagation.antenna import element_gain_dbi

LINKS = 200
pytestmark = pytest.mark.slow  # importing it takes four seconds


@pytest.fixture(scope="module")
def tr38901():
    why = "sionna is not installed: pip install 'edgesim[oracles]'"
    return pytest.importorskip("sionna.phy.channel.tr38901", reason=why, exc_type=ImportError)


def scenario(tr38901, model, ghz, high_m=None, indoor=False, los=None, walls_model="low"):
    """(Sionna's scenario with links of all distances, d2 [K], h_ut [K])."""
    import torch

    rng, scope = np.random.default_rng(1), tr.SCOPES[model]
    near_m, far_m = scope.nearest_m + 0.01, min(0.99 * scope.farthest_m, 4900.0)
    d2 = np.exp(rng.uniform(np.log(near_m), np.log(far_m), LINKS))
    low_m, most_m = scope.heights_m
    h_ut = rng.uniform(max(low_m, 1.0), high_m or most_m, LINKS)
    array = tr38901.PanelArray(1, 1, "single", "V", "omni", ghz * 1e9, precision="double")
    kind = {"uma": "UMa", "umi": "UMi", "rma": "RMa", "inh": "InH"}[model]
    module = __import__(f"sionna.phy.channel.tr38901.{model}_scenario", fromlist=["x"])
    module.SPEED_OF_LIGHT = 3.0e8  # Table 7.4.1-1, Note 1; Sionna has 299792458
    more = {"rma": (), "inh": ("mixed",)}.get(model, (walls_model,))
    made = getattr(module, f"{kind}Scenario")
    found = made(ghz * 1e9, *more, array, array, "uplink", precision="double")
    zero = np.zeros((1, LINKS))
    found.set_topology(
        ut_loc=torch.tensor(np.stack([d2, zero[0], h_ut], axis=-1)[None]),
        bs_loc=torch.tensor([[[0.0, 0.0, scope.base_height_m]]], dtype=torch.float64),
        ut_orientations=torch.zeros(1, LINKS, 3, dtype=torch.float64),
        bs_orientations=torch.zeros(1, 1, 3, dtype=torch.float64),
        ut_velocities=torch.zeros(1, LINKS, 3, dtype=torch.float64),
        in_state=torch.full((1, LINKS), indoor or model == "inh"),
        los=los,
    )
    return found, d2, h_ut


@pytest.mark.parametrize("model", tr.SCOPES)
@pytest.mark.parametrize("ghz", [0.7, 3.5, 28.0])
def test_path_losses(tr38901, model, ghz):
    """UMa up to 13 m: above, h_E is drawn."""
    for sight in (True, False):
        links, d2, h_ut = scenario(tr38901, model, ghz, 12.9 if model == "uma" else None, los=sight)
        base = tr.SCOPES[model].base_height_m
        found = tr.path_loss_db(model, sight, d2, base, h_ut, ghz)
        np.testing.assert_allclose(found, links.basic_pathloss.numpy()[0, 0], atol=1e-9)


@pytest.mark.parametrize("model", tr.SCOPES)
def test_probabilities_of_line_of_sight(tr38901, model):
    links, d2, h_ut = scenario(tr38901, model, 3.5)
    found = tr.line_of_sight_probability(model, d2, h_ut)
    np.testing.assert_allclose(found, links.los_probability.numpy()[0, 0], atol=1e-12)


@pytest.mark.parametrize("high_loss", [False, True])
def test_walls(tr38901, high_loss, monkeypatch):
    from sionna.phy.channel.tr38901.lsp import LSPGenerator

    links, *_ = scenario(
        tr38901, "uma", 28.0, indoor=True, walls_model="high" if high_loss else "low"
    )
    generator = LSPGenerator(links)
    monkeypatch.setattr(generator, "_sample_o2i_penetration_random", lambda deviation: 0.0)
    lost = generator.sample_pathloss() - links.basic_pathloss - 0.5 * links.distance_2d_in
    np.testing.assert_allclose(lost.numpy()[0, 0], walls.wall_loss_db(high_loss, 28.0), atol=1e-9)


def test_element(tr38901):
    import torch

    element = tr38901.AntennaElement("38.901", precision="double")
    zenith, azimuth = np.meshgrid(np.linspace(1.0, 179.0, 60), np.linspace(-179.0, 179.0, 90))
    field, _ = element.field(torch.tensor(np.radians(zenith)), torch.tensor(np.radians(azimuth)))
    found_dbi = 20 * np.log10(np.abs(field.numpy()))
    np.testing.assert_allclose(element_gain_dbi(zenith, azimuth), found_dbi, atol=1e-9)
