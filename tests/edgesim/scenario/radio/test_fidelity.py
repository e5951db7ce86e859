"""The ladder: what a rung sets, what wins over it, and that every rung runs."""

from pathlib import Path

import pytest

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.scenario import load
from edgesim.scenario.radio.fidelity import LEAVES_OUT, RUNGS
from edgesim.sweep.sweep_plan import plan_sweep

FILE = Path(__file__).parents[4] / "scenarios" / "ladder.yaml"
GAIN = "network.channel.path_loss={model: uma, antenna_gain: 8 dB}"
RING = "devices.0.position={ring: [35 m, 250 m]}"
TIMING = ["learning.dataset=none", "learning.partition=none", "rounds=2"]


def rung(name, *changes):
    return load(FILE, [f"network.fidelity={name}", *changes], label="joint")


def test_rungs_set_what_they_say():
    paper, cell, adapted, errors = map(rung, ("paper", "cell", "adapted", "errors"))
    assert (
        paper.network.noise.power_w == pytest.approx(1e-14, abs=0.0)
        and paper.network.carrier is None
    )
    assert paper.network.channel.path_loss.loss_db.values == (100.0,)
    assert paper.allocation.rate == "now" and cell.allocation.rate == "quantile"
    assert cell.network.channel.path_loss.model == "uma" and cell.network.adaptation is None
    assert cell.network.channel.fading.k_db == "table" and cell.devices[0].position.radius_m == 290
    assert cell.network.bandwidth_hz == 5e6 and adapted.network.bandwidth_hz == 3.96e6
    assert adapted.network.adaptation.rate == "mcs" and adapted.network.adaptation.errors == "none"
    assert errors.network.adaptation.errors == "drawn"
    assert errors.network.adaptation.implementation_loss_db == 2.0


def test_the_rung_network_has_57_sectors_in_interference_by_events():
    network = rung("network").network
    assert (network.layout.rings, network.layout.sectors, network.layout.wrap) == (2, 3, True)
    assert network.channel.path_loss.antenna.kind == "column"
    assert network.power_control.alpha == 0.8 and network.adaptation.errors == "drawn"
    assert network.interference is None  # events, where there are several cells
    assert rung("network").allocation.interference == "full"


def test_every_rung_says_what_it_leaves_out():
    assert tuple(LEAVES_OUT) == RUNGS


def test_a_written_key_wins_over_its_rung():
    own = rung(
        "errors",
        "network.channel.path_loss={model: log-distance, reference_loss: 38 dB, exponent: 3}",
        "network.channel.fading=none",
        "network.adaptation.errors=expected",
        "allocation.rate=mean",
        "devices.0.distance=80 m",
    )
    assert own.network.channel.path_loss.exponent == 3.0 and own.devices[0].position is None
    assert own.network.adaptation.errors == "expected" and own.allocation.rate == "mean"
    assert own.network.channel.fading.kind == "none"


def test_a_resolved_rung_reads_back_to_the_same_digest(tmp_path):
    for name in RUNGS:
        resolved = tmp_path / f"{name}.yaml"
        resolved.write_text(rung(name).to_yaml(), "utf-8")
        assert load(resolved).digest() == rung(name).digest()


@pytest.mark.parametrize(
    "changes",
    [
        ("errors", "network.adaptation.errors=none"),
        ("errors", "network.adaptation=null"),
        ("network", "network.power_control=none"),
        ("adapted", "network.adaptation=none"),
        ("network", "network.layout={kind: sites, position: {list: [[0 m, 0 m]]}}", GAIN, RING),
    ],
)
def test_what_is_written_against_a_rung_stays_when_it_is_read_back(changes, tmp_path):
    """A key that a rung would set again, although it has its default without one."""
    own, resolved = rung(*changes), tmp_path / "resolved.yaml"
    resolved.write_text(own.to_yaml(), "utf-8")
    again = load(resolved)
    assert again.digest() == own.digest() and again.network == own.network


def test_no_power_control_on_the_rung_network():
    assert rung("network", "network.power_control=none").network.power_control is None
    assert rung("adapted", "network.adaptation=none").network.adaptation is None
    assert rung("network", "network.power_control=none").digest() != rung("network").digest()
    own = rung("network", "network.layout={kind: hex, sectors: 1}", GAIN)
    assert own.network.channel.path_loss.antenna is None  # a gain that is written stands for it


