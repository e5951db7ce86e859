"""Name the function of a phase, such as one of torch, that fails without a line of the user's."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from fl.contracts import Phase
from fl.errors import MethodError
from fl.out_of_memory import is_out_of_memory

ARGUMENTS = {  # function of a phase -> what it is called with
    "loss": "w [P] and a mini-batch x, y",
    "criterion": "the logits and y of a mini-batch",
    "penalty": "w [P], which has a gradient",
    "effective": "w [P], which has a gradient, and a generator of numpy",
    "project": "w [P], and the velocity [P] or None",
    "collect": "w [P]",
}


def with_named_failures(phase: Phase) -> Phase:
    """The phase with functions of torch, such as ``project=torch.clamp_``, that name themselves.

    What fails in lines of the user's own, or in a call that Python refuses, is named by its line.
    """
    hooks = {name: getattr(phase, name) for name in ARGUMENTS}
    named: dict[str, Any] = {
        name: _named(name, hook)
        for name, hook in hooks.items()
        if hook is not None and not hasattr(hook, "__code__")
    }
    return replace(phase, **named) if named else phase


def _named(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(hook, updated=())
    def call(*given: Any) -> Any:
        try:
            return hook(*given)
        except Exception as error:
            if is_out_of_memory(error) or _has_a_line(error):
                raise
            text = (str(error).splitlines() or ["no message"])[0].rstrip(".")
            problem = f"names a method whose local_update, {name} of Phase, raised"
            raised = f"{type(error).__name__}: {text}; it gets {ARGUMENTS[name]}"
            raise MethodError("name", f"{problem} {raised}") from error

    return call


def _has_a_line(error: Exception) -> bool:
    """Did lines beside torch's run, or did Python refuse the call, which is found by its name?"""
    if isinstance(error, TypeError) and ("() takes " in str(error) or "() missing " in str(error)):
        return True
    below = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    modules = [frame.f_globals.get("__name__", "") for frame in below]
    return any(module.partition(".")[0] not in ("torch", "functools") for module in modules)
