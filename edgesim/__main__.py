"""``python -m edgesim``: the command line."""

import sys
from pathlib import Path

from edgesim.cli import main
from edgesim.shadowed_packages import ROOT

# As for the command ``edgesim``, a file select.py beside a scenario hides no module of Python.
if not sys.flags.safe_path and Path(sys.path[0]) == Path.cwd() != ROOT:
    del sys.path[0]
main()
