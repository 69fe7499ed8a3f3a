"""The planner's promises: what it refuses and why, what may change a config, what a plan launches."""

import math

import pytest

from deep_gemm import _C
from planned_grids import clusters

SMEM = 232448
SMS = 132
SHAPES = [(1, 2112, 7168), (64, 576, 7168), (128, 24576, 1536), (511, 4096, 7168), (4096, 7168, 2048), (7, 24, 48)]
RECIPES = ["1d2d", "1d1d"]


def good_config(**changes):
    """A config that runs, with fields replaced."""
    config = {
        "sfb_granularity": "per_block", "grouping": "dense", "d_dtype": "bf16", "has_c": False, "head_unit": 0, "block_m": 128,
        "block_n": 128, "num_math_warpgroups": 2, "num_stages": 4, "num_accumulators": 1, "cluster_m": 1,
        "cluster_n": 1, "n_parts": 1, "k_blocks": 1, "store_boxes": 2, "ragged_n": False, "c_is_d": False,
    }  # fmt: skip
    return {**config, **changes}


def store_columns(block_n, element_bytes):
    """The widest box of whole 8-column steps that divides a tile and fits a 128-byte row."""
    return max(c for c in range(8, 128 // element_bytes + 1, 8) if block_n % c == 0)


def least_smem_bytes(config):
    """Operands and staged output of a config, without scales, barriers and slack."""
    stages = (config["block_m"] + config["block_n"]) * 128 * config["num_stages"] * config["k_blocks"]
    return stages + config["store_boxes"] * config["num_math_warpgroups"] * 64 * 128


def feasible(m, n, k, **options):
    """Every config the planner would consider for a shape."""
    choice = _C.explain_fp8_gemm(m, n, k, **options)
    return [choice["best"], *choice["runners_up"]]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("d_dtype", ["bf16", "f32"])
def test_feasible_configs_keep_the_hardware_limits(recipe, d_dtype):
    plans = feasible(4096, 8192, 7168, recipe=recipe, d_dtype=d_dtype)
    assert len(plans) > 50
    for plan in plans:
        c = plan["config"]
        waves = c["block_m"] // 64 // c["num_math_warpgroups"]
        registers = c["block_n"] // 2 * waves + c["block_n"] // 2 // c["n_parts"] * c["num_accumulators"] * c["k_blocks"]
        registers += 32 if c["num_math_warpgroups"] == 3 else 40
        box = store_columns(c["block_n"], 4 if d_dtype == "f32" else 2)
        registers += 16 if bin(box).count("1") > 1 else 0
        assert registers <= {1: 248, 2: 232, 3: 160}[c["num_math_warpgroups"]]
        assert least_smem_bytes(c) < plan["smem_bytes"] <= SMEM
        assert 2 <= c["num_stages"] <= 32
        assert c["block_n"] % (8 * c["cluster_m"]) == 0 and c["block_m"] % (8 * c["cluster_n"]) == 0
        assert plan["threads"] == 128 * (c["num_math_warpgroups"] + 1)


def test_heads_narrow_store_boxes_and_not_the_registers():
    """192 rows, 2 accumulators and 2 K blocks spilled with heads at 48 columns, and did not at 32."""
    configs = [plan["config"] for plan in feasible(4096, 8192, 7168, recipe="1d2d", head_splits=(128, 64, 64))]
    tall = {c["block_n"] for c in configs if (c["block_m"], c["num_accumulators"], c["k_blocks"]) == (192, 2, 2)}
    assert tall and max(tall) == 32


def test_a_1d2d_tile_touches_at_most_two_scale_blocks():
    widths = {plan["config"]["block_n"] for plan in feasible(4096, 8192, 7168, recipe="1d2d")}
    touched = lambda width: max((i * width % 128 + width - 1) // 128 + 1 for i in range(128))  # noqa: E731
    assert all(touched(width) <= 2 for width in widths)
    assert 192 in widths and 176 not in widths
    assert 176 in {plan["config"]["block_n"] for plan in feasible(4096, 8192, 7168, recipe="1d1d")}


@pytest.mark.parametrize("recipe", RECIPES)
def test_stages_are_as_deep_as_shared_memory_allows(recipe):
    for plan in feasible(4096, 8192, 7168, recipe=recipe):
        deeper = {**plan["config"], "num_stages": plan["config"]["num_stages"] + 1}
        if deeper["num_stages"] <= 32:
            with pytest.raises(RuntimeError, match="shared memory"):
                _C.plan_fp8_gemm(4096, 8192, 7168, recipe=recipe, config=deeper)


@pytest.mark.parametrize("k, stages, boxes", [(1920, 4, 2), (2048, 5, 1), (7168, 5, 1)])
def test_narrow_tiles_of_three_warpgroups_trade_a_box_for_a_stage_where_k_is_long(k, stages, boxes):
    tall = [plan["config"] for plan in feasible(4096, 576, k, recipe="1d2d") if plan["config"]["num_math_warpgroups"] == 3]
    depth_of = lambda width: {(c["num_stages"], c["store_boxes"]) for c in tall if c["block_n"] == width and c["num_accumulators"] == 1}  # noqa: E731
    assert depth_of(96) == {(stages, boxes)}
    assert depth_of(128) == {(4, 2)}
    assert depth_of(80) == {(5, 2)}  # where no stage is to be had for a box


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_refusal_says_why(recipe):
    rejected = _C.explain_fp8_gemm(4096, 8192, 7168, recipe=recipe)["rejected"]
    kinds = {rejection["reason"].split(":")[0] for rejection in rejected}
    expected = {"registers", "shared memory", "multicast", "not planned", "products", "tile"}
    assert kinds == expected | ({"scale span"} if recipe == "1d2d" else set())
    small = _C.explain_fp8_gemm(1, 8, 128, recipe=recipe)["rejected"]
    for kind in ("idle cluster", "idle rows"):
        assert any(rejection["reason"].startswith(kind) for rejection in small)


REFUSED = [
    ({"block_n": 144, "num_accumulators": 2}, "registers: 72 sums .* = 272 per thread, at most 232"),
    ({"block_n": 8, "num_accumulators": 2, "store_boxes": 1}, "products: 2 accumulators .* for 16 to 256 columns, not 8"),
    ({"num_stages": 7}, "shared memory: 7 stages need"),
    ({"num_stages": 1}, "shared memory: 1 stages"),
    ({"block_n": 136, "cluster_m": 2}, "multicast"),
    ({"block_n": 176}, "scale span: 176 columns may touch 3 blocks"),
    ({"block_n": 100}, "tile: 128x100"),
    ({"block_n": 0}, "tile: 128x0"),
    ({"block_m": 96}, "tile: 96x128"),
    ({"block_m": 128, "num_math_warpgroups": 1}, "tile: 128x128 with 1 math warpgroups"),
    ({"num_accumulators": 3}, "3 accumulators"),
    ({"n_parts": 2}, "1 accumulators, 2 parts"),
    ({"num_accumulators": 2, "n_parts": 2, "block_n": 136}, "tile: 128x136"),
    ({"k_blocks": 3}, "3 K blocks"),
    ({"k_blocks": 4}, "products: .* 4 K blocks are for 8 to 64 columns, not 128"),
    ({"store_boxes": 0}, "0 store boxes"),
    ({"store_boxes": 3}, "3 store boxes"),
    ({"cluster_m": 3}, "cluster 3x1"),
    ({"sfb_granularity": "per_row"}, "made for another recipe"),
    ({"d_dtype": "f32"}, "made for another recipe"),
    ({"has_c": True}, "made for another recipe"),
    ({"d_dtype": "f16"}, "d_dtype: expected one of 'bf16', 'f32', got 'f16'"),
    ({"grouping": "masked"}, "made for another recipe, D dtype, C, heads or grouping"),
    ({"grouping": "rows"}, "grouping: expected one of 'dense', 'contiguous', 'masked', 'psum', 'batched', 'batch_sum', 'k_grouped', got 'rows'"),
    ({"block_k": 64}, "config: unknown key 'block_k'"),
    ({"block_m": "wide"}, "block_m: expected a number, got 'wide'"),
]


@pytest.mark.parametrize("changes, message", REFUSED, ids=lambda value: str(value)[:40])
def test_a_config_that_cannot_run_is_refused(changes, message):
    assert _C.plan_fp8_gemm(4096, 4096, 4096, config=good_config())["config"] == good_config()
    with pytest.raises(RuntimeError, match=message):
        _C.plan_fp8_gemm(4096, 4096, 4096, config=good_config(**changes))


def test_a_config_with_a_field_missing_is_refused():
    config = good_config()
    del config["cluster_n"]
    with pytest.raises(RuntimeError, match="config: key 'cluster_n' is missing"):
        _C.print_fp8_gemm_source(config)


BAD_REQUESTS = [
    ({"recipe": (1, 64, 128)}, r"recipe: expected .* got \(1, 64, 128\)"),
    ({"recipe": "2d2d"}, "recipe: expected"),
    ({"d_dtype": "f64"}, "d_dtype: expected one of 'bf16', 'f32', got 'f64'"),
    ({"arch": {"sms": 4}}, "arch: unknown key 'sms'"),
    ({"arch": {"sm_count": "many"}}, "sm_count: expected a number"),
    ({"arch": {"sm_count": 0}}, "sm_count"),
    ({"arch": {"usable_sms": 133}}, "usable_sms"),
    ({"arch": {"smem_per_block": 16384}}, "16384 bytes of shared memory"),
    ({"arch": {"major": 8}}, "No FP8 GEMM kernel for SM80 .*there is: SM90 with SFB per_block, D bf16 or f32; SM90"),
    ({"accumulate": True}, "planning: unknown key 'accumulate'"),
]


@pytest.mark.parametrize("options, message", BAD_REQUESTS, ids=lambda value: str(value)[:40])
def test_a_request_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(RuntimeError, match=message):
        _C.plan_fp8_gemm(128, 4096, 4096, **options)


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (-1, 8, 8)])
def test_empty_problems_are_not_planned(shape):
    with pytest.raises(RuntimeError, match="positive m, n and k"):
        _C.plan_fp8_gemm(*shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_usable_sms_change_the_grid_and_nothing_else(shape, recipe):
    full = _C.plan_fp8_gemm(*shape, recipe=recipe)
    for usable in (1, 2, 3, 64, 131, 132):
        plan = _C.plan_fp8_gemm(*shape, recipe=recipe, arch={"usable_sms": usable})
        assert plan["config"] == full["config"]
        assert plan["grid"] % plan["cluster"] == 0
        assert plan["grid"] <= max(usable, plan["cluster"])


@pytest.mark.parametrize("sm_count", [1, 2, 78, 144])
def test_other_devices_are_planned_for(sm_count):
    plan = _C.plan_fp8_gemm(4096, 4096, 4096, arch={"sm_count": sm_count})
    config, slots = plan["config"], max(1, sm_count // plan["cluster"])
    tiles = math.ceil(4096 / config["block_m"] / config["cluster_m"]) * math.ceil(4096 / config["block_n"] / config["cluster_n"])
    assert plan["grid"] == plan["cluster"] * clusters(tiles, slots)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_grid_holds_no_idle_cluster(shape):
    m, n, _ = shape
    for plan in feasible(*shape):
        c = plan["config"]
        tiles = math.ceil(m / c["block_m"] / c["cluster_m"]) * math.ceil(n / c["block_n"] / c["cluster_n"])
        resident = {1: 132, 2: 66, 4: 28}[plan["cluster"]]  # fours leave SMs of a GPC over
        assert plan["grid"] == plan["cluster"] * clusters(tiles, resident)


def test_the_fewest_clusters_that_take_no_more_rounds_are_launched():
    def grid(*shape, **options):
        return _C.plan_fp8_gemm(*shape, **options)["grid"]

    assert grid(4096, 4096, 7168) == 128  # 256 pairs of tiles, 4 rounds of 64 as of 66
    assert grid(4096, 24576, 1536) == 132  # 32 rounds of 132
    assert grid(1, 32768, 512) == 128  # 2 rounds of 128
    assert grid(1, 4096, 7168) == 128  # tiles for one round
    config = {**_C.plan_fp8_gemm(128, 4096, 7168)["config"], "block_n": 32}
    for columns, count in ((3936, 123), (3872, 132)):  # two rounds: 9 left out, and 11, more than a thirteenth
        assert grid(128, columns, 7168, config=config) == count, columns
    batched = _C.plan_fp8_gemm(4096, 4096, 1024, grouping="batched", num_groups=3)
    tiles = 3 * math.ceil(4096 / batched["config"]["block_m"]) * math.ceil(4096 / batched["config"]["block_n"] / batched["config"]["cluster_n"])
    assert batched["grid"] == batched["cluster"] * clusters(tiles, 132 // batched["cluster"]) < 132
    # Groups of K take unequal times, and those along M are known to the device alone.
    k_grouped = {"grouping": "k_grouped", "recipe": (1, 1, 128), "d_dtype": "f32", "has_c": True, "c_is_d": True}
    assert grid(4096, 7168, 8192, num_groups=4, **k_grouped) == 132  # 28 rounds of 64
    assert grid(4096, 4096, 7168, grouping="masked", num_groups=1) == 132


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_pick_is_the_best_estimate_up_to_ties(shape, recipe):
    choice = _C.explain_fp8_gemm(*shape, recipe=recipe)
    estimates = [plan["estimate_us"] for plan in choice["runners_up"]]
    assert estimates == sorted(estimates) and estimates[0] > 0
    assert choice["best"]["estimate_us"] <= 1.0101 * estimates[0]
    assert choice["best"] == _C.plan_fp8_gemm(*shape, recipe=recipe)
    assert choice["best"]["text"] in choice["text"] and choice["runners_up"][0]["text"] in choice["text"]


@pytest.mark.parametrize("n, k", [(2112, 7168), (7168, 2048)])
def test_break_points_are_exact(n, k):
    points = _C.fp8_gemm_break_points(n, k, 3, 700)
    assert points[0]["m"] == 3
    expected = []
    for m in range(3, 701):
        config = _C.plan_fp8_gemm(m, n, k)["config"]
        if not expected or expected[-1]["config"] != config:
            expected.append({"m": m, "config": config})
    assert points == expected and len(points) > 3


def test_break_points_refuse_an_empty_range():
    with pytest.raises(RuntimeError, match="1 <= m_min <= m_max, got 9 and 8"):
        _C.fp8_gemm_break_points(576, 7168, 9, 8)


def test_extents_beyond_32_bits_do_not_wrap():
    plan = _C.plan_fp8_gemm(2**31 - 1, 2**31 - 8, 2**31 - 128)
    assert plan["grid"] == SMS and plan["estimate_us"] > 1e9


@pytest.mark.parametrize("recipe, entry", [("1d2d", "sm90_fp8_gemm_1d2d"), ("1d1d", "sm90_fp8_gemm_1d1d")])
def test_source_names_every_field(recipe, entry):
    config = _C.plan_fp8_gemm(4096, 7168, 2048, recipe=recipe)["config"]
    source = _C.print_fp8_gemm_source(config)
    assert source["entry"] == entry and f"{entry}(const __grid_constant__ deep_gemm::Fp8GemmArgs args)" in source["text"]
    assert f"__launch_bounds__({128 * (config['num_math_warpgroups'] + 1)}, 1)" in source["text"]
    for name, value in config.items():
        spelled = value if isinstance(value, int) and not isinstance(value, bool) else None
        assert f".{name} = {spelled}" in source["text"] if spelled is not None else f".{name} = " in source["text"]
    assert source == _C.print_fp8_gemm_source(dict(reversed(config.items())))


def test_different_configs_have_different_sources():
    configs = [plan["config"] for plan in feasible(4096, 8192, 7168)]
    assert len({_C.print_fp8_gemm_source(config)["text"] for config in configs}) == len(configs)


@pytest.mark.parametrize("shape", SHAPES)
def test_cost_parts_make_the_estimate(shape):
    plan = _C.plan_fp8_gemm(*shape)
    parts = _C.fp8_gemm_cost(*shape, config=plan["config"])
    limits = [parts[name] for name in ("math", "dram", "l2", "outside")]
    assert parts["total"] == plan["estimate_us"]
    assert max(limits) + parts["overhead"] <= parts["total"] <= sum(limits) + parts["overhead"]
