"""The variants of the GEMMs on CPU tensors through their real kernels, in the emulator. Run as a program with names of
scenarios: the outcome of each is printed as JSON. DG_EMULATE and DG_DRIVER_LIBRARY are in the environment."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

import deep_gemm  # noqa: E402
from deep_gemm import _C  # noqa: E402
from deep_gemm.testing import assert_bitwise_equal  # noqa: E402
from einsum_cases import (  # noqa: E402
    BHD, BMN, CASES, EMPTY_CASES, F32, FP8_CASES, PER_BLOCK, PER_ROW, REFERENCE_CASES, WIDE_CASES, Problem, case,
)  # fmt: skip
from grouped_scenarios import last_launch  # noqa: E402
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


def sums_and_batches() -> None:
    """Every expression, arrangement of memory, output and form of C: exact operands to the bit, random ones near FP64."""
    for each in CASES + EMPTY_CASES:
        Problem(each, exact=True).check(exact=True)
        Problem(each).check()


def fp8_batches() -> None:
    for each in FP8_CASES:
        Problem(each).check()


def fp8_batches_with_factors_in_units() -> None:
    """Factors of each batch that TMA loads: the bits of those that a warp copies."""
    each = case(BHD, 132, 3, 256, 200, recipe=PER_ROW)
    shape, options = (132, 200, 256), {"recipe": PER_ROW, "grouping": "batched", "num_groups": 3}
    choice = _C.explain_fp8_gemm(*shape, **options)
    config = next(p["config"] for p in (choice["best"], *choice["runners_up"]) if p["config"]["k_blocks"] == 1)
    _C.pin_fp8_gemm_config(*shape, 0, config=config, **options)
    problem = Problem(each)
    want, copied = problem.run().clone(), last_launch()["bulk_load_bytes"]
    sfa, sfb = problem.factors
    problem.factors = [sfa.permute(1, 2, 0).contiguous().permute(2, 0, 1), sfb.transpose(1, 2).contiguous().transpose(1, 2)]
    problem.d.fill_(float("nan"))
    assert_bitwise_equal(problem.run(), want, "factors in units")
    assert last_launch()["bulk_load_bytes"] > copied, "TMA did not load them"
    _C.forget_fp8_gemm_plans()


def wide_contractions() -> None:
    """Wide enough for the planner to take wide tiles and clusters."""
    for each in WIDE_CASES:
        Problem(each).check()


def batches_have_the_bits_of_the_dense_gemm() -> None:
    for each in (CASES[7], CASES[9], WIDE_CASES[1]):
        problem = Problem(each)
        c = None if problem.c is None else problem.c.clone()
        problem.run()
        for h in range(each.extents["h"]):
            d = torch.empty(problem.d[:, h].shape, dtype=each.dtype)
            wide = torch.empty(d.shape[0], -(-d.shape[1] // 8) * 8, dtype=each.dtype)[:, : d.shape[1]]
            wide.copy_(d if c is None else c[:, h])
            deep_gemm.bf16_gemm_nt(problem.a[:, h], problem.b[h], wide, None if c is None else wide)
            assert_bitwise_equal(problem.d[:, h].contiguous(), wide.contiguous(), f"{each}, h {h}")


def a_sum_is_one_chain() -> None:
    """The K of one batch after that of another, as one long K: to the bit where batches are whole stages."""
    problem = Problem(case(BMN, 5, 70, 128, 40, dtype=F32))
    problem.run()
    flat = [t.permute(1, 0, 2).reshape(t.shape[1], -1).contiguous() for t in (problem.a, problem.b)]
    d = torch.empty(70, 40)
    deep_gemm.bf16_gemm_nt(*flat, d)
    assert_bitwise_equal(problem.d, d, "sum")


def settings_change_no_bit() -> None:
    for each in (WIDE_CASES[0], WIDE_CASES[1], WIDE_CASES[3]):
        first = Problem(each).run().clone()
        for count in (1, 5, 131):
            deep_gemm.set_num_sms(count)
            assert_bitwise_equal(Problem(each).run(), first, f"{each}, {count} SMs")
        deep_gemm.set_num_sms(0)


def configs_change_no_bit_of_bf16() -> None:
    """Tiles and clusters of every kind, of sums and of batches."""
    for each, grouping in ((case(BMN, 3, 200, 72, 136, dtype=F32), "batch_sum"), (case(BHD, 200, 3, 72, 136, dtype=F32), "batched")):
        kinds = {"grouping": grouping, "d_dtype": "f32"}
        extents = (200, 136, 72)
        digests = set()
        for plan in _C.plans_bf16_gemm(*extents, num_groups=3, **kinds)[:9]:
            _C.pin_bf16_gemm_config(*extents, 0, config=plan["config"], num_groups=3, **kinds)
            digests.add(Problem(each).run().contiguous().numpy().tobytes())
        _C.forget_bf16_gemm_plans()
        assert len(digests) == 1, grouping


def what_has_no_kernel_is_refused() -> None:
    for each in REFERENCE_CASES:
        problem = Problem(each)
        before = problem.d.clone()
        try:
            problem.run()
        except deep_gemm.DeepGemmError as refusal:
            assert "'bhr,hdr->bhd'" in str(refusal) and "SM100" in str(refusal), refusal
        else:
            raise AssertionError(f"{each} ran")
        assert_bitwise_equal(problem.d.contiguous(), before.contiguous(), "D of a refused call")


SCENARIOS = {
    function.__name__: function
    for function in (
        heads, heads_have_the_bits_of_the_dense_gemm, sums_and_batches, fp8_batches, fp8_batches_with_factors_in_units, wide_contractions,
        batches_have_the_bits_of_the_dense_gemm, a_sum_is_one_chain, settings_change_no_bit, configs_change_no_bit_of_bf16,
        what_has_no_kernel_is_refused,
    )
}  # fmt: skip


def the_kernels_ran() -> None:
    assert last_launch()["mma_instructions"] > 0, "the reference ran instead"


def main(names: list[str]) -> None:
    outcomes = {}
    for name in names or SCENARIOS:
        torch.manual_seed(0)  # the same operands whichever scenarios run
        try:
            SCENARIOS[name]()
            the_kernels_ran()
            outcomes[name] = "ok"
        except BaseException:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
