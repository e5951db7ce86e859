"""The model by broadcast and by unicast, beside sectors that send, by hand: two sectors of 10 MHz,
N0 -174 dBm/Hz and 5 dB, 0.2 W, gains 1e-10 from the own sector and 1e-11 from the other.

Alone a device then receives 73.207161 Mbit/s, beside the other sector 33.795951.
"""

import math

import numpy as np
import pytest
import simpy

from edgesim.network.downlink.sector_downlink import SectorDownlink, ends_in_turns
from edgesim.network.fading.processes import BlockFading
from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.mobility.serving_sectors import Handover
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.tdd_service import ALWAYS, TddService
from edgesim.seeds import Seeds
from fl.contracts import Grant

DENSITY = 10.0 ** ((-174.0 + 5.0 - 30.0) / 10.0)
TWO = Couplings([[1e-10, 1e-11], [1e-11, 1e-10]], [0, 1])
THREE = Couplings([[1e-10, 1e-11], [1e-10, 1e-11], [1e-11, 1e-10]], [0, 0, 1])
MBIT, ALONE, BESIDE = 1e6, 73.207161, 33.795951


class Tally:
    bits = 0.0


def link_of(couplings=TWO, mode="broadcast", uplink=False, options=(), **changes):
    couplings, env = couplings.copy(), simpy.Environment()
    about = {"bandwidth_hz": 10e6, "noise_w_per_hz": DENSITY, **dict(options)}
    channel = SectorChannel(couplings, **about)
    carrier = NetworkUplink(env, channel, couplings) if uplink else None
    return SectorDownlink(env, channel, couplings, 0.2, mode=mode, uplink=carrier, **changes)


def ends(link, megabits, starts=None):
    """When each device has its bits, s."""
    found, grants = {}, [Grant(k, 0.0, 0.0, 1e9, 0.2) for k in range(len(megabits))]

    def one(grant, wait_s):
        yield link.env.timeout(wait_s)
        yield from link.carry(megabits[grant.device] * MBIT, grant)
        found[grant.device] = link.env.now

    link.begin_round(grants)
    for grant, wait_s in zip(grants, starts or [0.0] * len(megabits), strict=True):
        link.env.process(one(grant, wait_s))
    link.env.run()
    return [found[k] for k in range(len(megabits))]


def planned_s(link, megabits, rate="now", **options):
    devices = np.arange(len(megabits))
    gains = PlannedGains(link.channel, rate, **options)
    return link.seconds(np.array(megabits) * MBIT, devices, gains)


def test_two_broadcasts_disturb_each_other_until_the_first_ends():
    assert ends(link_of(), [10.0, 40.0]) == pytest.approx([0.295893436, 0.705689410], abs=1e-9)


@pytest.mark.parametrize("heard, rate", [("none", ALONE), ("full", BESIDE)])
def test_without_events_a_device_hears_all_sectors_or_none(heard, rate):
    found = ends(link_of(interference=heard), [10.0, 40.0])
    assert found == pytest.approx([10.0 / rate, 40.0 / rate], rel=1e-7)


def test_a_device_hears_the_other_sector_over_its_own_link_to_it():
    """Device 1 hears sector 0 with 4e-11: log2(1 + 20 / 8.12589) x 10 MHz = 17.913007 Mbit/s."""
    couplings = Couplings([[1e-10, 1e-11], [4e-11, 1e-10]], [0, 1])
    found = ends(link_of(couplings, interference="full"), [10.0, 10.0])
    assert found == pytest.approx([10.0 / BESIDE, 10.0 / 17.913007], rel=1e-7)


def test_a_broadcast_goes_at_the_rate_of_the_weakest_of_its_sector():
    """1e-11 at the own sector and 1e-12 at the other: log2(1 + 20 / 3.258925) x 10 MHz."""
    couplings = Couplings([[1e-10, 1e-11], [1e-11, 1e-12], [1e-11, 1e-10]], [0, 0, 1])
    weak = 10.0 * math.log2(1.0 + 2e-12 / (2e-13 + DENSITY * 10e6))
    assert weak == pytest.approx(28.353162, abs=1e-6)
    found = ends(link_of(couplings, interference="full"), [10.0, 10.0, 10.0])
    assert found == pytest.approx([10.0 / weak, 10.0 / weak, 10.0 / BESIDE], rel=1e-7)


def test_unicast_goes_in_turns_among_those_that_still_receive():
    """Sector 1 is done after 10 / 33.795951 s, when 5 of the 10 Mbit of device 0 are there; the
    other 5 take turns at 73.207161, then device 1 has the 30 that are left to itself.
    """
    first = 10.0 / BESIDE
    second = first + 2.0 * 5.0 / ALONE
    found = ends(link_of(THREE, "unicast"), [10.0, 40.0, 10.0])
    assert found == pytest.approx([second, second + 30.0 / ALONE, first], rel=1e-7)
    assert found == pytest.approx([0.432492, 0.842288, 0.295893], abs=1e-6)


