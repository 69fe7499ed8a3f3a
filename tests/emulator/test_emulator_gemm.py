"""Complete kernels against independent models: every shape, every seed; and random schedules never change a bit."""
from __future__ import annotations

import numpy as np
import pytest

from cases import gemm_cases, gemm_sm100_cases
from harness.case import Case, run_case
from harness.cuda_driver import CudaDriver
from models import gemm_sm90, gemm_sm100

SEEDS_EACH = 8


def sm90_reference(case: Case, m: int, n: int, k: int) -> np.ndarray:
    a, b = (np.frombuffer(case.buffers[name], np.uint8).reshape(-1, k) for name in "ab")
    sfa = np.frombuffer(case.buffers["sfa"], np.float32).reshape(-1, m)
    sfb = np.frombuffer(case.buffers["sfb"], np.float32).reshape(-1, (n + 127) // 128)
    return gemm_sm90(a, b, sfa, sfb)


def to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@pytest.mark.parametrize(("m", "n", "k"), gemm_cases.SHAPES)
def test_sm90_gemm_is_the_model_bit_for_bit(emulator: CudaDriver, m: int, n: int, k: int) -> None:
    case = gemm_cases.gemm_case("sm90", m, n, k)
    out = np.frombuffer(run_case(emulator, case)["out"], np.float32).reshape(m, n)
    np.testing.assert_array_equal(out.view(np.uint32), sm90_reference(case, m, n, k).view(np.uint32))


@pytest.mark.parametrize("cluster", [1, 2, 4])
@pytest.mark.parametrize(("m", "n", "k"), [(200, 136, 384), (77, 72, 208)])
def test_sm90_bf16_epilogue_and_multicast(emulator: CudaDriver, m: int, n: int, k: int, cluster: int) -> None:
    case = gemm_cases.gemm_case("sm90", m, n, k, bf16=True, cluster=cluster)
    out = np.frombuffer(run_case(emulator, case)["d"], np.uint16).reshape(m, n)
    np.testing.assert_array_equal(out, to_bf16(sm90_reference(case, m, n, k)))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(("m", "n", "k"), gemm_sm100_cases.SHAPES)
def test_sm100_gemm_is_the_model_bit_for_bit(emulator: CudaDriver, m: int, n: int, k: int, group: int) -> None:
    emulator.set("arch", "sm100a")
    case = gemm_sm100_cases.gemm_case("sm100", m, n, k, group=group)
    out = np.frombuffer(run_case(emulator, case)["out"], np.float32).reshape(m, n)
    a, b = (np.frombuffer(case.buffers[name], np.uint8).reshape(-1, k) for name in "ab")
    sfa, sfb = (np.frombuffer(case.buffers[name], np.uint8).reshape((k + 127) // 128, -1, 4) for name in ("sfa", "sfb"))
    np.testing.assert_array_equal(out.view(np.uint32), gemm_sm100(a, b, sfa, sfb).view(np.uint32))


@pytest.mark.parametrize("first_seed", range(0, 32, SEEDS_EACH))
def test_sm90_schedules_do_not_matter(emulator: CudaDriver, first_seed: int) -> None:
    cases = [gemm_cases.gemm_case("sm90", 200, 136, 784, bf16=True, cluster=cluster) for cluster in (1, 2)]
    expected = [run_case(emulator, case) for case in cases]
    for seed in range(first_seed, first_seed + SEEDS_EACH):
        emulator.set("seed", str(seed))
        assert [run_case(emulator, case) for case in cases] == expected, f"seed {seed}"


@pytest.mark.parametrize("first_seed", range(0, 64, SEEDS_EACH))
def test_sm100_schedules_do_not_matter(emulator: CudaDriver, first_seed: int) -> None:
    emulator.set("arch", "sm100a")
    cases = [gemm_sm100_cases.gemm_case("sm100", 136, 136, 912, group=group) for group in (1, 2)]
    expected = [run_case(emulator, case) for case in cases]
    for seed in range(first_seed, first_seed + SEEDS_EACH):
        emulator.set("seed", str(seed))
        assert [run_case(emulator, case) for case in cases] == expected, f"seed {seed}"


@pytest.mark.parametrize("arch", ["sm90a", "sm100a"])
def test_the_assembler_accepts_the_kernels(arch: str) -> None:
    """NVRTC's ptxas is the judge of operand encodings, which the emulator does not see."""
    module = gemm_cases if arch == "sm90a" else gemm_sm100_cases
    for case in {case.defines: case for case in module.cases()}.values():
        assert case.image("sm")[:4] == b"\x7fELF"
