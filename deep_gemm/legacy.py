"""Names of the BF16 grouped GEMMs with gathered rows. They refuse every call until they are implemented."""

from __future__ import annotations

from .ops.pending import pending_functions as _pending_functions

globals().update(_pending_functions("legacy"))
