"""Map, SINR and throughput of networks of several sectors."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from edgesim.network.layout.sites import hexagonal_sites
from reports.figure_catalog import report_figures
from reports.figures.network import sector_map
from reports.figures.network import sinr_and_throughput as sinr
from reports.styling.figure_style import SCREEN

HEX = """
name: net
rounds: 4
network:
  bandwidth: 5 MHz
  noise: -169 dBm/Hz
  carrier: {frequency: 3.5 GHz}
  layout: {kind: hex, rings: 1, isd: 500 m, sectors: 3}
  channel: {path_loss: {model: uma, antenna: {kind: column}}}
devices: [{count: 2, tx_power: 23 dBm, cpu: {frequency: 1 GHz, cycles_per_weight: 100}}]
allocation: {solver: equal}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg, lr: 0.1}}
"""


@pytest.fixture
def network(scheme_of):
    """Device 0 at (100, 0) m, served by sector 1 of the first site; device 1 by sector 2 of it."""
    scheme = scheme_of(latency_s=(0.04,) * 2, accuracy=(0.5, 0.6))
    run = scheme.first
    (run.folder / "scenario.yaml").write_text(HEX, encoding="utf-8")
    run.devices["x_m"], run.devices["y_m"] = [100.0, 0.0], [0.0, -120.0]
    run.devices["sector"] = [1, 2]
    return scheme


def with_sinr(scheme):
    run = scheme.first
    run.device_rounds["sinr_db"] = np.where(run.device_rounds["device"] == 0, 3.0, 9.0)
    run.device_rounds.loc[0, "sinr_db"] = 1.0
    return scheme


def test_the_map_shows_sites_sectors_and_who_serves_whom(network, drawn):
    sites = sector_map.sites_of(network.first)
    assert (len(sites), sites.sectors, sites.isd_m) == (7, 3, 500.0)
    left, right = drawn(sector_map.sector_map, [network]).axes
    groups = [np.asarray(each.get_offsets()).tolist() for each in left.collections[:3]]
    assert groups == [[], [[100.0, 0.0]], [[0.0, -120.0]]]  # by sector of the site
    np.testing.assert_allclose(left.collections[3].get_offsets(), sites.position_m)
    strokes = np.array(left.collections[4].get_segments())
    assert len(strokes) == 21
    assert np.hypot(*(strokes[:, 1] - strokes[:, 0]).T) == approx(80.0)
    links = np.array(left.collections[5].get_segments())
    np.testing.assert_allclose(links[:, 1], 0.0, atol=1e-9)  # both to the site at the origin
    assert right.child_axes[0].get_ylabel() == "coupling loss (dB)"
    assert right.collections[0].get_array().tolist() == [100.0, 103.0]


def test_sites_with_one_sector_each_are_told_apart_by_colour_without_a_legend(network, drawn):
    """All devices were of one colour, which a legend called sector 1."""
    path = network.first.folder / "scenario.yaml"
    path.write_text(HEX.replace("sectors: 3", "sectors: 1"), encoding="utf-8")
    figure = drawn(sector_map.sector_map, [network])
    groups = [np.asarray(each.get_offsets()).tolist() for each in figure.axes[0].collections[:3]]
    assert groups == [[], [[100.0, 0.0]], [[0.0, -120.0]]] and not figure.legends
    network.first.devices["sector"] = [0, 6]  # the first site and its sixth neighbour
    left, *_ = drawn(sector_map.sector_map, [network]).axes
    assert [len(each.get_offsets()) for each in left.collections[:6]] == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("sectors", [1, 3])
def test_a_device_that_no_sector_reaches_is_grey_and_without_a_line(sectors, network, drawn):
    """It had the look of the first site, and a line to it across the map."""
    path, devices = network.first.folder / "scenario.yaml", network.first.devices
    path.write_text(HEX.replace("sectors: 3", f"sectors: {sectors}"), encoding="utf-8")
    devices["sector"], devices["path_gain_db"] = [0, -1], [-90.0, -np.inf]
    figure = drawn(sector_map.sector_map, [network])
    left, right = figure.axes
    places = [np.asarray(each.get_offsets()).tolist() for each in left.collections]
    looks = 3 if sectors == 3 else 6
    assert places[0] == [[100.0, 0.0]] and places[looks] == [[0.0, -120.0]]
    assert not any(places[1:looks]) and len(left.collections[-1].get_segments()) == 1
    assert "out of reach" in [text.get_text() for text in figure.legends[0].get_texts()]
    shown = right.collections[0]
    assert len(set(shown.to_rgba(shown.get_array())[1, :3])) == 1 and len(shown.get_offsets()) == 2


@pytest.mark.parametrize("rings", [1, 2, 4])
def test_neighbouring_sites_with_one_sector_each_have_different_looks(rings):
    """The sixth neighbour of the first site had its colour. The next ones are sqrt(3) D away."""
    sites = hexagonal_sites(rings, 500.0, sectors=1)
    looks = sector_map.looks_of_sites(sites)
    apart = np.hypot(*(sites.position_m[:, None] - sites.position_m).transpose(2, 0, 1))
    alike = (looks[:, None] == looks) & (apart > 0)
    assert len(set(looks)) == 6 and apart[alike].min() > 500.0 * 1.7


@pytest.mark.parametrize("rings", [2, 3, 4])
def test_neighbours_over_the_edge_have_different_looks(rings):
    """There a device of the one, served by its image, lies beside those of the other."""
    sites = hexagonal_sites(rings, 500.0, sectors=1, wrap=True)
    looks = sector_map.looks_of_sites(sites)
    for site, look in enumerate(looks):
        away = np.hypot(*sites.offset_m(site, sites.position_m).T)
        assert (away[looks == look] > 500.0 * 1.7).sum() == (looks == look).sum() - 1


def test_a_link_over_the_edge_leads_to_the_image_of_the_site(network):
    """Site 1 stands at (500, 0) m; a device at the western edge is served by its image there."""
    sites, devices = sector_map.sites_of(network.first), network.first.devices
    devices["x_m"], devices["y_m"], devices["sector"] = [-600.0, 0.0], [100.0, 0.0], [3, 0]
    first, second = sector_map._links(sites, devices)
    image = first[1] - sites.position_m[1]  # a move to a copy of the network
    assert np.hypot(*image) == approx(500.0 * np.sqrt(7))
    assert np.hypot(*(first[0] - first[1])) < 600.0 and second[1].tolist() == [0.0, 0.0]


def test_the_map_has_the_sinr_where_it_was_recorded(network, drawn):
    _, right = drawn(sector_map.sector_map, [with_sinr(network)]).axes
    assert right.child_axes[0].get_ylabel() == "SINR of uploads, mean (dB)"
    assert right.collections[0].get_array().tolist() == [2.0, 9.0]


def test_a_scenario_that_cannot_be_read_leaves_the_sites_out(network, drawn):
    (network.first.folder / "scenario.yaml").write_text("name: 5\n")
    assert sector_map.sites_of(network.first) is None
    left, *_ = drawn(sector_map.sector_map, [network]).axes
    assert len(left.collections) == 3


def test_distributions_of_sinr_and_throughput(network, two_schemes, drawn):
    assert sinr.with_sinr(two_schemes) == []
    scheme = with_sinr(network)
    assert sinr.values_of(scheme, sinr.SINR).tolist() == [1.0, 3.0, 9.0, 9.0]
    # 5 Mbit a round in 0.75 x 20 ms and 0.75 x 40 ms
    rates = sinr.values_of(scheme, sinr.THROUGHPUT)
    assert rates == approx([5e6 / 0.03, 5e6 / 0.015])
    left, right = drawn(sinr.sinr_and_throughput, [scheme]).axes
    assert left.lines[0].get_ydata().tolist() == [0, 25, 50, 75, 100]
    assert right.lines[0].get_xdata() == approx(np.r_[rates[0], rates] / 1e6)
    rows = sinr.sinr_and_throughput_table([scheme, *two_schemes]).rows
    assert len(rows) == 2 * 101 and ("joint", "sinr_db", 0.5, 6.0) in rows


def test_distributions_have_the_scales_that_a_report_asks_for(network):
    """A ratio in dB is logarithmic already, and may be negative."""
    look = replace(SCREEN, x_scale="log", y_scale="log")
    panels = sinr.sinr_and_throughput([with_sinr(network)], look).axes
    scales = [(panel.get_xscale(), panel.get_yscale()) for panel in panels]
    assert scales == [("linear", "log"), ("log", "log")]
    assert all(panel.get_ylim()[0] > 0.1 for panel in panels)  # not all curves as one line


def test_the_report_draws_the_map_in_place_of_the_star(network, two_schemes):
    titles = {figure.name: figure.title for figure in report_figures([with_sinr(network)])[0]}
    assert titles["topology"] == "The network" and "sinr" in titles
    titles = {figure.name: figure.title for figure in report_figures(two_schemes)[0]}
    assert titles["topology"] == "The cell"


ROW = "{kind: sites, sectors: 1, position: {list: [[0 m, 0 m], [4000 m, 0 m], [8000 m, 0 m]]}}"


def test_a_long_row_of_sites_has_room_for_its_markers_and_a_bar_as_high(network, drawn):
    """The bar was seven times as high as the axes, whose edges cut the markers."""
    path, devices = network.first.folder / "scenario.yaml", network.first.devices
    given = HEX.replace("{kind: hex, rings: 1, isd: 500 m, sectors: 3}", ROW)
    path.write_text(given.replace(", antenna: {kind: column}", ""), encoding="utf-8")
    devices["sector"], devices["x_m"], devices["y_m"] = [0, 2], [100.0, 7900.0], [40.0, -40.0]
    figure = drawn(sector_map.sector_map, [network])
    figure.draw_without_rendering()
    left, right = figure.axes
    bar = right.child_axes[0]
    for panel in (left, right):
        box = panel.get_window_extent()
        assert box.height == approx(0.4 * box.width, rel=1e-3)
    assert bar.get_window_extent().height == approx(right.get_window_extent().height)


def test_the_table_beside_the_map_says_where_devices_are(network):
    (figure,) = [each for each in report_figures([network])[0] if each.name == "topology"]
    table = figure.table()
    names = [column.name for column in table.columns]
    places = [(row[names.index("x_m")], row[names.index("y_m")]) for row in table.rows]
    assert places == [(100.0, 0.0), (0.0, -120.0)]
