"""Runs read from their folders, sorted into schemes."""
