"""Quantisation, scaling-factor layouts, and helpers for distributed programs."""

from __future__ import annotations

from . import dist, layout, math
from .dist import *  # noqa: F403
from .layout import *  # noqa: F403
from .math import *  # noqa: F403

__all__ = ["dist", "layout", "math", *dist.__all__, *layout.__all__, *math.__all__]
