"""The variants of the GEMMs on CPU tensors through their real kernels, in the emulator. Run as a program with names of
scenarios: the outcome of each is printed as JSON. DG_EMULATE and DG_DRIVER_LIBRARY are in the environment."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

import deep_gemm  # noqa: E402
from deep_gemm.testing import assert_bitwise_equal  # noqa: E402
from skip_head_mid_cases import CASES as HEAD_CASES  # noqa: E402
from skip_head_mid_cases import WIDE_CASES as WIDE_HEAD_CASES  # noqa: E402
from skip_head_mid_cases import HeadProblem  # noqa: E402


def heads() -> None:
    """Every kind of split, dtype and recipe; nothing outside of the parts is written."""
    for case in HEAD_CASES + WIDE_HEAD_CASES:
        HeadProblem(case).check(exact=False)


def heads_have_the_bits_of_the_dense_gemm() -> None:
    for case in (HEAD_CASES[0], HEAD_CASES[2], HEAD_CASES[3], WIDE_HEAD_CASES[0]):
        problem = HeadProblem(case)
        dense = torch.empty(case.m, problem.b[0].shape[0], dtype=case.dtype)
        deep_gemm.fp8_gemm_nt(problem.a, problem.b, dense, recipe=case.recipe)
        assert_bitwise_equal(problem.run().contiguous(), dense, str(case))


SCENARIOS = {function.__name__: function for function in (heads, heads_have_the_bits_of_the_dense_gemm)}


def the_kernels_ran() -> None:
    library = ctypes.CDLL(os.environ["DG_DRIVER_LIBRARY"])
    library.dg_emulator_statistics.restype = ctypes.c_char_p
    assert json.loads(library.dg_emulator_statistics())["mma_instructions"] > 0, "the reference ran instead"


def main(names: list[str]) -> None:
    outcomes = {}
    for name in names or SCENARIOS:
        try:
            SCENARIOS[name]()
            the_kernels_ran()
            outcomes[name] = "ok"
        except BaseException:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
