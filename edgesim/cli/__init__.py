"""The command line.

The console script ``edgesim`` begins here: signals are in charge before any library loads.
"""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper

RESUMABLE = ("run", "sweep")
# With the usual 700 the garbage collector looks through all libraries again and again while they
# are imported and while figures are drawn. With the look at the end that is a quarter of a run of
# one round.
NEW_OBJECTS_TO_COLLECT = 500_000


def main() -> None:
    """The console script ``edgesim``."""
    from edgesim.stop_signals import ignore, install

    gc.set_threshold(NEW_OBJECTS_TO_COLLECT)
    _open_standard_streams()
    install(_stop_sentence(sys.argv[1:]))
    try:
        from edgesim.cli.app import app

        app()
    finally:
        ignore()
        gc.freeze()  # else the collector looks through all libraries once more while Python ends


def _stop_sentence(arguments: list[str]) -> str:
    """What is printed when a signal ends the command."""
    if arguments[:1] == [] or arguments[0] not in RESUMABLE:
        return "interrupted"
    but = ", without --fresh," if "--fresh" in arguments else ""
    return f"interrupted; the same command{but} resumes where it stopped"


def _open_standard_streams() -> None:
    """Open on the null device the standard streams that the caller has closed.

    Else the next file that is opened would take the number of one. What a stream cannot encode is
    escaped: no locale keeps a result from being printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8")  # noqa: SIM115 (stays open)
            setattr(sys, name, stream)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
