"""Plans of the BF16 GEMM: configs by name, refusals, and the source they print."""

import math

import pytest

from bf16_cases import CONFIGS, config
from deep_gemm import _C, DeepGemmError
from planned_grids import clusters


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


CONTIGUOUS = {"grouping": "contiguous", "num_groups": 8}
MASKED = {"grouping": "masked", "num_groups": 32, "expected_m": 192}
PSUM = {"grouping": "psum", "num_groups": 8, "expected_m": 0, "alignment": 128}


@pytest.mark.parametrize("options", [CONTIGUOUS, MASKED, PSUM], ids=["contiguous", "masked", "psum"])
def test_clusters_of_groups_lie_along_n(options):
    plans = _C.plans_bf16_gemm(8192, 4096, 7168, **options)
    assert {plan["config"]["cluster_m"] for plan in plans} == {1} and max(plan["cluster"] for plan in plans) > 1
    assert {plan["config"]["grouping"] for plan in plans} == {options["grouping"]}


@pytest.mark.parametrize("alignment, heights", [(64, {64}), (128, {64, 128}), (192, {64, 192}), (256, {64, 128, 256})])
def test_tiles_of_contiguous_groups_divide_the_alignment(alignment, heights):
    plans = _C.plans_bf16_gemm(8192, 4096, 7168, **CONTIGUOUS, alignment=alignment)
    assert {plan["config"]["block_m"] for plan in plans} == heights


@pytest.mark.parametrize("options", [MASKED, PSUM, {**PSUM, "alignment": 64}], ids=str)
def test_groups_cut_each_for_itself_take_any_height(options):
    assert {plan["config"]["block_m"] for plan in _C.plans_bf16_gemm(8192, 4096, 7168, **options)} == {64, 128, 192, 256}


def test_a_config_that_straddles_groups_is_refused():
    for changes in ({"cluster_m": 2}, {"block_m": 256, "num_math_warpgroups": 2, "num_stages": 3}):
        with pytest.raises(DeepGemmError, match="grouping: .* may belong to two groups of a contiguous problem"):
            _C.plan_bf16_gemm(8192, 4096, 7168, **CONTIGUOUS, config=config(grouping="contiguous", **changes))
    with pytest.raises(DeepGemmError, match="made for other .* grouping"):
        _C.plan_bf16_gemm(8192, 4096, 7168, **CONTIGUOUS, config=config())
    with pytest.raises(DeepGemmError, match="grouping: A is K-major"):
        _C.plan_bf16_gemm(8192, 4096, 7168, **MASKED, a_major="mn", config=config(grouping="masked", a_major="mn"))


def test_the_grid_holds_the_most_work_there_can_be():
    for options, matrices, parts in ((CONTIGUOUS, 1, 0), (MASKED, 32, 0), (PSUM, 1, 3)):
        for plan in _C.plans_bf16_gemm(512, 4096, 2048, **options):
            c = plan["config"]
            tiles = (matrices * -(-512 // c["block_m"]) + parts) * -(-4096 // (c["block_n"] * c["cluster_n"]))
            assert plan["grid"] == plan["cluster"] * min(tiles, 132 // plan["cluster"])


@pytest.mark.parametrize("shape", [(4096, 4096, 7168), (64, 32768, 512), (4096, 2112, 7168), (1, 576, 7168)])
def test_the_fewest_clusters_that_take_no_more_rounds_are_launched(shape):
    for plan in _C.plans_bf16_gemm(*shape):
        c = plan["config"]
        tiles = math.ceil(shape[0] / c["block_m"] / c["cluster_m"]) * math.ceil(shape[1] / c["block_n"] / c["cluster_n"])
        slots = {1: 132, 2: 66, 4: 28}[plan["cluster"]]  # fours leave SMs of a GPC over
        assert plan["grid"] == plan["cluster"] * clusters(tiles, slots), plan


def test_a_hint_chooses_heights_and_estimates_alone():
    feasible, estimates, heights = set(), [], []
    for hint in (8, 64, 192, 512, 10**9):
        plans = _C.plans_bf16_gemm(1024, 4096, 7168, **{**MASKED, "expected_m": hint})
        feasible.add(tuple(sorted(str(plan["config"]) for plan in plans)))
        estimates.append(plans[0]["estimate_us"])
        heights.append(plans[0]["config"]["block_m"])
    assert len(feasible) == 1 and estimates == sorted(estimates) and estimates[0] < estimates[-1] / 3
    assert heights[0] == 64 and max(heights) == 256 and heights[-1] == 128


@pytest.mark.parametrize(
    "options, message",
    [
        ({**MASKED, "num_groups": 0}, "positive num_groups"),
        ({**MASKED, "expected_m": -1}, "expected_m of 0 or more"),
        ({**CONTIGUOUS, "alignment": 0}, "alignment: expected a positive number"),
        ({**CONTIGUOUS, "alignment": 96}, "No config of sm90_bf16_gemm_impl runs m=128 n=4096 k=4096 contiguous groups=8 alignment=96"),
    ],
)
def test_groups_that_make_no_sense_are_refused(options, message):
    with pytest.raises(DeepGemmError, match=message):
        _C.plan_bf16_gemm(128, 4096, 4096, **options)


def test_break_points_are_where_the_choice_changes():
    for options in ({}, {"b_major": "mn", "d_dtype": "f32"}, CONTIGUOUS, MASKED):
        points = _C.bf16_gemm_break_points(4096, 2048, 1, 700, **options)
        assert points[0]["m"] == 1 and len(points) > 1
        for m in range(1, 701, 23):
            (config_at,) = [point["config"] for point in points if point["m"] <= m][-1:]
            assert config_at == _C.plan_bf16_gemm(m, 4096, 2048, **options)["config"], (m, options)
