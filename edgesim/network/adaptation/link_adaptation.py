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
from edgesim.network.fading.processes import Fading
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.scenario.radio.numerology import slot_seconds
from fl.contracts import Array, Streams
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw
from solvers.rates import EfficiencyLaw

# TS 38.214: bits per symbol Qm -> 1024 R of its schemes, and their least ratios in dB
QPSK_64 = [120, 157, 193, 251, 308, 379, 449, 526, 602, 679]
QPSK_64_DB = [-6.38, -5.10, -4.09, -2.76, -1.67, -0.51, 0.50, 1.52, 2.47, 3.41]
QAM16_64 = [340, 378, 434, 490, 553, 616, 658]
QAM16_64_DB = [3.49, 4.19, 5.16, 6.08, 7.08, 8.06, 8.72]
QAM64_64 = [438, 466, 517, 567, 616, 666, 719, 772, 822, 873, 910, 948]
QAM64_64_DB = [9.10, 9.67, 10.69, 11.66, 12.59, 13.55, 14.57, 15.62, 16.63, 17.72, 18.59, 19.61]
QPSK_256 = [120, 193, 308, 449, 602]
QPSK_256_DB = [-6.38, -4.09, -1.67, 0.50, 2.47]
QAM16_256 = [378, 434, 490, 553, 616, 658]
QAM16_256_DB = [4.19, 5.16, 6.08, 7.08, 8.06, 8.72]
QAM64_256 = [466, 517, 567, 616, 666, 719, 772, 822, 873]
QAM64_256_DB = [9.67, 10.69, 11.66, 12.59, 13.55, 14.57, 15.62, 16.63, 17.72]
QAM256_256 = [682.5, 711, 754, 797, 841, 885, 916.5, 948]
QAM256_256_DB = [18.40, 19.06, 20.07, 21.10, 22.18, 23.32, 24.19, 25.16]
Rows = list[tuple[int, list[float], list[float]]]
TABLES: dict[str, Rows] = {
    # Table 5.1.3.1-1
    "64qam": [
        (2, [*map(float, QPSK_64)], QPSK_64_DB),
        (4, [*map(float, QAM16_64)], QAM16_64_DB),
        (6, [*map(float, QAM64_64)], QAM64_64_DB),
    ],
    # Table 5.1.3.1-2
    "256qam": [
        (2, [*map(float, QPSK_256)], QPSK_256_DB),
        (4, [*map(float, QAM16_256)], QAM16_256_DB),
        (6, [*map(float, QAM64_256)], QAM64_256_DB),
        (8, QAM256_256, QAM256_256_DB),
    ],
}
# TR 36.942, A.2, with the ranges of studies for NR: attenuation, least and largest ratio, dB
TRUNCATED_UP = (0.4, -10.0, 22.0)


def schemes(table: str) -> tuple[Array, Array]:
    """(least ratio, linear; bits per symbol and hertz Qm R) of the schemes of a table [I]."""
    decibel = np.array([each for _, _, thresholds in TABLES[table] for each in thresholds])
    bits = np.array([qm * rate / 1024.0 for qm, rates, _ in TABLES[table] for rate in rates])
    return 10.0 ** (decibel / 10.0), bits


def make_law(section: AdaptationSection | None) -> EfficiencyLaw | None:
    """The law of a scenario's ``network.adaptation``; None: log2(1 + g), Liu, eq. (9)."""
    if section is None or section.rate == "shannon":
        return None
    if section.rate == "truncated":
        alpha, least_db, most_db = TRUNCATED_UP
        return CappedLaw(alpha, 10.0 ** (most_db / 10.0), 10.0 ** (least_db / 10.0))
    repeated = repeated_schemes(section)
    return HullLaw(*(schemes(section.table) if repeated is None else repeated.curve()))


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
    slot_s, overhead = SLOT_S, 0.0
    if carrier is not None and carrier.bandwidth_hz is not None:
        slot_s, overhead = slot_seconds(carrier.scs_hz), carrier.overhead_up
    trip_s, status_s = section.harq.round_trip_s, section.harq.status_delay_s
    return DrawnRepetitions(repeated, streams, slot_s, trip_s, overhead, status_s)
