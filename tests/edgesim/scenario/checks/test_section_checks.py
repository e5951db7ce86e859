"""What is right in each section, but does not fit together, is refused by the scenario alone."""

import pytest

from edgesim import load
from edgesim.errors import ScenarioError

PROBLEM = "trains on processors only; write device: cpu, or another executor"


def test_workers_of_a_cluster_train_on_processors_only(path):
    """Training refuses the same, in the same words."""
    for changes in ("learning.executor=dask", "learning.device=cuda:0"):
        load(path, [changes])
    with pytest.raises(ScenarioError, match=f"learning.executor is dask, which {PROBLEM}$"):
        load(path, ["learning.device=cuda:0", "learning.executor=dask"])
