"""Races against other engines. Nothing is imported here: each engine's process starts bare."""
