"""How many clusters a plan launches, found by trying, apart from the planner's reckoning."""

from __future__ import annotations


def clusters(tiles: int, slots: int) -> int:
    """For so many cluster tiles that are alike, where `slots` clusters are resident: the fewest that take no more rounds than all of
    them, unless more than a thirteenth of these were left out."""
    rounds = -(-tiles // slots)
    fewest = next(count for count in range(1, slots + 1) if count * rounds >= tiles)
    return fewest if tiles <= slots or 13 * (slots - fewest) <= slots else slots
