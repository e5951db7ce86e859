"""Rounds as SimPy processes, and as arrays where no device meets another."""
