"""Random fields of a site over the plane: line of sight, shadowing and K factor (TR 38.901)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edgesim.network.propagation.random_field import RandomField
from edgesim.network.propagation.tr38901_path_loss import INH, RMA, UMA, UMI
from fl.contracts import Array, Streams

LOS, NLOS, O2I = "los", "nlos", "o2i"
SITE = 0  # of a single cell
RMA_FAR_DB = 6.0  # shadowing with line of sight beyond the breakpoint


@dataclass(frozen=True)
class Statistics:
    """Parameters of a model for LOS, NLOS and O2I links: Tables 7.4.1-1 and 7.5-6.

    Args:
        shadowing_db: standard deviations, dB.
        decorrelation_m: distances of the shadowing, m.
        k_db: mean and standard deviation of the K factor with line of sight, dB.
        k_decorrelation_m: its distance, m.
        k_correlation: correlation of shadowing and K factor.
        los_decorrelation_m: distance of the line-of-sight state, Table 7.6.3.1-2, m.
    """

    shadowing_db: dict[str, float]
    decorrelation_m: dict[str, float]
    k_db: tuple[float, float]
    k_decorrelation_m: float
    k_correlation: float
    los_decorrelation_m: float


def _by_state(los: float, nlos: float, o2i: float = float("nan")) -> dict[str, float]:
    return {LOS: los, NLOS: nlos, O2I: o2i}


STATISTICS = {
    UMA: Statistics(_by_state(4, 6, 7), _by_state(37, 50, 7), (9, 3.5), 12, 0.0, 50),
    UMI: Statistics(_by_state(4, 7.82, 7), _by_state(10, 13, 7), (9, 5), 15, 0.5, 50),
    RMA: Statistics(_by_state(4, 8, 8), _by_state(37, 120, 120), (7, 4), 40, 0.0, 60),
    INH: Statistics(_by_state(3, 8.03), _by_state(10, 6), (7, 4), 4, 0.5, 10),
}


@dataclass(frozen=True, eq=False)
class FieldsOfSite:
    """The random fields over the plane of one site: each state has its own.

    Args:
        streams: random streams of the run.
        model: uma, umi, rma or inh.
        site: number of the site.
        inter_site: c, correlation of the shadowing towards different sites.
    """

    streams: Streams
    model: str
    site: int = SITE
    inter_site: float = 0.0

    @cached_property
    def sight(self) -> RandomField:
        """Of the line of sight."""
        return self.field("field/los", STATISTICS[self.model].los_decorrelation_m)

    @cached_property
    def k_factor(self) -> RandomField:
        """Of the part of the K factor that is independent of the shadowing."""
        return self.field("field/k", STATISTICS[self.model].k_decorrelation_m)

    @cached_property
    def shadowing(self) -> dict[str, RandomField]:
        """Of the shadowing, by state."""
        far = STATISTICS[self.model].decorrelation_m
        return {each: self.field(f"field/sf/{each}", far[each]) for each in far}

    @cached_property
    def common(self) -> RandomField:
        """Of the shadowing that all sites share, whatever their states."""
        far_m = STATISTICS[self.model].decorrelation_m[NLOS]
        return RandomField(self.streams, "field/sf/common", SITE, far_m)

    def field(self, name: str, decorrelation_m: float) -> RandomField:
        """Another field of this site."""
        return RandomField(self.streams, name, self.site, decorrelation_m)

    def shadowing_and_k(
        self,
        position_m: Array,
        line_of_sight: Array,
        indoor: Array,
        given_db: float | None = None,
        beyond: Array | None = None,
        with_k: bool = True,
        common_m: Array | None = None,
    ) -> tuple[Array, Array]:
        """(shadowing [K], dB; K factor [K], linear).

        The K factor is correlated with the shadowing by the square root of their correlation
        matrix (clause 7.5, step 4).

        Args:
            position_m: of the devices [K, 2], m.
            line_of_sight: bool [K].
            indoor: bool [K].
            given_db: standard deviation of the shadowing instead of the table's, dB.
            beyond: farther than the breakpoint, where RMa has 6 dB with line of sight, bool [K].
            with_k: the K factor is asked for; else it is 0.
            common_m: the same place for all sites [K, 2], m; None: ``position_m``.
        """
        table = STATISTICS[self.model]
        shadowing_db, k_factor = np.zeros(len(indoor)), np.zeros(len(indoor))
        if given_db == 0.0 and not with_k:
            return shadowing_db, k_factor
        for each, here in states(line_of_sight, indoor):
            z = self.shadow(each, position_m[here], None if common_m is None else common_m[here])
            sigma_db: Any = table.shadowing_db[each] if given_db is None else given_db
            if self.model == RMA and each == LOS and given_db is None and beyond is not None:
                sigma_db = np.where(beyond[here], RMA_FAR_DB, sigma_db)
            shadowing_db[here] = sigma_db * z
            if each == LOS and with_k:
                c, (mean_db, spread_db) = table.k_correlation, table.k_db
                mixed = c * z + np.sqrt(1.0 - c**2) * self.k_factor.at(position_m[here])
                k_factor[here] = 10.0 ** ((mean_db + spread_db * mixed) / 10.0)
        return shadowing_db, k_factor

    def shadow(self, state: str, position_m: Array, common_m: Array | None = None) -> Array:
        """Standard normal field [K] of the shadowing of links of one state; see above."""
        z = self.shadowing[state].at(position_m)
        if self.inter_site:
            shared = self.common.at(position_m if common_m is None else common_m)
            z = np.sqrt(self.inter_site) * shared + np.sqrt(1.0 - self.inter_site) * z
        return z


def states(line_of_sight: Array, indoor: Array) -> list[tuple[str, Array]]:
    """Positions of the links [K] by their state, of the states that there are."""
    clear = line_of_sight & ~indoor
    where = {LOS: clear, NLOS: ~(clear | indoor), O2I: indoor}
    return [(each, np.flatnonzero(here)) for each, here in where.items() if here.any()]
