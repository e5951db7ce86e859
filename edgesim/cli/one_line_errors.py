"""Errors of the command line's own grammar and of its output, as one line like all others."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from edgesim.cli.options import ExitCode, print_error
from edgesim.errors import COMMAND_LINE, shorten_path

NAME = "edgesim"  # however it was started
# typer exports the base of its errors about arguments under no name of its own
_UsageError: Any = typer.BadParameter.__base__


class OneLineErrors(TyperGroup):
    """The group of all commands; its errors are one sentence each.

    What cannot be written to stdout is an error as well: a full device ends the command with a
    sentence, a closed pipe without one.
    """

    def main(self, *unused: Any, **options: Any) -> Any:
        args = options.pop("args", None)
        given = list(sys.argv[1:] if args is None else args)
        options |= {"prog_name": NAME, "standalone_mode": False}
        try:
            _refuse_undecodable(given)
            code = super().main(given or ["--help"], **options)
        except _UsageError as problem:
            code = _report(_sentence(problem))
        except OSError as problem:
            code = _report(_refused_by_the_system(problem))
        try:
            sys.stdout.flush()
        except OSError as problem:
            _discard_output()
            code = code or _report(_refused_by_the_system(problem))
        sys.exit(code or 0)


def _report(problem: object) -> ExitCode:
    print_error(problem)
    return ExitCode.bad_input


def _sentence(problem: Any) -> str:
    """Such as ``command line: --seed should be a whole number from 0 to 9``."""
    parameter: Any = getattr(problem, "param", None)
    # in typer before 0.29 the type of the parameter has the bounds
    bounded = parameter if hasattr(parameter, "min") else getattr(parameter, "type", None)
    low, high = getattr(bounded, "min", None), getattr(bounded, "max", None)
    if low is not None and high is not None:
        text = f"{parameter.opts[0]} should be a whole number from {low} to {high}"
    else:
        text = re.sub("^Invalid value( for|:) ", "", problem.format_message())
        text = re.sub("^'([^']+)'", r"\1", text.replace("Value error, ", "")).rstrip(".")
    command = problem.ctx.command_path if problem.ctx else NAME
    return f"{COMMAND_LINE}: {text}{'' if text[-1] == '?' else ';'} see {command} --help."


def _refused_by_the_system(problem: OSError) -> str:
    """Such as ``xxx...: File name too long``; without a file it is the output."""
    if problem.filename is None:
        return f"the output cannot be written ({problem.strerror})."
    return f"{shorten_path(problem.filename)}: {problem.strerror}."


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Arguments go into YAML and JSON files, which hold nothing but UTF-8."""
    for number, text in enumerate(arguments, 1):
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = ascii(text[:40])
            problem = f"argument {number}, {shown}, is not UTF-8 text"
            print_error(f"{COMMAND_LINE}: {problem}; write it, and name files, in UTF-8.")
            sys.exit(ExitCode.bad_input)


def _discard_output() -> None:
    """Have what is still buffered go nowhere, so that the interpreter's end does not fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
