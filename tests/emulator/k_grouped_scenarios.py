"""The GEMMs grouped along K on CPU tensors through their real kernels, in the emulator. Run as a program with names of scenarios:
the outcome of each is printed as JSON. DG_EMULATE and DG_DRIVER_LIBRARY are in the environment."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

import deep_gemm  # noqa: E402
from deep_gemm import _C  # noqa: E402
from deep_gemm.testing import assert_bitwise_equal  # noqa: E402
from fp8_cases import dequantised  # noqa: E402
from grouped_scenarios import last_launch, main, on_sms  # noqa: E402
from k_grouped_cases import BF16_CASES, FP8_CASES, FP8_NT, KGroupedCase, WIDE_CASES, make_k_grouped, nt, tn, without_sizes  # noqa: E402

# Many groups of one stage on few SMs: slots of maps come round many times.
TURNS = nt(40, 24, (128, 128, 0, 128) * 12 + (256, 128), c="same", host_sizes=False)
SHAPES = {FP8_NT: {"recipe": (1, 1, 128)}, "bf16_tn": {"a_major": "mn", "b_major": "mn"}}


def cases(all_cases: tuple) -> None:
    """Each case against FP64."""
    for case in all_cases:
        make_k_grouped(case).run_and_check()


def bf16_bits_are_exact() -> None:
    for case in BF16_CASES:
        make_k_grouped(case, exact=True).run_and_check(exact=True)


def planning_shape(case: KGroupedCase) -> tuple:
    """(m, n, k) and keywords under which the planner knows a case's calls, of a mean K up to 1024."""
    mean = -(-case.total_k() // len(case.ks) // 128) * 128
    c = {"has_c": case.c != "none", "c_is_d": case.c == "same"}
    return (case.m, case.n, mean), {**SHAPES[case.kind], **c, "d_dtype": "f32", "grouping": "k_grouped", "num_groups": len(case.ks)}


def configs_of(case: KGroupedCase) -> list:
    """Configs of every height, cluster and depth the kernel has for a case."""
    shape, options = planning_shape(case)
    if case.kind == FP8_NT:
        choice = _C.explain_fp8_gemm(*shape, **options)
        plans = [choice["best"], *choice["runners_up"]]
    else:
        plans = _C.plans_bf16_gemm(*shape, **options)
    keys = ("block_m", "num_math_warpgroups", "cluster_m", "cluster_n", "k_blocks", "num_accumulators")
    kinds = {}
    for plan in plans:
        kinds.setdefault(tuple(plan["config"].get(key) for key in keys), plan["config"])
    return list(kinds.values())


def macs_under(case: KGroupedCase, config: dict) -> int:
    """What a config multiplies: whole tiles of whole clusters, along K whole stages."""
    tiles = 1
    for extent, block, cluster in ((case.m, "block_m", "cluster_m"), (case.n, "block_n", "cluster_n")):
        unit = config[block] * config[cluster]
        tiles *= -(-extent // unit) * unit
    stage = config["k_blocks"] * (128 if case.kind == FP8_NT else 64)
    return tiles * sum(-(-k // stage) * stage for k in case.ks)


def with_config(case: KGroupedCase, config: dict) -> torch.Tensor:
    """D of a case under a config, which is what ran."""
    shape, options = planning_shape(case)
    fp8 = case.kind == FP8_NT
    (_C.pin_fp8_gemm_config if fp8 else _C.pin_bf16_gemm_config)(*shape, 0, config=config, **options)
    try:
        problem = make_k_grouped(case)
        problem.d.fill_(1)
        problem.run()
        problem.check_surroundings()
        assert last_launch()["mma_macs"] == macs_under(case, config), (case, config, last_launch())
        return problem.d
    finally:
        (_C.forget_fp8_gemm_plans if fp8 else _C.forget_bf16_gemm_plans)()


def configs_give_the_same_bits() -> None:
    for case in (nt(200, 136, (384, 0, 128, 256), c="same"), tn(200, 136, (384, 0, 128, 256), c="same")):
        first = None
        configs = configs_of(case)
        assert len(configs) >= 6, len(configs)
        for config in configs:
            d = with_config(case, config)
            first = d if first is None else first
            assert_bitwise_equal(d, first, f"{case}: {config}")


def two_stages_are_enough() -> None:
    """The least pipeline, so that each slot of maps comes up again soon."""
    for change in ({}, {"cluster_n": 2}, {"cluster_m": 2}):
        base = next(config for config in configs_of(TURNS) if config["k_blocks"] == 1)
        config = {**base, "block_m": 64, "num_math_warpgroups": 1, "block_n": 32, "num_stages": 2, "store_boxes": 1, **change}
        config = {**config, "num_accumulators": 1, "n_parts": 1}
        want = make_k_grouped(TURNS)
        want.d.fill_(1)
        want.run()
        for count in (2, 6):
            deep_gemm.set_num_sms(count)
            assert_bitwise_equal(with_config(TURNS, config), want.d, f"{count} SMs, {change}")
        deep_gemm.set_num_sms(0)


def sms_change_no_bit() -> None:
    for case in (FP8_CASES[0], BF16_CASES[0], TURNS):
        problem = make_k_grouped(case)
        problem.d.fill_(0)
        first = problem.run().clone()
        for count in (1, 2, 3, 131):
            deep_gemm.set_num_sms(count)
            problem.d.fill_(0)
            assert_bitwise_equal(problem.run(), first, f"{case}: {count} SMs")
        deep_gemm.set_num_sms(0)


def any_number_of_groups() -> None:
    """Up to eight groups come by falling K, more as they are: tile after tile added to D once, on few SMs and many, some groups without K."""
    for groups in (1, 2, 8, 9, 32, 33):
        ks = tuple(128 * (i * 7 % 4) for i in range(1, groups + 1))
        for case in (nt(72, 40, ks, c="same", host_sizes=False, sf="pitched"), tn(72, 40, ks, c="same", host_sizes=False)):
            for count in (1, 3, 7, 131):
                with on_sms(count):
                    make_k_grouped(case).run_and_check()


def sizes_of_the_host_change_no_bit() -> None:
    for case in (FP8_CASES[0], BF16_CASES[8]):
        known, unknown = make_k_grouped(case), make_k_grouped(without_sizes(case))
        for problem in (known, unknown):
            problem.d.fill_(0)
            problem.run()
        assert_bitwise_equal(known.d, unknown.d, str(case))


def groups_equal_dense_gemms() -> None:
    from test_k_grouped_reference import groups_are_dense_gemms

    groups_are_dense_gemms(nt(136, 72, (256, 0, 1152)))
    groups_are_dense_gemms(tn(136, 72, (128, 0, 640)))


def layouts_that_lie_stay_inside() -> None:
    """Sizes past K, below zero and between multiples: as if they were cut."""
    far = 2**31 - 1
    lies = {(far, far, far): (640, 0, 0), (-1, 256, far): (0, 256, 384), (130, 250, 100): (128, 128, 0), (128, -far - 1, 640): (128, 0, 512)}
    for case in (nt(72, 40, (128, 256, 256), host_sizes=False), tn(72, 40, (128, 256, 256), host_sizes=False)):
        for lie, truth in lies.items():
            if case.kind != FP8_NT and lie[0] == 130:
                truth = (128, 192, 64)
            liar, honest = make_k_grouped(case), make_k_grouped(case)
            liar.layout.copy_(torch.tensor(lie))
            honest.layout.copy_(torch.tensor(truth))
            for problem in (liar, honest):
                problem.d.fill_(0)
                problem.run()
                problem.check_surroundings()
            assert_bitwise_equal(liar.d, honest.d, f"{lie}")


def ends_that_lie_stay_inside() -> None:
    """Ends past K, below zero and before a start."""
    far = 2**31 - 1
    lies = {(far, far, far): (640, 640, 640), (-1, -far - 1, 100): (0, 0, 100), (500, 70, 20): (500, 500, 500), (0, far, 100): (0, 640, 640)}
    case = tn(72, 40, (128, 256, 256), psum=True, host_sizes=False)
    for lie, truth in lies.items():
        liar, honest = make_k_grouped(case), make_k_grouped(case)
        liar.layout.copy_(torch.tensor(lie))
        honest.layout.copy_(torch.tensor(truth))
        for problem in (liar, honest):
            problem.d.fill_(0)
            problem.run()
        assert_bitwise_equal(liar.d, honest.d, f"{lie}")


def c_is_read_and_kept() -> None:
    """C apart, C = D and no C with D = 0 added by hand agree."""
    for case in (nt(72, 40, (128, 0, 256)), tn(72, 40, (128, 0, 256))):
        apart, same = (make_k_grouped(dataclasses.replace(case, c=c)) for c in ("apart", "same"))
        same.d.copy_(apart.c)
        kept = apart.c.clone()
        assert_bitwise_equal(apart.run(), same.run(), str(case))
        assert_bitwise_equal(apart.c, kept)


def compiled_ahead_is_found() -> None:
    """A call compiles nothing after `compile` for its mean K, whatever its sizes."""
    for c in ("none", "same"):
        deep_gemm.compile("k_grouped_fp8_gemm_nt_contiguous", m=232, n=136, k=[256, 2048], out=torch.float32, recipe=(1, 1, 128),
                          accumulate=c == "same", num_groups=3, image="ptx", jobs=1)  # fmt: skip
        before = _C.jit_report()["compiled"]
        for ks in ((256, 128, 256), (2048, 0, 3968)):
            make_k_grouped(nt(232, 136, ks, c=c)).run()
        assert _C.jit_report()["compiled"] == before


def factors_past_k_are_zeros() -> None:
    """Stages of several K blocks whose last ones lie past K: what shared memory held there must not matter, nor without groups."""
    for m, n, k in ((1, 4, 384), (64, 64, 640), (65, 136, 128)):
        config = _C.plan_fp8_gemm(m, n, k, recipe=(1, 1, 128), d_dtype="f32")["config"]
        a, b = (deep_gemm.per_token_cast_to_fp8(torch.randn(rows, k), use_ue8m0=False) for rows in (m, n))
        d = torch.full((m, n), float("nan"))
        deep_gemm.fp8_gemm_nt(a, b, d, recipe=(1, 1, 128))
        assert float(deep_gemm.calc_diff(d, dequantised(a, 1) @ dequantised(b, 1).t())) < 1e-5, config


def fp8_rows_are_refused() -> None:
    case = KGroupedCase("fp8_tn", 32, 48, (128, 256))
    problem = make_k_grouped(case)
    before = problem.d.clone()
    try:
        problem.run()
    except deep_gemm.DeepGemmError as refusal:
        assert "k_grouped_fp8_gemm_nt_contiguous" in str(refusal) and "SM90" in str(refusal), refusal
    else:
        raise AssertionError("accepted")
    assert_bitwise_equal(problem.d, before)


SCENARIOS = {
    "cases_fp8": lambda: cases(FP8_CASES),
    "cases_bf16": lambda: cases(BF16_CASES),
    "cases_turns": lambda: cases((TURNS,)),
    "wide_fp8": lambda: cases(WIDE_CASES[:1]),
    "wide_bf16": lambda: cases(WIDE_CASES[1:]),
}
for function in (
    bf16_bits_are_exact, configs_give_the_same_bits, two_stages_are_enough, sms_change_no_bit, any_number_of_groups,
    sizes_of_the_host_change_no_bit,
    groups_equal_dense_gemms, layouts_that_lie_stay_inside, ends_that_lie_stay_inside, c_is_read_and_kept, compiled_ahead_is_found, factors_past_k_are_zeros, fp8_rows_are_refused,
):  # fmt: skip
    SCENARIOS[function.__name__] = function


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "host"))
    main(sys.argv[1:], SCENARIOS)
