"""Holds the stages of a compilation against float64."""

from rooftile.check.compilation import Report, Stage, stages

__all__ = ["Report", "Stage", "stages"]
