"""Tile programs get their tile sizes, layouts and register tiles for a machine."""

from rooftile.schedule.cpu import Scheduled, schedule

__all__ = ["Scheduled", "schedule"]
