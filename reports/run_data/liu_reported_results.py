"""What Liu et al. report, and which scheme of a report corresponds to which of theirs.

Source: X. Liu, T. Ratnarajah, M. Sellathurai, Y. C. Eldar, "Adaptive Model Pruning and
Personalization for Federated Learning over Wireless Networks", Table I (latency per round) and
Fig. 5 (accuracy, communication cost).
"""

from __future__ import annotations

JOINT, EQUAL, PRUNING, PERSONAL, REFERENCE = "joint", "equal", "pruning", "personal", "reference"
ROLE_ORDER = (JOINT, EQUAL, PRUNING, PERSONAL, REFERENCE)
LATENCY_MS = {JOINT: 25.0, EQUAL: 38.0, PRUNING: 45.0, PERSONAL: 55.0}  # Table I
HIGHER_ACCURACY = ((JOINT, EQUAL), (JOINT, PRUNING))  # Fig. 5: the first above the second
BITS_SHARE = 0.5  # Fig. 5: bits of the proposed scheme, as a share of personalization only
AIMS_AT_THRESHOLD = frozenset({JOINT, EQUAL, PRUNING})  # rho from (47): the plan fills T_th


def role_of(method: str, solver: str | None) -> str | None:
    """The scheme of the paper that a (method, solver) pair plays; None if it plays none."""
    method = str(method).replace("_", "-").lower()
    if method == "liu":
        return {"kkt": JOINT, "convex": JOINT, "equal": EQUAL}.get(str(solver).lower())
    return {
        "pruning-only": PRUNING,
        "fedalt": PERSONAL,
        "fedsim": PERSONAL,
        "fedavg": REFERENCE,
    }.get(method)


def role_rank(role: str | None) -> int:
    """The place of a role in the order of the paper; schemes without a role come last."""
    return ROLE_ORDER.index(role) if role else len(ROLE_ORDER)
