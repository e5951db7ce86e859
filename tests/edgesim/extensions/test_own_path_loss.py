"""Path losses of one's own function towards several base stations, and of devices that move."""

import math

import pytest

from edgesim.errors import EdgesimError
from edgesim.network.flows import stalled_links
from edgesim.runs.run import feasibility, simulate
from edgesim.scenario.loader import load

TEXT = """\
name: sites
rounds: 2
network:
  bandwidth: 10 MHz
  noise: -174 dBm/Hz
  layout: {kind: hex, rings: 1, sectors: 1, isd: 300 m}
  channel:
    path_loss: {model: log-distance, reference_loss: 38.5 dB, exponent: 3}
    shadowing: 4 dB
devices: [{count: 8, tx_power: 23 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 500}}]
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
CODE = """\
from functools import partial
from pathlib import Path

import numpy as np

def formula(fleet, streams):
    return 38.5 + 30 * np.log10(fleet.distance_m)

def drawn(fleet, streams):
    return 100 + 10 * streams.stream("mine").random(len(fleet))

def table(fleet, streams, site):
    losses_db = np.full((len(fleet), 2), 100.0)
    losses_db[:3, 1] = 90.0
    return losses_db[:, site]

def near(fleet, streams):
    return np.where(fleet.distance_m > 100, np.inf, formula(fleet, streams))

def by_height(fleet, streams):
    return 100 + fleet.height_m

def named_site(fleet, streams, *, site):
    return table(fleet, streams, site)

given_site = partial(table, site=1)

def read(fleet, streams):
    return np.loadtxt(Path(__file__).with_name("losses.txt"))[:len(fleet)]

def edits(fleet, streams):
    fleet.distance_m[:] = 100
    return formula(fleet, streams)

def with_gradient(fleet, streams):
    import torch
    return torch.full((len(fleet),), 100.0, requires_grad=True)

def masked(fleet, streams):
    return np.ma.array(np.full(len(fleet), 100.0), mask=np.arange(len(fleet)) == 1)

def truths(fleet, streams):
    return np.ones(len(fleet), dtype=bool)

class Bus:
    def __init__(self, fleet, streams):
        self.devices = len(fleet)

    def loss_db(self, time_s):
        return np.full(self.devices, 100.0)

    def next_change_s(self, time_s):
        return np.inf