def test_every_rung_runs_and_costs_more_pruning_than_the_one_below():
    pruned = [
        simulate(rung(name, *TIMING)).summary["rho_mean"]
        for name in ("paper", "cell", "adapted", "errors")
    ]
    assert pruned == sorted(pruned) and pruned[-1] > pruned[0] + 0.3


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["network.fidelity=city"], "paper or cell or adapted or errors or network"),
        (["network.fidelity=adapted", "network.bandwidth=7 MHz"], "channels of 5, 10"),
        (["network.fidelity=adapted", "allocation.solver=fair"], "one of the solvers kkt"),
        (["network.fidelity=paper", "devices.0.position.disc=40 m"], "is not read with path_loss"),
        (["network.fidelity=cell", "network.channel=4"], "write"),
        (["network.fidelity=cell", "network.channel.path_loss.height=-3 m"], "height"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, changes, label="joint")
    assert part in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.slow
def test_the_sweep_of_the_ladder_has_every_rung_in_its_order():
    points = plan_sweep(FILE, TIMING, "0", only=["joint"]).points
    networks = [point.scenario.network for point in points]
    assert [network.fidelity for network in networks] == list(RUNGS)
    assert [network.layout.kind for network in networks] == ["single"] * 4 + ["hex"]


def test_a_written_coherence_takes_the_place_of_the_speed_of_a_rung():
    """It was said to stand beside a speed, which nobody had written."""
    fading = rung("cell", "network.channel.fading={coherence: 5 ms}").network.channel.fading
    assert (fading.kind, fading.coherence_s, fading.speed_m_per_s) == ("rician", 0.005, None)


LOG = "network.channel.path_loss={model: log-distance, reference_loss: 38 dB, exponent: 3}"
CODE = "network.channel.path_loss={model: code, code: ./radio.py:losses}"


@pytest.mark.parametrize(("name", "loss"), [("cell", LOG), ("network", LOG), ("network", CODE)])
def test_a_path_loss_without_a_table_of_k_factors_has_no_direct_path(name, loss):
    """k was said to be table, which nobody had written."""
    place = ["devices.0.position={disc: 100 m}"] if name == "cell" else []
    fading = rung(name, loss, *place).network.channel.fading
    assert (fading.kind, fading.k_db) == ("rayleigh", None)
    assert fading.speed_m_per_s == pytest.approx(3.0 / 3.6)
    written = rung(name, loss, *place, "network.channel.fading={k: 9 dB}").network.channel.fading
    assert (written.kind, written.k_db) == ("rician", 9.0)
    assert written.speed_m_per_s == fading.speed_m_per_s
    kind = rung(name, loss, *place, "network.channel.fading={kind: rician, k: 9 dB}")
    assert kind.network.channel.fading == written


@pytest.mark.parametrize(("loss", "alpha"), [(LOG, 0.8), (CODE, None)])
def test_the_rung_network_asks_no_antenna_of_a_path_loss_that_has_none(loss, alpha):
    """Nor power control of code, which gives a loss per device and no model of it."""
    network = rung("network", loss).network
    assert (network.layout.rings, network.layout.sectors) == (2, 1)
    assert getattr(network.power_control, "alpha", None) == alpha


WALLS = "network.channel.path_loss={walls: {indoor: 0.3}}"
SPEED = "network.channel.fading={speed: 30 km/h}"


def test_what_is_written_for_the_kind_of_a_rung_stays_when_a_kind_is_named():
    """The walls, and the speed, vanished: the rung filled in its own."""
    channel = rung("cell", WALLS, SPEED, "network.channel.path_loss.model=umi").network.channel
    assert (channel.path_loss.model, channel.path_loss.walls.indoor) == ("umi", 0.3)
    named = rung("cell", SPEED, "network.channel.fading.kind=rician").network.channel.fading
    assert (named.k_db, named.speed_m_per_s) == ("table", pytest.approx(30.0 / 3.6))
    still = rung("cell", SPEED, "network.channel.fading.kind=none").network.channel.fading
    assert (still.kind, still.speed_m_per_s) == ("none", None)  # none reads no keys


def test_another_model_of_tr_38901_reads_the_same_keys():
    """Gain and walls of the file vanished without a word."""
    urban = FILE.with_name("urban-macro.yaml")
    loss = load(
        urban, ["network.channel.path_loss.model=umi"], label="now"
    ).network.channel.path_loss
    assert (loss.model, loss.antenna_gain_db, loss.walls.indoor) == ("umi", 8.0, 0.5)
    office = ["network.channel.path_loss.model=inh", "devices.0.position={disc: 40 m}"]
    with pytest.raises(ScenarioError, match="which reads no walls; remove them"):
        load(urban, office, label="now")
    loss = load(urban, [*office, "~network.channel.path_loss.walls"], label="now")
    assert loss.network.channel.path_loss.antenna_gain_db == 8.0
