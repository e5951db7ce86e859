"""Files of the user that Python would import instead of a package of this project."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from edgesim.errors import EdgesimError

ROOT = Path(__file__).parent.parent  # the packages of this project lie side by side


class HiddenPackageError(EdgesimError, ImportError):
    """A file of the user would be imported instead of a package of this project."""


def hiding_file(package: str) -> Path | None:
    """The file that hides a package of this project; None where the package is found."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module of that name was made by hand
        return None
    if spec is None or spec.origin is None:
        return None
    own = ROOT / package / "__init__.py"
    return None if Path(spec.origin).resolve() == own.resolve() else Path(spec.origin)


def refuse_hidden(*packages: str) -> None:
    """Refuse to start where a package of this project would not be found.

    A script, or ``python -m edgesim``, then ends with the sentence alone and exit code 2.

    Raises:
        HiddenPackageError: with the file that is in its way.
    """
    for package in packages:
        if path := hiding_file(package):
            if not hasattr(sys, "ps1"):  # at a prompt an error is no end
                sys.excepthook = _exit_with_sentence
            raise HiddenPackageError(
                f"edgesim has a package {package}, which {path} hides from Python; "
                "rename that file, or move it to another folder"
            )


def _exit_with_sentence(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not issubclass(kind, HiddenPackageError):
        sys.__excepthook__(kind, error, traceback)
        return
    print(error, file=sys.stderr)
    sys.exit(2)
