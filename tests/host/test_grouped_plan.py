"""Plans of grouped FP8 GEMMs: which tiles a grouping allows, what its hints may change, what a plan launches."""

import math

import pytest

from deep_gemm import _C

RESIDENT = {1: 132, 2: 66, 4: 28}  # clusters of a size that 132 SMs hold: four need a whole group of SMs
CONTIGUOUS = {"grouping": "contiguous", "num_groups": 8}
MASKED = {"grouping": "masked", "num_groups": 32, "expected_m": 192}
PSUM = {"grouping": "psum", "num_groups": 8, "expected_m": 0, "alignment": 128}
SHAPES = [(8192, 4096, 7168), (512, 7168, 2048), (64, 576, 512), (8, 2112, 400)]


def every_plan(m, n, k, **options):
    choice = _C.explain_fp8_gemm(m, n, k, **options)
    return [choice["best"], *choice["runners_up"]]


@pytest.mark.parametrize("recipe", ["1d2d", "1d1d"])
@pytest.mark.parametrize("options", [CONTIGUOUS, MASKED, PSUM], ids=["contiguous", "masked", "psum"])
def test_clusters_lie_along_n(options, recipe):
    plans = every_plan(8192, 4096, 7168, recipe=recipe, **options)
    assert {plan["config"]["cluster_m"] for plan in plans} == {1}
    assert max(plan["config"]["cluster_n"] for plan in plans) > 1
    assert {plan["config"]["grouping"] for plan in plans} == {options["grouping"]}


@pytest.mark.parametrize("alignment", [64, 128, 192, 384])
def test_tiles_of_contiguous_groups_have_any_height(alignment):
    options = {**CONTIGUOUS, "alignment": alignment}
    assert {plan["config"]["block_m"] for plan in every_plan(8192, 4096, 7168, **options)} == {64, 128, 192, 256}


def test_groups_that_start_inside_of_waves_have_no_config():
    with pytest.raises(RuntimeError, match="No config of sm90_fp8_gemm_1d2d runs"):
        _C.plan_fp8_gemm(8192, 4096, 7168, **{**CONTIGUOUS, "alignment": 96})
    config = _C.plan_fp8_gemm(8192, 4096, 7168, **CONTIGUOUS)["config"]
    with pytest.raises(RuntimeError, match="grouping: a wave of 64 rows, .* may belong to two groups of a contiguous problem"):
        _C.plan_fp8_gemm(8192, 4096, 7168, **{**CONTIGUOUS, "alignment": 96}, config=config)


def test_tall_tiles_count_on_groups_that_begin_in_them():
    """One of two starts lies between tiles of twice the alignment: with more groups such tiles take longer."""
    tall = next(p["config"] for p in every_plan(32768, 4096, 7168, **CONTIGUOUS) if p["config"]["block_m"] == 256)
    few, many = (_C.plan_fp8_gemm(32768, 4096, 7168, **{**CONTIGUOUS, "num_groups": n}, config=tall) for n in (2, 200))
    assert many["estimate_us"] > 1.2 * few["estimate_us"]


@pytest.mark.parametrize("options", [MASKED, PSUM, {**PSUM, "alignment": 64}], ids=str)
def test_groups_cut_each_for_itself_take_any_height(options):
    assert {64, 128, 192} <= {plan["config"]["block_m"] for plan in every_plan(8192, 4096, 7168, **options)}


def test_expected_rows_of_psum_groups_choose_lower_tiles():
    heights = []
    for hint in (32, 100, 1024):
        plan = _C.plan_fp8_gemm(16384, 4096, 7168, **{**PSUM, "expected_m": hint})
        heights.append(plan["config"]["block_m"])
    assert heights == sorted(heights) and heights[0] == 64 and heights[-1] > 64, heights


