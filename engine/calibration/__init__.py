"""Finds by measuring which recipe makes a model fastest on this machine, and keeps it."""
