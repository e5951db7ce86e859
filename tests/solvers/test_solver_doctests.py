"""The examples in the docstrings are true, and importing the package stays cheap."""

import doctest
import subprocess
import sys

import solvers


def test_docstring_examples():
    result = doctest.testmod(solvers)
    assert result.attempted >= 2 and result.failed == 0


def test_import_needs_numpy_only():
    heavy = "{'scipy', 'cvxpy', 'torch', 'simpy', 'pandas', 'matplotlib'}"
    code = f"import sys, solvers; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
