"""``python -m edgesim``: the command line."""

from edgesim.cli import main

main()
