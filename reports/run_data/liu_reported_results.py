"""What Liu et al. report of their four schemes, on which data and model.

Source: X. Liu, T. Ratnarajah, M. Sellathurai, Y. C. Eldar, "Adaptive Model Pruning and
Personalization for Federated Learning over Wireless Networks", Table I (latency per round) and
Fig. 5 (accuracy, communication cost).
"""

from __future__ import annotations

from typing import Any

from edgesim.scenario.schema import LIU_SCHEMES

PROPOSED, EQUAL, PRUNING, PERSONAL = LIU_SCHEMES
LATENCY_MS = {PROPOSED: 25.0, EQUAL: 38.0, PRUNING: 45.0, PERSONAL: 55.0}  # Table I
HIGHER_ACCURACY = ((PROPOSED, EQUAL), (PROPOSED, PRUNING))  # Fig. 5: the first above the second
BITS_SHARE = 0.5  # Fig. 5: bits of the proposed scheme, as a share of personalization only
MODEL, DATA = "liu-cnn", ("mnist", "fashion-mnist")


def role_of(scenario: dict[str, Any], scheme: str) -> str | None:
    """Which scheme of the paper a run is, as its scenario says; None if it says nothing.

    Args:
        scenario: resolved, with its section ``report`` if it has one.
        scheme: label of the run.
    """
    asked = scenario.get("report")
    if not isinstance(asked, dict) or asked.get("beside") != "liu":
        return None
    role = (asked.get("schemes") or {}).get(scheme)
    return role if role in LIU_SCHEMES else None


def role_rank(role: str | None) -> int:
    """The place of a role in the order of the paper; schemes without a role come last."""
    return LIU_SCHEMES.index(role) if role else len(LIU_SCHEMES)
