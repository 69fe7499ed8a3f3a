"""Plans of the GEMMs grouped along K."""

from __future__ import annotations

import pytest

from deep_gemm import DeepGemmError, _C

FP8 = {"recipe": (1, 1, 128), "d_dtype": "f32", "has_c": True, "grouping": "k_grouped"}
BF16 = {"a_major": "mn", "b_major": "mn", "d_dtype": "f32", "has_c": True, "grouping": "k_grouped"}
PLANNERS = [(_C.plan_fp8_gemm, FP8), (_C.plan_bf16_gemm, BF16)]


@pytest.mark.parametrize("plan, options", PLANNERS)
def test_groups_multiply_the_tiles(plan, options):
    """A grid for the tiles of one group where there is one, and as many more as there are groups."""
    small = plan(64, 64, 1024, num_groups=1, **options)
    assert small["grid"] == small["cluster"] * -(-64 // small["config"]["block_n"]) // max(1, small["config"]["cluster_n"])
    for groups in (2, 16):
        config = {"config": small["config"]}
        assert plan(64, 64, 1024, num_groups=groups, **options, **config)["grid"] == min(groups * small["grid"], 132)
    assert plan(4096, 7168, 4096, num_groups=8, **options)["grid"] == 132


@pytest.mark.parametrize("plan, options", PLANNERS)
def test_more_groups_take_longer(plan, options):
    times = [plan(4096, 2048, 2048, num_groups=groups, **options)["estimate_us"] for groups in (1, 4, 16)]
    assert 3 * times[0] < times[1] and 3 * times[1] < times[2]


@pytest.mark.parametrize("plan, options", PLANNERS)
def test_configs_say_their_grouping(plan, options):
    best = plan(520, 776, 1024, num_groups=4, **options)
    assert best["config"]["grouping"] == "k_grouped" and best["config_text"].endswith("k_grouped")
    dense = {**options, "grouping": "dense"}
    with pytest.raises(DeepGemmError, match="grouping"):
        plan(520, 776, 1024, config=best["config"], **dense)


def test_factors_of_blocks_are_refused():
    with pytest.raises(DeepGemmError, match="No config"):
        _C.plan_fp8_gemm(512, 512, 1024, **{**FP8, "recipe": (1, 128, 128)})


def test_maps_in_the_making_have_room():
    """Shared memory of a grouped config is that of the dense one and 256 bytes."""
    options = {**FP8, "num_groups": 4}
    config = _C.plan_fp8_gemm(512, 512, 1024, **options)["config"]
    dense = {**options, "grouping": "dense", "num_groups": 1}
    one = _C.plan_fp8_gemm(512, 512, 1024, config=config, **options)["smem_bytes"]
    other = _C.plan_fp8_gemm(512, 512, 1024, config={**config, "grouping": "dense"}, **dense)["smem_bytes"]
    assert one == other + 256


@pytest.mark.parametrize("m, n, groups", [(4096, 7168, 4), (7168, 2048, 16), (64, 8, 64)])
def test_source_names_the_grouping(m, n, groups):
    config = _C.plan_fp8_gemm(m, n, 2048, num_groups=groups, **FP8)["config"]
    assert "Grouping::kKGrouped" in _C.print_fp8_gemm_source(config)["text"]


def test_wide_bf16_tiles_that_spill_are_refused():
    options = {"a_major": "mn", "b_major": "mn", "d_dtype": "f32", "has_c": True, "grouping": "k_grouped", "num_groups": 8}
    plans = _C.plans_bf16_gemm(4096, 8192, 1024, **options)
    assert max(plan["config"]["block_n"] for plan in plans) == 192
    dense = _C.plans_bf16_gemm(4096, 8192, 1024, a_major="mn", b_major="mn", d_dtype="f32", has_c=True)
    assert max(plan["config"]["block_n"] for plan in dense) == 256
    wide = {**next(plan["config"] for plan in plans if plan["config"]["block_m"] == 64), "block_n": 256, "num_stages": 2}
    with pytest.raises(RuntimeError, match="registers: 256 columns and the walk over groups of K spill, at most 192 do not"):
        _C.plan_bf16_gemm(4096, 8192, 1024, **options, config=wide)


@pytest.mark.parametrize("plan, pin, options", [(_C.plan_fp8_gemm, _C.pin_fp8_gemm_config, FP8), (_C.plan_bf16_gemm, _C.pin_bf16_gemm_config, BF16)])
def test_a_pin_that_no_call_would_find_is_refused(plan, pin, options):
    """Calls are planned with a K that stands for theirs; a config pinned to another K would never run."""
    config = plan(4096, 2048, 3072, num_groups=16, **options)["config"]
    with pytest.raises(DeepGemmError, match="k: calls grouped along K whose mean is 2144 are planned with 3072, got 2144"):
        pin(4096, 2048, 2144, 0, num_groups=16, config=config, **options)
