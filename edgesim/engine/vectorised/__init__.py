"""Rounds of many devices as arrays: the same rows as the processes, without an event per device."""
