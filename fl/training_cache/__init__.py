"""A cache by which runs of a sweep share training that is provably the same."""
