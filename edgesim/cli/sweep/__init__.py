"""``edgesim sweep``: its options, what it shows while it runs, before and after."""