def test_plans_count_with_every_sector_all_the_time():
    assert planned_s(link_of(), [10.0, 40.0]) == pytest.approx(
        [10.0 / BESIDE, 40.0 / BESIDE], rel=1e-7
    )
    # 2 x 10 Mbit in turns, then the other 30
    turns = planned_s(link_of(THREE, "unicast"), [10.0, 40.0, 10.0])
    assert turns == pytest.approx([0.591787, 1.479467, 0.295893], abs=1e-6)
    alone = planned_s(link_of(planned="none"), [10.0, 0.0])
    assert alone == pytest.approx([10.0 / ALONE, 0.0], rel=1e-7)


@pytest.mark.parametrize("rate", ["now", "quantile"])
@pytest.mark.parametrize("mode", ["broadcast", "unicast"])
def test_each_alone_is_as_if_nobody_else_were_asked(mode, rate):
    gain = 10.0 ** np.random.default_rng(0).uniform(-13.0, -11.0, (6, 2))
    fading = None if rate == "now" else BlockFading(Seeds(0), 6, 1e3)
    link = link_of(Couplings(gain, [0, 0, 0, 1, 1, 1]), mode, options={"fading": fading})
    devices, bits = np.arange(6), np.array([9.0, 9.0, 9.0, 5.0, 5.0, 0.0]) * MBIT
    gains = PlannedGains(link.channel, rate, late_share=0.1, for_round=True)
    each = [link.seconds(bits[[k]], devices[[k]], gains) for k in devices]
    assert link.alone_s(bits, devices, gains) == pytest.approx(np.concatenate(each), rel=1e-9)
    assert link.seconds(bits, devices, gains).max() > np.max(each)


@pytest.mark.parametrize("mode", ["broadcast", "unicast"])
@pytest.mark.parametrize("seed", range(3))
def test_on_a_static_channel_nobody_is_later_than_planned(mode, seed):
    rng = np.random.default_rng(seed)
    gain = 10.0 ** rng.uniform(-13.0, -11.0, (12, 4))
    couplings = Couplings(gain, np.repeat(np.arange(4), 3))
    megabits = rng.uniform(1.0, 9.0, 12)
    if mode == "broadcast":
        megabits[:] = 5.0
    link = link_of(couplings, mode)
    planned, found = planned_s(link, megabits), np.array(ends(link, megabits))
    assert np.all(found <= planned * (1.0 + 1e-9)) and found.max() < 0.95 * planned.max()


def test_quantiles_are_met_as_often_as_promised():
    """Rayleigh blocks as long as the downlink: at most eps / 2 = 5 % of broadcasts are later."""
    late, count = 0, 200
    for seed in range(count):
        fading = BlockFading(Seeds(seed), 2, 1e3)
        link = link_of(interference="full", options={"fading": fading})
        planned = planned_s(link, [10.0, 10.0], "quantile", late_share=0.1)
        late += int((np.array(ends(link, [10.0, 10.0])) > planned).sum())
    assert 0.02 <= late / (2 * count) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / (2 * count))


@pytest.mark.parametrize("among", [2, 0])
def test_a_promise_for_the_round_is_divided_among_sectors_and_devices(among):
    """Also where nobody says how many devices the round has: those that are asked together."""
    fading = BlockFading(Seeds(0), 2, 1e3)
    for mode, eps in (("broadcast", 1.0 - 0.95**0.5), ("unicast", 1.0 - 0.95**0.5)):
        link = link_of(mode=mode, options={"fading": fading})
        promise = {"late_share": 0.1, "for_round": True, "among": among}
        found = planned_s(link, [10.0, 10.0], "quantile", **promise)
        q = -math.log1p(-eps)  # of the power of a Rayleigh fade
        rate = 10.0 * math.log2(1.0 + 2e-11 * q / (2e-12 + DENSITY * 10e6))
        assert found == pytest.approx([10.0 / rate, 10.0 / rate], rel=1e-7)


def test_a_sector_sends_while_the_link_may():
    """0.1 s of every 0.4 s: 73.207161 Mbit/s is the mean, four times that while it sends."""
    service = TddService(0.4, 0.0, 0.1)
    link = link_of(options={"air_times": (ALWAYS, service)}, interference="none", planned="none")
    assert ends(link, [ALONE * 0.2, 0.0])[0] == pytest.approx(0.05, rel=1e-7)
    assert planned_s(link, [ALONE * 0.2, 0.0])[0] == pytest.approx(
        0.2 + service.longest_gap_s, rel=1e-7
    )


