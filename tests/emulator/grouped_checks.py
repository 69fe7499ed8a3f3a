#!/usr/bin/env python3
"""Checks of the m-grouped FP8 GEMMs that run in a process whose driver is the emulator.

    DG_EMULATE=sm90a DG_DRIVER_LIBRARY=$(python tests/emulator/build.py) python tests/emulator/grouped_checks.py values masked
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import deep_gemm  # noqa: E402
from deep_gemm.testing import assert_bitwise_equal, compare  # noqa: E402
from m_grouped_cases import ContiguousCase, MaskedCase, make_problem, with_form  # noqa: E402

CASES = {
    "contiguous": [
        ContiguousCase(((0, 100), (-1, 128), (2, 1)), 136, 272),
        ContiguousCase(((1, 130), (0, 37)), 72, 384, ragged=True, sfa="row"),
        ContiguousCase(((0, 90), (1, 128)), 136, 256, fill="id", sfa="mn", layout="nn", sfb="transposed", pitch=16),
        ContiguousCase(((0, 64), (1, 3), (-1, 64), (2, 65)), 64, 128, alignment=64),
        ContiguousCase(((-1, 256),), 64, 128),
        ContiguousCase(((1, 77), (0, 128)), 72, 272, recipe=(1, 1, 128), sfb="aligned"),
        ContiguousCase(((0, 1),), 24, 256, ragged=True),
    ],
    "masked": [
        MaskedCase(8, (8, 0, 1, 5), 72, 256, guard=True),
        MaskedCase(16, (1, 16, 0, 15), 136, 128, sfa="row"),
        MaskedCase(96, (96, 0, 1, 65), 136, 272, guard=True, pitch=16),
        MaskedCase(130, (0, 129, 130), 72, 128, sfa="mn", sfb="transposed"),
        MaskedCase(64, (0, 0, 0), 128, 256),
        MaskedCase(40, (33, 0, 40), 72, 272, recipe=(1, 1, 128), guard=True),
        MaskedCase(16, tuple(g % 17 for g in range(34)), 24, 128),
    ],
}


def check_values(case):
    """Against FP64; zeros in padding, nothing outside."""
    problem = make_problem(case, "cpu")
    d = problem.run()
    measured = compare(d, problem.reference(), max_cosine_gap=1e-5, label=str(case))
    assert measured.diff < 1e-5, (case, measured)
    assert problem.untouched(), f"{case}: wrote outside of the wanted rows"
    if isinstance(case, ContiguousCase):
        assert not bool(d[problem.layout < 0].view(torch.int16).any()), f"{case}: padding is not zero bit for bit"


def check_bits(case):
    """The same bits for every form of the factors, hint and SM count."""
    first = make_problem(case, "cpu").run()
    for form in ("aligned", "mn", "row"):
        assert_bitwise_equal(with_form(make_problem(case, "cpu"), form).run(), first, form)
    hints = (0, 1, 64, 10**6) if isinstance(case, MaskedCase) else ()
    for hint in hints:
        problem = make_problem(case, "cpu")
        assert_bitwise_equal(problem.run(expected_m=hint), first, f"expected_m {hint}")
        assert problem.untouched(), f"expected_m {hint}"
    for num_sms in (1, 3):
        deep_gemm.set_num_sms(num_sms)
        problem = make_problem(case, "cpu")
        assert_bitwise_equal(problem.run(), first, f"{num_sms} SMs")
        assert problem.untouched(), f"{num_sms} SMs"
    deep_gemm.set_num_sms(0)


def check_range(_):
    """Counts past the capacity or below zero: cut, never followed."""
    problem = make_problem(MaskedCase(16, (16, 16, 16), 72, 128, guard=True), "cpu")
    want = problem.run().clone()
    problem.poison()
    problem.layout.copy_(torch.tensor([17, -1, 2**31 - 1]))
    problem.run()
    assert_bitwise_equal(problem.d[[0, 2]], want[[0, 2]])
    problem.layout.copy_(torch.tensor([16, 0, 16]))
    assert problem.untouched()


def main() -> None:
    """Runs the checks of a kind on the cases of a grouping, and makes sure that it was the kernel that ran."""
    kind, grouping = sys.argv[1:]
    check = {"values": check_values, "bits": check_bits, "range": check_range}[kind]
    for case in CASES[grouping] if kind == "values" else CASES[grouping][2:3]:
        check(case)
    library = ctypes.CDLL(os.environ["DG_DRIVER_LIBRARY"])
    library.dg_emulator_statistics.restype = ctypes.c_char_p
    assert json.loads(library.dg_emulator_statistics())["mma_instructions"] > 0, "the reference ran instead"
    print("ran")


if __name__ == "__main__":
    main()
