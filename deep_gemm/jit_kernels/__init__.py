"""The 1.x home of the layout helpers."""

from . import utils

__all__ = ["utils"]