"""
OWN = "network.channel.path_loss={model: code, code: ./radio.py:NAME}"
SINGLE, DISC = "network.layout=single", "devices.0.position={disc: 120 m}"
WALK = "devices.0.mobility={waypoint: {speed: 30 m/s}}"
SLOW = "devices.0.cpu.frequency=10 MHz"  # who walks on for more than a second
TWO = "network.layout={kind: sites, position: {list: [[0 m, 0 m], [300 m, 0 m]]}}"
EDGES = "tiers={edges: [{position: [0 m, 0 m]}, {position: [100 m, 0 m]}]}"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "radio.py").write_text(CODE)
    (tmp_path / "sites.yaml").write_text(TEXT)

    def start(name=None, *overrides):
        changes = [OWN.replace("NAME", name)] if name else []
        return simulate(load(tmp_path / "sites.yaml", [*changes, *overrides]), allow_code=True)

    start.folder = tmp_path
    return start


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        (DISC, WALK, SLOW),
        (SINGLE, DISC, WALK, SLOW),
        (SINGLE, DISC, EDGES),
        ("tiers={local_rounds: 2}",),
        ("tiers={local_rounds: 2, association: nearest}",),
        (TWO, DISC, "network.channel.inter_site=0.5"),
    ],
    ids=["hex", "hex-moving", "moving", "edges", "edges-of-hex", "nearest-of-hex", "sites"],
)
def test_the_formula_in_ones_own_code_gives_the_same_bytes(run, overrides):
    own, shipped = run("formula", *overrides), run(None, *overrides)
    assert own.spans.equals(shipped.spans) and len(own.spans) > 0


def test_losses_are_asked_for_at_every_base_station(run):
    """A table says 90 dB for three devices at the second one, and 100 dB elsewhere."""
    devices = run("table", TWO, DISC, "network.channel.shadowing=none").device_rounds
    sectors = devices[devices["round"] == 0].set_index("device").sector
    assert sectors.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    by_name = run("named_site", TWO, DISC, "network.channel.shadowing=none").device_rounds
    assert by_name.sector.tolist() == devices.sector.tolist()
    bound = run("given_site", TWO, DISC, "network.channel.shadowing=none").device_rounds
    assert set(bound.sector) == {0}  # 90 dB towards both, the first of equals


def test_files_that_the_code_reads_belong_to_the_run(run, tmp_path):
    losses, out = run.folder / "losses.txt", tmp_path / "out"
    losses.write_text("90\n" * 8)
    change = OWN.replace("NAME", "read").replace("}", ", reads: [losses.txt]}")
    changes = [change, SINGLE]
    done = simulate(load(run.folder / "sites.yaml", changes), allow_code=True, out=out)
    again = simulate(load(out / "scenario.yaml"), allow_code=True, out=tmp_path / "again")
    assert again.spans.equals(done.spans)  # by the copy in the run's folder
    losses.write_text("100\n" * 8)
    with pytest.raises(EdgesimError, match="another run"):
        simulate(load(run.folder / "sites.yaml", changes), allow_code=True, out=out)
    losses.unlink()
    with pytest.raises(EdgesimError, match=r"reads\.0 is losses\.txt, which is no file; a path"):
        simulate(load(run.folder / "sites.yaml", changes), allow_code=True)


@pytest.mark.parametrize(
    "overrides",
    [(SINGLE,), (SINGLE, "network.uplink.share=fair"), (TWO,)],
    ids=["one", "fair", "two"],
)
def test_who_leaves_all_connection_for_good_does_not_wait_for_ever(run, overrides, monkeypatch):
    monkeypatch.setattr(stalled_links, "MOST_IN_VAIN", 50)
    walk = "device,time_s,x_m,y_m\n0,0,90,0\n0,2,130,0\n1,0,50,0\n1,2,50,0\n"
    (run.folder / "gone.csv").write_text(walk)
    changes = [
        "network.bandwidth=10 kHz",
        "network.channel.shadowing=none",
        "devices.0.count=2",
        "devices.0.cpu.frequency=30 MHz",
        "devices.0.mobility={trace: gone.csv, end: hold}",
    ]
    with pytest.raises(EdgesimError, match=r"device 0 has .* no rate through 50 changes of the"):
        run("near", *changes, *overrides)


def test_draws_of_base_stations_are_their_own(run):
    """With one draw for both sites, all devices would belong to the first of equals."""
    devices = run("drawn", TWO, DISC, "network.channel.shadowing=none").device_rounds
    assert set(devices.sector) == {0, 1}


def test_who_reaches_no_base_station_is_left_out_and_reported(run):
    scenario = load(run.folder / "sites.yaml", [OWN.replace("NAME", "near")])
    reached = [row["least_ms"] < math.inf for row in feasibility(scenario, allow_code=True).rows]
    rounds = run("near").rounds
    assert 0 < sum(reached) < 8
    assert rounds.arrived[0] == sum(reached) and rounds.infeasible[0] == 8 - sum(reached)


def test_heights_reach_the_code(run):
    losses = [f"devices.0.height={height}" for height in ("1 m", "11 m")]
    energy = [run("by_height", SINGLE, height).rounds.energy_j[0] for height in losses]
    assert energy[1] > energy[0]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("edits", "ValueError: assignment destination is read-only"),
        ("with_gradient", "which gave Tensor, which is no array: Can't call numpy()"),
        ("masked", "gave values that are masked; give 8 numbers, dB"),
        ("truths", "gave values that are bool; give 8 numbers, dB"),
        (
            "formula",
            "gave nan dB for device 0; a path loss is from 0 to 1000 dB, or inf where there",
        ),
    ],
)
def test_what_is_no_path_loss(run, name, sentence):
    with pytest.raises(EdgesimError) as problem:
        run(name, SINGLE)
    assert sentence in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ((), "code is ./radio.py:Bus, which gave Bus with losses over time; with several base"),
        ((SINGLE, DISC, WALK), "or devices that move, give an array by place"),
        ((TWO,), "devices.0.position is missing; network.layout sites needs it"),
        ((SINGLE, EDGES), "tiers.association is nearest, but devices.0 has no place; write"),
    ],
)
def test_mistakes(run, overrides, sentence):
    with pytest.raises(EdgesimError) as problem:
        run("Bus", *overrides)
    assert sentence in str(problem.value)
