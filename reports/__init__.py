"""Reports: tables, figures and one page from the records of finished runs.

Nothing here runs a simulation or computes a latency.
"""
