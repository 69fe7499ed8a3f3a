"""Plans of the BF16 GEMM: the golden table, configs by name, refusals, and the source they print."""

import importlib.util
import json
from pathlib import Path

import pytest

from bf16_cases import CONFIGS, config
from deep_gemm import _C, DeepGemmError

_PATH = Path(__file__).parents[1] / "golden" / "sm90_bf16_gemm.py"
_SPEC = importlib.util.spec_from_file_location("golden_sm90_bf16_gemm", _PATH)
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)


def test_plans_are_the_golden_ones():
    committed, now = json.loads(golden.TABLE.read_text()), list(golden.planned_rows())
    assert len(committed) == len(list(golden.cases())) and len(committed) > 50
    changed = [(old, new) for old, new in zip(committed, now) if old != new]
    assert not changed, f"{changed[0]}; if plans should change, run {_PATH.name} and commit the table"


@pytest.mark.parametrize("change", CONFIGS, ids=str)
def test_configs_run_when_asked_for(change):
    plan = _C.plan_bf16_gemm(300, 520, 256, config=config(**change))
    assert plan["config"] == config(**change)
    assert plan["grid"] % plan["cluster"] == 0 and plan["smem_bytes"] <= _C.planning_arch()["smem_per_block"]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"block_n": 264}, "not in the kernel's table"),
        ({"block_m": 192}, "not in the kernel's table"),
        ({"cluster_m": 2, "cluster_n": 2}, "not in the kernel's table"),
        ({"store_boxes": 2}, "not in the kernel's table"),
        ({"block_n": 40, "cluster_m": 2}, "multiples of 8"),
        ({"num_stages": 1}, "at least 2"),
        ({"block_m": 128, "block_n": 256, "num_math_warpgroups": 2, "num_stages": 5}, "shared memory"),
        ({"a_major": "mn"}, "other majors"),
        ({"d_dtype": "f32"}, "D dtype"),
        ({"a_major": "m"}, "expected one of 'k', 'mn'"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(DeepGemmError, match=words):
        _C.plan_bf16_gemm(300, 520, 256, config=config(**change))


def test_requests_are_checked():
    with pytest.raises(DeepGemmError, match="positive m, n and k"):
        _C.plan_bf16_gemm(0, 8, 8)
    with pytest.raises(DeepGemmError, match="No BF16 GEMM kernel for SM80"):
        _C.plan_bf16_gemm(8, 8, 8, arch={"major": 8})
    with pytest.raises(DeepGemmError, match="unknown key 'recipe'"):
        _C.plan_bf16_gemm(8, 8, 8, recipe="1d2d")


def test_the_sm_count_in_use_changes_only_the_grid():
    few, all_sms = (_C.plan_bf16_gemm(4096, 4096, 7168, arch={"usable_sms": sms}) for sms in (17, 132))
    assert few["config"] == all_sms["config"] and few["grid"] <= 17 < all_sms["grid"]


def test_the_pick_is_among_the_cheapest():
    plans = _C.plans_bf16_gemm(512, 4096, 7168, b_major="mn")
    assert plans[0]["config"] == _C.plan_bf16_gemm(512, 4096, 7168, b_major="mn")["config"]
    assert plans[0]["estimate_us"] <= 1.02 * min(plan["estimate_us"] for plan in plans)


def test_the_source_names_the_kernel():
    source = _C.print_bf16_gemm_source(config(b_major="mn"))
    assert "bf16_gemm" in source["entry"] and "Major::kMn" in source["text"]