class Halves(SelectiveFading):
    """Half of the power in one half of the band, three halves in the other."""

    def powers(self, n, k_factor=None, devices=slice(None)):
        return np.tile([0.5, 1.5], (self.devices, 1))[devices]


@pytest.mark.parametrize("mode", ["broadcast", "unicast"])
@pytest.mark.parametrize("couplings", [TWO, Couplings([[1e-10], [1e-10]], [0, 0])])
def test_a_band_of_unequal_parts_carries_the_mean_over_them(couplings, mode):
    """A mean ratio of 4 is 2 and 6: log2(3 x 7) / 2 = 2.196159 bit/s/Hz, and not log2(5)."""
    sectors = couplings.sectors
    fading = Halves(Seeds(0), 2, 1.0, delay_spread_s=1e-7, bandwidth_hz=10e6, parts=2)
    link = link_of(couplings, mode, options={"fading": fading}, interference="full")
    # P g / (N0 W + P g') = 4, of which g' = g / 10 where there is another sector
    beside = 0.1 if sectors == 2 else 0.0
    link.tx_power_w = 4.0 * DENSITY * 10e6 / (1e-10 * (1.0 - 4.0 * beside))
    alone_s = 10.0 / 21.961588
    found = ends(link, [10.0, 10.0])
    turns = 2.0 if mode == "unicast" and sectors == 1 else 1.0
    assert found == pytest.approx([alone_s * turns] * 2, rel=1e-7)
    assert planned_s(link, [10.0, 10.0]) == pytest.approx(found, rel=1e-12)


def test_a_handover_interrupts_and_the_rest_comes_from_the_new_sector():
    """After 0.1 s device 0 goes to sector 1, without a link for 50 ms, in which the other device
    of that broadcast receives alone; its gain there is 1e-11, and 1e-10 what it hears.
    """
    link = link_of(uplink=True)
    assert link.uplink is not None

    class Walk:
        interruption_s = 0.05

    def go():
        yield link.env.timeout(0.1)
        link.uplink.walk = Walk()
        link.uplink.walk.follow = lambda _: []
        link.uplink.walk.update_k = lambda: None
        link.uplink.walk.next_change_s = lambda _: math.inf
        link.uplink.hand_over(0, 1)

    link.env.process(go())
    found = ends(link, [10.0, 5.0])
    # Both listen to sector 1 now, which nobody disturbs: the weaker one has 1e-11.
    slow = 10.0 * math.log2(1.0 + 2e-12 / (DENSITY * 10e6))
    rest = 10.0 - 0.1 * BESIDE
    assert found[0] == pytest.approx(0.15 + rest / slow, rel=1e-7)
    assert found[1] == pytest.approx(0.1 + (5.0 - 0.1 * BESIDE) / slow, rel=1e-7)


def test_a_handover_of_long_ago_interrupts_nothing():
    """A resumed run learns of all handovers at its start: nobody is without a link from then on."""
    link, coming = link_of(uplink=True), [Handover(0.1, 0, 1)]
    assert link.uplink is not None

    class Walk:
        interruption_s = 0.05
        follow = staticmethod(lambda now_s: [coming.pop()] if coming and now_s >= 1.0 else [])
        update_k = staticmethod(lambda: None)
        next_change_s = staticmethod(lambda _: math.inf)

    link.uplink.walk = Walk()
    slow = 10.0 * math.log2(1.0 + 2e-12 / (DENSITY * 10e6))
    found = ends(link, [10.0, 5.0], [1.0, 1.0])
    assert found == pytest.approx([1.0 + 10.0 / slow, 1.0 + 5.0 / slow], rel=1e-7)


def test_an_interrupted_download_has_what_arrived():
    link, tally = link_of(), Tally()
    grant = Grant(0, 0.0, 0.0, 1e9, 0.2)
    link.begin_round([grant])
    process = link.env.process(link.carry(10.0 * MBIT, grant, tally))
    process.defused = True

    def stop():
        yield link.env.timeout(0.1)
        process.interrupt()

    link.env.process(stop())
    link.env.run()
    assert tally.bits == pytest.approx(0.1 * ALONE * MBIT, rel=1e-7)


def test_ends_in_turns():
    assert ends_in_turns(np.array([3.0, 1.0, 2.0])).tolist() == [6.0, 3.0, 5.0]
    assert ends_in_turns(np.array([np.inf, 1.0, np.inf])).tolist() == [np.inf, 3.0, np.inf]
    assert ends_in_turns(np.array([])).tolist() == []


def test_words_that_no_downlink_knows():
    for wrong in ({"mode": "multicast"}, {"interference": "load"}, {"planned": "events"}):
        with pytest.raises(ValueError, match="a downlink knows"):
            link_of(**wrong)
