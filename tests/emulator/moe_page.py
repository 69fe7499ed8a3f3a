"""The program of docs/moe.md, then the claims of the public functions that need another layout or setting. Run as a program
whose driver is the emulator."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import deep_gemm  # noqa: E402
from deep_gemm.testing import assert_bitwise_equal, compare  # noqa: E402
from grouped_scenarios import last_launch  # noqa: E402
from m_grouped_cases import ContiguousCase, MaskedCase, make_problem, with_form  # noqa: E402

CASES = [
    ContiguousCase(((1, 90), (0, 64), (-1, 64)), 136, 272, layout="nn", sfb="transposed", pitch=16, alignment=64, ragged=True),
    MaskedCase(96, (96, 0, 1, 65), 136, 272, guard=True, pitch=16),
]


class ThroughOperators(TorchDispatchMode):
    """Makes calls pass through torch.ops."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def run_the_page() -> None:
    """Every Python block, as one program."""
    names: dict = {"__name__": "__docs__"}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "moe.md").read_text(), re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert_bitwise_equal(names["masked_out"], names["out"])


def check(case: ContiguousCase | MaskedCase) -> None:
    """Values, and the same bits through the operator, for every form of the factors and on fewer SMs."""
    problem = make_problem(case, "cpu")
    first = problem.run().clone()
    assert compare(first, problem.reference(), label=str(case)).diff < 1e-5
    assert problem.untouched(), f"{case}: wrote outside of the wanted rows"
    for form in ("aligned", "mn", "row"):
        assert_bitwise_equal(with_form(make_problem(case, "cpu"), form).run(), first, form)
    deep_gemm.set_num_sms(3)
    problem.poison()
    with ThroughOperators():
        problem.run()
    deep_gemm.set_num_sms(0)
    assert_bitwise_equal(problem.d, first, "the operator, 3 SMs")
    assert problem.untouched()


def main() -> None:
    """All of it; at the end, proof that the kernel ran and not the reference."""
    run_the_page()
    for case in CASES:
        check(case)
    assert last_launch()["mma_instructions"] > 0, "the reference ran instead"
    print("ran")


if __name__ == "__main__":
    main()
