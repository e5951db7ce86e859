"""Band shares and pruning ratios of the devices of a cell: `allocate(PruningProblem(...))`."""

from solvers.allocation import (
    ABOUT,
    IN_BLOCKS,
    METHODS,
    WITH_ALPHA,
    WITHOUT_DEADLINE,
    Allocation,
    allocate,
)
from solvers.energy_terms import EnergyTerms
from solvers.problem import PruningProblem
from solvers.problem_checks import NumberRangeError
from solvers.solution import (
    Certificate,
    InfeasibleError,
    InvalidAllocationError,
    NamedDevicesError,
    Solution,
    SolverError,
    UncertifiedError,
)

__all__ = [
    "ABOUT",
    "IN_BLOCKS",
    "METHODS",
    "WITHOUT_DEADLINE",
    "WITH_ALPHA",
    "Allocation",
    "Certificate",
    "EnergyTerms",
    "InfeasibleError",
    "InvalidAllocationError",
    "NamedDevicesError",
    "NumberRangeError",
    "PruningProblem",
    "Solution",
    "SolverError",
    "UncertifiedError",
    "allocate",
]
