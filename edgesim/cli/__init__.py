"""The command line."""

from edgesim.cli.app import main

__all__ = ["main"]
