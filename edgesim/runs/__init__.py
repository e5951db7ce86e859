"""From a scenario to a finished run: building its parts, simulating it, writing its folder."""
