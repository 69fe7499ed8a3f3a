"""Replayable cases by topic; each module offers ``cases()``."""
from __future__ import annotations

from harness.case import Case


def all_cases(arch: str) -> list[Case]:
    """Every case for an architecture (``sm90a`` or ``sm100a``); names are unique."""
    from cases import barrier_cases, device_map_cases, gemm_cases, gemm_sm100_cases, scalar_cases, tma_cases, wgmma_cases

    modules = (scalar_cases, barrier_cases, tma_cases, device_map_cases, wgmma_cases, gemm_cases, gemm_sm100_cases)
    found = [case for module in modules for case in module.cases() if case.arch == arch]
    assert len({case.name for case in found}) == len(found)
    return found
