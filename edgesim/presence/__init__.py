"""When devices are there: drawn sessions, the time of day, groups that fail together, traces."""
