"""What trains and evaluates the models of a run, and what restores them from a checkpoint."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from edgesim.clocks.speed_tiers import SpeedTiers
from edgesim.clocks.tier_models import TierModels
from edgesim.extensions.selection_costs import expected_costs
from edgesim.hierarchy.edge_trainers import EdgeTrainers
from edgesim.hierarchy.tiered_state import TieredState, joined_scores
from edgesim.records.checkpoint.run_checkpoint import Checkpoint
from edgesim.runs.setup.setup import Setup
from fl.contracts import Array, Scores, State
from fl.learned_selection.choosing_method import ChoosingMethod
from fl.timing_only import Counted, NoTrainer, Rounds
from fl.training_cache.cache import CachingExecutor, KeyingMethod


def method_hooks(setup: Setup) -> Any:
    """The method's hooks as the rounds call them."""
    method: Any = setup.method
    if setup.counts_only:
        method = Counted(method)
    elif isinstance(setup.clock, SpeedTiers):
        method = TierModels(method, setup.clock.tier_of, method.shared_mask)
    elif setup.reuse:
        method = KeyingMethod(method, setup.reuse)
    if setup.selector is None:
        return method
    costs = expected_costs(setup.fleet, setup.channel.air_times, setup.hardware)
    told = costs, not setup.counts_only
    return ChoosingMethod(method, setup.selector, setup.method.participants, setup.seeds, *told)


def make_trainer(setup: Setup) -> Any:
    """What trains the jobs of a run."""
    if setup.edges:
        return EdgeTrainers([make_trainer(edge) for edge in setup.edges])
    if setup.counts_only:
        return NoTrainer()
    from fl.executors.deferred_training import Trainer

    executor: Any = setup.executor
    if setup.reuse:
        executor = CachingExecutor(executor, setup.reuse)
    return Trainer(setup.task, executor, setup.method.encode, setup.method.charged)


def torch_on_one_thread(setup: Setup) -> AbstractContextManager[None]:
    """The operations of a method's hooks take one thread each: more change last bits of sums."""
    if setup.counts_only:
        return nullcontext()
    from fl.worker_threads import one_torch_thread

    return one_torch_thread()


def evaluate_state(setup: Setup, state: State) -> Scores | None:
    """Personalised loss and accuracy of every device; None where nothing is learned."""
    if setup.counts_only:
        return None
    if setup.edges:
        pairs = zip(setup.edges, state.edges, strict=True)
        scores = [evaluate_state(edge, own) for edge, own in pairs]
        held_out = [
            sum(map(bool, map(len, each.task.data.validation_index))) for each in setup.edges
        ]
        return joined_scores([each for each in scores if each], state.members, held_out)
    from fl.evaluation.evaluate import evaluate

    def of_state(state: State) -> Scores:
        return evaluate(setup.task, setup.method, state, setup.executor.threads)

    return setup.reuse.scores(state, of_state) if setup.reuse else of_state(state)


def restored_state(setup: Setup, saved: Checkpoint) -> State:
    """The method's state of a checkpoint."""
    return state_of(setup, saved.arrays, saved.facts["state"])


def state_of(setup: Setup, arrays: dict[str, Array], record: dict[str, Any]) -> State:
    """The state that `fl.method_base.state.State.to_arrays` wrote.

    Raises:
        LookupError, TypeError, ValueError: it is of another form.
    """
    if setup.hierarchy:
        members = [edge.members for edge in setup.hierarchy.edges]
        restore = [partial(state_of, edge) for edge in setup.edges]
        return TieredState.from_arrays(arrays, record, members, restore)
    if setup.counts_only:
        return Rounds.from_arrays(arrays, record)
    from fl.method_base.state import State as MethodState

    state = MethodState.from_arrays(arrays, record, setup.task.device)
    size = setup.method.layout.size
    if state.w.shape != (size,) or not state.w.is_floating_point():
        given = f"{list(state.w.shape)} of {state.w.dtype}"
        raise ValueError(f"the model w is {given}, not [{size}] of real numbers")
    return state
