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

    A name that the app has stays the app's. An entry point that cannot be used, or a name that
    several packages have, leaves a command that reports it; the others are as ever.
    """
    taken = {
        known.name or getattr(known.callback, "__name__", "") for known in app.registered_commands
    }
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in taken:
            found.setdefault(entry.name, []).append(entry)
    commands = {name: _command_of(entries) for name, entries in found.items()}
    for name, command in sorted(commands.items(), key=lambda item: _place(item[1])):
        # a command without options of its own takes any, so that its error is printed
        context = {"ignore_unknown_options": True, "allow_extra_args": True}
        broken = getattr(command, "__module__", "") == __name__
        app.command(name, context_settings=context if broken else None)(command)


def _command_of(entries: list[EntryPoint]) -> Callable[..., None]:
    """What the entry points of one name stand for: this project's own goes before all others."""
    entries = [entry for entry in entries if _is_own(entry)] or entries
    if len(entries) == 1:
        return _load(entries[0])
    packages = " and ".join(
        sorted(entry.dist.name if entry.dist else entry.value for entry in entries)
    )
    return _broken(f"The command {entries[0].name} is registered by {packages}; remove one of them")


def _load(entry: EntryPoint) -> Callable[..., None]:
    sentence = f"The command {entry.name} ({entry.value}) cannot be loaded: "
    try:
        if _is_own(entry):
            refuse_hidden(entry.module.partition(".")[0])
        command = entry.load()
        if not callable(command):
            raise TypeError(f"it is {type(command).__name__}, no function")
        alone = typer.Typer(add_completion=False)
        alone.command()(command)
        typer.main.get_command(alone)  # a wrong kind or annotation would end every other command
    except HiddenPackageError as error:  # which says itself what to do
        return _broken(f"{sentence}{error}")
    except (Exception, SystemExit) as error:  # whatever a module of others raises
        reason = str(error).partition("\n")[0]
        return _broken(f"{sentence}{reason}; install the package that it comes from again")
    return command


def _is_own(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == "edgesim"


def _broken(sentence: str) -> Callable[..., None]:
    def fail() -> None:
        print_error(f"{sentence}.")
        raise typer.Exit(ExitCode.bad_input)

    fail.__doc__ = f"{sentence}."
    return fail


def _place(command: Callable[..., None]) -> tuple[str, int]:
    code = getattr(command, "__code__", None)
    return getattr(command, "__module__", None) or "", code.co_firstlineno if code else 0
