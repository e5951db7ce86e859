"""The drawing of the cell."""

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from edgesim import load, simulate
from reports.figures import cell_topology as places
from reports.figures.cell_topology import device_table
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def test_devices_lie_at_their_distances(scheme_of):
    run = scheme_of().first
    assert places.node_positions(run.devices)[1] == "star"
    run.devices["distance_m"] = [30.0, 40.0]
    where, kind = places.node_positions(run.devices)
    assert kind == "distances" and [math.hypot(*where[k]) for k in (0, 1)] == approx([30, 40])
    run.devices["x_m"], run.devices["y_m"] = [1.0, 2.0], [3.0, 4.0]
    where, kind = places.node_positions(run.devices)
    assert kind == "positions" and where[1] == [2.0, 4.0]


def test_a_number_stands_on_the_circle_that_lies_on_top(scheme_of):
    scheme = scheme_of()
    scheme.first.devices["x_m"], scheme.first.devices["y_m"] = [50.0, 50.5], [50.0, 50.0]
    with style.styled(style.SCREEN):
        panel, _ = places.cell_topology([scheme], style.SCREEN).axes
        assert [text.get_text() for text in panel.texts] == ["1"]
        scheme.first.devices["y_m"] = [50.0, -50.0]
        panel, _ = places.cell_topology([scheme], style.SCREEN).axes
    assert sorted(text.get_text() for text in panel.texts) == ["0", "1"]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("x (m)", "y (m)")


def test_every_device_is_joined_to_the_base_station(scheme_of):
    with style.styled(style.SCREEN):
        panel, _ = places.cell_topology([scheme_of()], style.SCREEN).axes
    rays, circles, _ = panel.collections
    ends = np.array(rays.get_segments())  # [device][station, device][x, y]
    np.testing.assert_allclose(ends[:, 0], 0.0)
    np.testing.assert_allclose(ends[:, 1], circles.get_offsets())
    assert circles.get_array()[1] == 100.0  # Mbit/s


@pytest.mark.slow
def test_devices_of_a_hierarchy_are_joined_to_their_edge_servers(tmp_path):
    changes = [
        "rounds=1",
        "tiers.edges=[{position: [0 m, 170 m]}, {position: [200 m, -90 m]}]",
    ]
    scenario = load(SCENARIOS / "hierarchy.yaml", changes, label="kappa_2 5")
    run = simulate(scenario, out=tmp_path / "run")
    (scheme,) = load_schemes([run.folder])
    with style.styled(style.SCREEN):
        panel, _ = places.cell_topology([scheme], style.SCREEN).axes
    rays, circles, triangles = panel.collections
    stations, ends = np.array([[0.0, 170.0], [200.0, -90.0]]), np.array(rays.get_segments())
    np.testing.assert_allclose(triangles.get_offsets(), stations)
    np.testing.assert_allclose(ends[:, 1], circles.get_offsets())
    apart = np.linalg.norm(circles.get_offsets()[:, None] - stations, axis=2)
    assert set(apart.argmin(axis=1)) == {0, 1}
    np.testing.assert_allclose(ends[:, 0], stations[scheme.first.devices["edge"]])


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_device_table_leaves_out_unknown_distances(scheme_of):
    table = device_table([scheme_of()])
    assert [table.columns[i].name for i in table.filled()][:2] == ["device", "path_gain_db"]
    assert rows_of(table)[1]["rate_bps"] == "100000000.0"


def test_device_table_says_whose_devices_it_has_where_there_are_several_runs(scheme_of):
    joint, fedavg = scheme_of(scheme="joint", seed=3), scheme_of(scheme="fedavg", seed=3)
    assert device_table([joint]).caption.endswith("whole band.")
    assert device_table([joint, fedavg]).caption.endswith(" Scheme joint, seed 3.")
    seeds = replace(joint, runs=(joint.first, scheme_of(scheme="joint", seed=4).first))
    assert device_table([seeds]).caption.endswith(" Scheme joint, seed 3.")


def test_the_circles_of_devices_lie_within_the_panel(scheme_of, monkeypatch):
    """A ring at 200 m is taller than the devices, one of which lies outside of it."""
    where = {places.STATION: (0.0, 0.0), 0: (-215.0, 90.0), 1: (20.0, -197.0)}
    monkeypatch.setattr(places, "node_positions", lambda devices: (where, "distances"))
    with style.styled(style.IEEE):
        figure = places.cell_topology([scheme_of()], style.IEEE)
        figure.draw_without_rendering()
    panel, _ = figure.axes
    centres = panel.transData.transform(panel.collections[1].get_offsets())
    radius = np.sqrt(panel.collections[1].get_sizes()[0]) / 2 * figure.dpi / 72
    assert (centres - radius >= panel.bbox.min).all() and (centres + radius <= panel.bbox.max).all()
