"""The allocation of least energy."""
