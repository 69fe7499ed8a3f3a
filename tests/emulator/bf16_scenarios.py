"""BF16 GEMMs through the real kernel, the emulator being the driver: prints a digest of every D. Wrong results raise."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch

import deep_gemm
from deep_gemm import _C
from deep_gemm.testing import assert_bitwise_equal, calc_diff

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bf16_cases import BF16, CASES, CONFIGS, F32, LAYOUTS, Case, config, make_problem  # noqa: E402
from grouped_scenarios import last_launch  # noqa: E402


def digest(d: torch.Tensor) -> str:
    """SHA-256 of the elements."""
    return hashlib.sha256(d.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def cases() -> dict:
    """Every layout, tail, output and form of C: exact operands to the bit, random ones near FP64."""
    digests = {}
    for case in CASES:
        exact, random = make_problem(case, exact=True), make_problem(case)
        expected = exact.reference().float().to(case.dtype)
        assert_bitwise_equal(exact.run().contiguous(), expected, str(case))
        expected = random.reference()
        assert float(calc_diff(random.run(), expected)) < 1e-5, str(case)
        assert random.outside_is_untouched(), str(case)
        digests[str(case)] = digest(random.d)
    return digests


def majors_of(layout: str) -> dict:
    """The majors that operands of a layout have when they are contiguous."""
    return {"a_major": "mn" if layout[0] == "t" else "k", "b_major": "mn" if layout[1] == "n" else "k"}


def configs() -> dict:
    """One problem of each layout under every kind of config: shape -> config -> digest."""
    digests: dict = {}
    for layout in LAYOUTS:
        for dtype, c in ((BF16, "none"), (BF16, "apart"), (BF16, "same"), (F32, "apart"), (F32, "same")):
            case = Case(layout, 300, 200, 208, dtype, c)
            kinds = {**majors_of(layout), "d_dtype": "bf16" if dtype == BF16 else "f32", "has_c": c != "none", "c_is_d": c == "same"}
            for change in CONFIGS:
                _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(**{**kinds, "c_is_d": False}, **change), **kinds)
                digests.setdefault(str(case), {})[str(change)] = digest(make_problem(case).run())
    _C.forget_bf16_gemm_plans()
    return {f"configs {case}": found for case, found in digests.items()}


def tiles_after_tiles() -> None:
    """C of one tile after that of another in the same boxes: few CTAs, the last tiles of N over a ragged edge or not."""
    for layout, n, c in (("nt", 200, "apart"), ("nt", 203, "same"), ("tn", 264, "same"), ("nn", 203, "apart"), ("tt", 72, "same")):
        case = Case(layout, 300, n, 136, BF16, c)
        kinds = {**majors_of(layout), "d_dtype": "bf16", "has_c": True, "c_is_d": c == "same"}
        expected = make_problem(case, exact=True).reference().float().to(BF16)
        for change in (None, *CONFIGS):
            if change is not None:
                _C.pin_bf16_gemm_config(case.m, case.n, case.k, 0, config=config(**{**kinds, "c_is_d": False}, **change), **kinds)
            problem = make_problem(case, exact=True)
            assert_bitwise_equal(problem.run().contiguous(), expected, f"{case} {change}")
            assert problem.outside_is_untouched(), f"{case} {change}"
        _C.forget_bf16_gemm_plans()


def few_sms() -> None:
    """The same with one CTA, or one cluster, for all tiles, and with a few."""
    for count in (2, 5):
        deep_gemm.set_num_sms(count)
        tiles_after_tiles()
    deep_gemm.set_num_sms(0)


def rows() -> dict:
    """The first rows of products of growing M, in layouts of both majors: one digest for each M."""
    digests: dict = {}
    for layout in LAYOUTS:
        whole = make_problem(Case(layout, 330, 136, 264))
        for m in (1, 2, 64, 65, 130, 330):
            part = make_problem(Case(layout, m, 136, 264))
            left = whole.left[:m].to(BF16)
            part.a.copy_(left.t() if layout[0] == "t" else left)
            part.b.copy_(whole.b)
            digests.setdefault(f"rows {layout}", {})[str(m)] = digest(part.run()[:1])
    return digests


if __name__ == "__main__":
    few_sms()
    found = {"cases": cases(), **configs(), **rows()}
    assert last_launch()["mma_instructions"] > 0, "the reference ran instead"
    print(json.dumps(found))
