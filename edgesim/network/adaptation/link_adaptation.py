"""Link adaptation: spectral efficiency by signal-to-noise ratio, from the standards' tables.

The least ratio of a modulation and coding scheme is that of a block error rate of 10 % in white
Gaussian noise at code blocks of 1000 bit and more: where the capacity of Gray-mapped
bit-interleaved coded modulation reaches the spectral efficiency, plus 1.15 dB. (Against the block
error tables of Sionna the rule is off by 0.12 dB, root mean square over 51 schemes.) Receivers need
more: `network.adaptation.implementation_loss`.
"""

from __future__ import annotations

import numpy as np

from edgesim.network.adaptation.block_errors import Harq, RepeatedSchemes
from edgesim.network.adaptation.channel_estimate import ChannelEstimate
from edgesim.network.adaptation.drawn_repetitions import SLOT_S, DrawnRepetitions
from edgesim.network.adaptation.single_scheme import SingleScheme, staircase
from edgesim.network.fading.processes import Fading
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.scenario.radio.numerology import slot_seconds
from fl.contracts import Array, Streams
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw
from solvers.rates import EfficiencyLaw

# bits per symbol Qm -> 1024 R -> least ratio, dB
LEAST_DB: dict[int, dict[float, float]] = {
    2: {
        120: -6.382463,
        157: -5.100038,
        193: -4.088821,
        251: -2.756862,
        308: -1.671935,
        379: -0.512126,
        449: 0.498753,
        526: 1.516948,
        602: 2.467931,
        679: 3.413653,
    },
    4: {
        340: 3.488206,
        378: 4.187573,
        434: 5.157317,
        490: 6.077813,
        553: 7.078960,
        616: 8.063439,
        658: 8.717991,
    },
    6: {
        438: 9.096677,
        466: 9.671434,
        517: 10.686954,
        567: 11.656360,
        616: 12.594131,
        666: 13.550316,
        719: 14.574478,
        772: 15.619164,
        822: 16.634048,
        873: 17.724505,
        910: 18.587320,
        948: 19.607305,
    },
    8: {
        682.5: 18.398862,
        711: 19.058075,
        754: 20.065110,
        797: 21.095300,
        841: 22.181629,
        885: 23.317260,
        916.5: 24.187536,
        948: 25.156698,
    },
}
# TS 38.214: bits per symbol Qm -> 1024 R of the schemes of a table, in their order
TABLES: dict[str, dict[int, list[float]]] = {
    # Table 5.1.3.1-1
    "64qam": {
        2: [120, 157, 193, 251, 308, 379, 449, 526, 602, 679],
        4: [340, 378, 434, 490, 553, 616, 658],
        6: [438, 466, 517, 567, 616, 666, 719, 772, 822, 873, 910, 948],
    },
    # Table 5.1.3.1-2
    "256qam": {
        2: [120, 193, 308, 449, 602],
        4: [378, 434, 490, 553, 616, 658],
        6: [466, 517, 567, 616, 666, 719, 772, 822, 873],
        8: [682.5, 711, 754, 797, 841, 885, 916.5, 948],
    },
}
# TR 36.942, A.1 and A.2, with the ranges of studies for NR: attenuation, least and largest ratio,
# dB. (That of LTE itself ends where the uplink carries 2.0 bit/s/Hz, the downlink 4.4.)
TRUNCATED_UP, TRUNCATED_DOWN = (0.4, -10.0, 22.0), (0.6, -10.0, 30.0)


def schemes(table: str) -> tuple[Array, Array]:
    """(least ratio, linear; bits per symbol and hertz Qm R) of the schemes of a table [I]."""
    rows = [(qm, rate) for qm, rates in TABLES[table].items() for rate in rates]
    decibel = np.array([LEAST_DB[qm][rate] for qm, rate in rows])
    bits = np.array([qm * rate / 1024.0 for qm, rate in rows])
    return 10.0 ** (decibel / 10.0), bits


def make_law(section: AdaptationSection | None) -> EfficiencyLaw | None:
    """The law of uploads by ``network.adaptation``; None: log2(1 + g), Liu, eq. (9)."""
    if section is None or section.rate == "shannon":
        return None
    if section.rate == "truncated":
        return _truncated(*TRUNCATED_UP)
    repeated = repeated_schemes(section)
    return HullLaw(*(schemes(section.table) if repeated is None else repeated.curve()))


def make_downlink_law(section: AdaptationSection | None) -> EfficiencyLaw | None:
    """The law of the downlink where it is another than that of `make_law`; None: it is the same."""
    is_truncated = section is not None and section.rate == "truncated"
    return _truncated(*TRUNCATED_DOWN) if is_truncated else None


def _truncated(alpha: float, least_db: float, most_db: float) -> CappedLaw:
    return CappedLaw(alpha, 10.0 ** (most_db / 10.0), 10.0 ** (least_db / 10.0))


def make_single_scheme(section: AdaptationSection | None) -> SingleScheme | None:
    """What uploads get of ``network.adaptation`` where it is less than `make_law` plans with."""
    law = make_law(section)
    if section is None or section.split or not isinstance(law, HullLaw):
        return None
    repeated = repeated_schemes(section)
    best = staircase(*schemes(section.table)) if repeated is None else repeated.goodput
    return SingleScheme(law, best)


def repeated_schemes(section: AdaptationSection | None) -> RepeatedSchemes | None:
    """The schemes with their repetitions; None: no block is lost."""
    if section is None or section.errors == "none":
        return None
    harq = Harq(section.harq.most, section.harq.combining == "chase")
    return RepeatedSchemes(*schemes(section.table), harq)


def make_estimate(
    network: NetworkSection, fading: Fading | None, streams: Streams
) -> ChannelEstimate | None:
    """What is known of the fading, by a scenario's ``network`` section; None: all."""
    section = network.adaptation
    repeated = repeated_schemes(section)
    if section is None or section.csi is None or repeated is None or fading is None:
        return None
    return ChannelEstimate(fading, streams, repeated, section.csi.delay_s, section.csi.pilots)


def make_repetitions(network: NetworkSection, streams: Streams) -> DrawnRepetitions | None:
    """Repetitions as they happen, by a scenario's ``network`` section; None: only expected ones."""
    section, carrier = network.adaptation, network.carrier
    repeated = repeated_schemes(section)
    if section is None or repeated is None or section.errors != "drawn":
        return None
    slot_s, overhead, layers = SLOT_S, 0.0, 1
    if carrier is not None and carrier.bandwidth_hz is not None:
        slot_s, overhead = slot_seconds(carrier.scs_hz), carrier.overhead_up
        layers = carrier.layers
    trip_s, status_s = section.harq.round_trip_s, section.harq.status_delay_s
    return DrawnRepetitions(repeated, streams, slot_s, trip_s, overhead, status_s, layers)
