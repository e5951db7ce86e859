"""Resource grid of NR: resource blocks, slots, overhead and TDD patterns (TS 38.101-1, 38.306).

The resource elements of a band of W hertz are 14/15 of W per second, because the cyclic prefix
takes the rest; a share OH of them is overhead. A fluid rate is W (14/15)(1 - OH) log2(1 + SINR)
times the share of time that a TDD pattern gives to the link.
"""

from __future__ import annotations

import re

SYMBOLS = 14  # of a slot
SUBCARRIERS = 12  # of a resource block
PREFIX_SHARE = 14.0 / 15.0  # resource elements per second and hertz
MHZ, KHZ = 1e6, 1e3
FR1_HZ = (410e6, 7.125e9)  # frequencies of TS 38.101-1, Table 5.1-1
# N_RB of FR1: TS 38.101-1, Table 5.3.2-1; subcarrier spacing in kHz -> channel bandwidth in MHz
RESOURCE_BLOCKS = {
    15: {3: 15, 5: 25, 10: 52, 15: 79, 20: 106, 25: 133, 30: 160, 35: 188, 40: 216, 45: 242}
    | {50: 270},
    30: {5: 11, 10: 24, 15: 38, 20: 51, 25: 65, 30: 78, 35: 92, 40: 106, 45: 119, 50: 133}
    | {60: 162, 70: 189, 80: 217, 90: 245, 100: 273},
    60: {10: 11, 15: 18, 20: 24, 25: 31, 30: 38, 35: 44, 40: 51, 45: 58, 50: 65, 60: 79}
    | {70: 93, 80: 107, 90: 121, 100: 135},
}


def resource_blocks(bandwidth_hz: float, spacing_hz: float) -> int | None:
    """N_RB of a channel bandwidth; None where the standard has no such channel."""
    widths = RESOURCE_BLOCKS.get(round(spacing_hz / KHZ), {})
    return widths.get(round(bandwidth_hz / MHZ)) if bandwidth_hz % MHZ == 0 else None


def occupied_hz(blocks: int, spacing_hz: float) -> float:
    """W = 12 N_RB SCS, Hz."""
    return SUBCARRIERS * blocks * spacing_hz


def slot_seconds(spacing_hz: float) -> float:
    """Length of a slot of 14 symbols, 1 ms / 2^mu, s."""
    return 15.0 * KHZ / spacing_hz * 1e-3


def resource_share(overhead: float, air_share: float = 1.0) -> float:
    """Part of W log2(1 + SINR) that carries data: (14/15)(1 - OH) x share of time.

    Args:
        overhead: OH, for reference signals and control (TS 38.306, clause 4.1.2).
        air_share: share of the time in which the link sends.
    """
    return PREFIX_SHARE * (1.0 - overhead) * air_share


def is_pattern(pattern: str) -> bool:
    """Whether this is a TDD pattern of whole slots: D, U and at most one S before the first U."""
    return re.fullmatch(r"D+S?U+", pattern) is not None


def air_shares(pattern: str, special: tuple[int, int, int]) -> tuple[float, float]:
    """Shares of the time for (uplink, downlink) of a TDD pattern such as DDDSU.

    Args:
        pattern: one letter a slot: D downlink, U uplink, S special.
        special: symbols of a special slot for downlink, guard and uplink, 14 together.

    Example:
        >>> round(air_shares("DDDSU", (10, 2, 2))[0], 6)  # 16 of 70 symbols
        0.228571
    """
    down, _, up = special
    counts = {letter: pattern.count(letter) for letter in "DSU"}
    symbols = SYMBOLS * len(pattern)
    up_share = (SYMBOLS * counts["U"] + up * counts["S"]) / symbols
    return up_share, (SYMBOLS * counts["D"] + down * counts["S"]) / symbols