def test_a_config_that_straddles_groups_is_refused():
    config = _C.plan_fp8_gemm(8192, 4096, 7168, **CONTIGUOUS)["config"]
    with pytest.raises(RuntimeError, match="grouping: .* may belong to two groups of a contiguous problem"):
        changed = {**config, "num_stages": 3, "store_boxes": 1, "cluster_m": 2, "cluster_n": 1}
        _C.plan_fp8_gemm(8192, 4096, 7168, **CONTIGUOUS, config=changed)
    with pytest.raises(RuntimeError, match="made for another .* grouping"):
        _C.plan_fp8_gemm(8192, 4096, 7168, config=config)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_grid_holds_the_most_work_there_can_be(shape):
    """Rows that masked groups want are known on the device alone, so there the grid counts on all of them."""
    m, n, _ = shape
    for options in (CONTIGUOUS, MASKED, PSUM):
        matrices = 32 if options is MASKED else 1
        for plan in every_plan(*shape, **options):
            c = plan["config"]
            rows, blocks = c["block_m"], math.ceil(m / 128)
            tiles_m = matrices * math.ceil(m / rows) + (min(8, blocks) - 1 if options is PSUM else 0)
            if options is CONTIGUOUS and 128 % rows != 0:
                tiles_m = blocks * math.ceil(min(m, 128) / rows)
            tiles = tiles_m * math.ceil(n / c["block_n"] / c["cluster_n"])
            assert plan["grid"] == plan["cluster"] * min(tiles, RESIDENT[plan["cluster"]])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("hint", [0, 1, 8, 100, 10**12])
def test_expected_m_does_not_change_what_is_feasible(shape, hint):
    options = {**MASKED, "expected_m": hint}
    configs = [sorted(str(plan["config"]) for plan in every_plan(*shape, **each)) for each in (options, MASKED)]
    assert configs[0] == configs[1]
    assert all(plan["estimate_us"] > 0 for plan in every_plan(*shape, **options))


def test_more_expected_rows_take_longer_up_to_the_capacity():
    estimates = [_C.plan_fp8_gemm(1024, 4096, 7168, **{**MASKED, "expected_m": hint})["estimate_us"] for hint in (1, 64, 512, 1024)]
    assert estimates == sorted(estimates) and estimates[0] < estimates[-1] / 4
    beyond = _C.plan_fp8_gemm(1024, 4096, 7168, **{**MASKED, "expected_m": 10**9})
    assert beyond["estimate_us"] == estimates[-1]
    assert beyond["estimate_us"] == _C.plan_fp8_gemm(1024, 4096, 7168, **{**MASKED, "expected_m": 0})["estimate_us"]


def test_one_contiguous_group_costs_what_the_dense_problem_does():
    """The same config on the same rows, where clusters allow it: grouping alone is no work."""
    key_of = lambda plan: tuple(value for name, value in plan["config"].items() if name != "grouping")  # noqa: E731
    dense = {key_of(plan): plan["estimate_us"] for plan in every_plan(4096, 4096, 7168)}
    grouped = every_plan(4096, 4096, 7168, grouping="contiguous", num_groups=1)
    pairs = [(plan["estimate_us"], dense[key_of(plan)]) for plan in grouped]
    assert len(pairs) > 20 and all(estimate == want for estimate, want in pairs)


BAD = [
    ({**MASKED, "num_groups": 0}, "positive num_groups"),
    ({**MASKED, "expected_m": -1}, "expected_m of 0 or more"),
    ({**CONTIGUOUS, "alignment": 0}, "alignment: expected a positive number"),
    ({**PSUM, "alignment": 0}, "alignment: expected a positive number"),
    ({**PSUM, "expected_m": -1}, "expected_m of 0 or more"),
    ({**CONTIGUOUS, "alignment": 96}, "No config of sm90_fp8_gemm_1d2d runs m=128 n=4096 k=4096 contiguous groups=8 alignment=96"),
    ({**MASKED, "grouping": "ragged"}, "grouping: expected one of 'dense', 'contiguous', 'masked', 'psum', 'batched', 'batch_sum', 'k_grouped', got 'ragged'"),
]


@pytest.mark.parametrize("options, message", BAD, ids=lambda value: str(value)[:40])
def test_a_request_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(RuntimeError, match=message):
        _C.plan_fp8_gemm(128, 4096, 4096, **options)


def test_source_names_the_grouping():
    for options, word in ((CONTIGUOUS, "kContiguous"), (MASKED, "kMasked"), (PSUM, "kPsum")):
        text = _C.print_fp8_gemm_source(_C.plan_fp8_gemm(512, 4096, 512, **options)["config"])["text"]
        assert f".grouping = deep_gemm::Grouping::{word}," in text
