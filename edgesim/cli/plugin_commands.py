"""Commands of other packages, found by their entry points in the group ``edgesim.commands``.

`reports` adds ``report`` and ``compare`` in this way; the simulator knows neither by name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

import typer

from edgesim.cli.options import ExitCode, print_error
from edgesim.shadowed_packages import HiddenPackageError, refuse_hidden

GROUP = "edgesim.commands"


def add_commands(app: typer.Typer) -> None:
    """Register every entry point of `GROUP`, those of one module in the order of its lines.

    An entry point that cannot be imported leaves a command that reports it; the others are as ever.
    """
    commands = {entry.name: _load(entry) for entry in entry_points(group=GROUP)}
    for name, command in sorted(commands.items(), key=lambda item: _place(item[1])):
        # a command without options of its own takes any, so that its error is printed
        context = {"ignore_unknown_options": True, "allow_extra_args": True}
        broken = getattr(command, "__module__", "") == __name__
        app.command(name, context_settings=context if broken else None)(command)


def _load(entry: EntryPoint) -> Callable[..., None]:
    try:
        package = entry.module.partition(".")[0]
        if entry.dist and entry.dist.name == "edgesim":
            refuse_hidden(package)
        return entry.load()
    except Exception as error:  # whatever a module of others raises while it is imported
        return _broken(entry, error)


def _broken(entry: EntryPoint, error: Exception) -> Callable[..., None]:
    sentence = f"The command {entry.name} ({entry.value}) cannot be loaded: {error}"
    hidden = isinstance(error, HiddenPackageError)  # which says itself what to do
    hint = "" if hidden else "; install the package that it comes from again"

    def fail() -> None:
        print_error(f"{sentence}{hint}.")
        raise typer.Exit(ExitCode.bad_input)

    fail.__doc__ = f"{sentence}."
    return fail


def _place(command: Callable[..., None]) -> tuple[str, int]:
    code = getattr(command, "__code__", None)
    return getattr(command, "__module__", ""), code.co_firstlineno if code else 0
