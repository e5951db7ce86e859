"""Executors: how waiting jobs are trained, one by one on several threads or as stacks of models.

The result of a job depends on the job alone: not on its neighbours, their number, or the number of
threads. Stacked models sum in another order than single ones, which decides the last bits; whether
they are stacked therefore follows from the architecture and the kind of device, by a rule written
down from benchmarks and never timed in a run.
"""
