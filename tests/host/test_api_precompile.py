"""Ahead-of-time compilation and the command line, with no GPU."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import deep_gemm
from deep_gemm import _C, precompile
from deep_gemm.cli import main

SHAPE = {"m": (1, 300), "n": 576, "k": 512}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty kernel cache of this test alone."""
    monkeypatch.setenv("DG_JIT_CACHE_DIR", str(tmp_path / "cache"))
    _C.reload_settings()
    _C.jit_clear_memory()
    yield tmp_path / "cache"
    monkeypatch.undo()
    _C.reload_settings()
    _C.jit_clear_memory()


def every_config(first: int, last: int, n: int, k: int) -> set[str]:
    """The configs of every M, asked one by one."""
    return {str(_C.plan_fp8_gemm(m, n, k)["config"]) for m in range(first, last + 1)}


def test_break_points_are_all_choices():
    points = precompile.break_points((1, 300), 576, 512, precompile.planning_options(precompile.target_of("sm_90a")))
    assert {str(point.config) for point in points} == every_config(1, 300, 576, 512)
    assert points[0].m == 1
    assert [point.m for point in points] == sorted({point.m for point in points})


def test_compile_builds_each_kernel_once_under_the_digest_of_its_source(cache):
    done = []
    built = deep_gemm.compile(**SHAPE, jobs=2, report=lambda count, total, kernel: done.append((count, total)))
    assert done == [(count + 1, len(built)) for count in range(len(built))]
    assert len({kernel.digest for kernel in built}) == len({kernel.text for kernel in built}) == len(built)
    expected = set()
    for m in range(1, 301):
        source = _C.print_fp8_gemm_source(_C.plan_fp8_gemm(m, 576, 512)["config"])
        expected.add(_C.jit_digest(source["entry"], source["text"], 9, 0))
    assert {kernel.digest for kernel in built} == expected


def test_a_second_compile_finds_everything(cache):
    first = deep_gemm.compile(m=(1, 64), n=576, k=512)
    compiled = _C.jit_report()["compiled"]
    _C.jit_clear_memory()
    second = deep_gemm.compile(m=(1, 64), n=576, k=512)
    assert _C.jit_report()["compiled"] == compiled
    assert {kernel.digest for kernel in first} == {kernel.digest for kernel in second}


MASKED = {"op": "m_grouped_fp8_gemm_nt_masked", "num_groups": 8}
CONTIGUOUS = {"op": "m_grouped_fp8_gemm_nn_contiguous", "num_groups": 8}
K_GROUPED = {"op": "k_grouped_fp8_gemm_nt_contiguous", "num_groups": 8, "recipe": (1, 1, 128), "out": torch.float32}


@pytest.mark.parametrize("hint", [0, 1, 20, 100])
def test_break_points_of_masked_groups_are_all_choices(hint):
    grouping = {"grouping": "masked", "num_groups": 8, "expected_m": hint}
    options = {**precompile.planning_options(precompile.target_of("sm_90a")), **grouping}
    points = precompile.break_points((1, 300), 576, 512, options)
    chosen = {str(_C.plan_fp8_gemm(m, 576, 512, **grouping)["config"]) for m in range(1, 301)}
    assert {str(point.config) for point in points} == chosen


@pytest.mark.parametrize("alignment", [64, 128, 192])
def test_compile_of_contiguous_groups_builds_what_calls_use(cache, alignment):
    built = deep_gemm.compile(**CONTIGUOUS, m=(1, 200), n=576, k=512, alignment=alignment, jobs=2)
    grouping = {"grouping": "contiguous", "num_groups": 8, "alignment": alignment}
    expected = set()
    for m in range(1, 201):
        config = _C.plan_fp8_gemm(m, 576, 512, **grouping)["config"]
        assert alignment % config["block_m"] == 0
        source = _C.print_fp8_gemm_source(config)
        expected.add(_C.jit_digest(source["entry"], source["text"], 9, 0))
    assert {kernel.digest for kernel in built} == expected


def test_several_expected_m_build_the_kernels_of_each(cache):
    one = [deep_gemm.compile(**MASKED, m=4096, n=576, k=512, expected_m=hint)[0].digest for hint in (1, 192)]
    both = deep_gemm.compile(**MASKED, m=4096, n=576, k=512, expected_m=(1, 192))
    assert {kernel.digest for kernel in both} == set(one)
    assert all("masked" in kernel.text for kernel in both)


@pytest.mark.parametrize("hint", [0, 20, 1000])
def test_compile_for_ends_builds_what_calls_use(cache, hint):
    built = deep_gemm.compile(**CONTIGUOUS, m=(8000, 9000), n=576, k=512, use_psum_layout=True, expected_m=hint, jobs=2)
    grouping = {"grouping": "psum", "num_groups": 8, "alignment": 128, "expected_m": hint}
    expected = set()
    for m in range(8000, 9001):
        source = _C.print_fp8_gemm_source(_C.plan_fp8_gemm(m, 576, 512, **grouping)["config"])
        expected.add(_C.jit_digest(source["entry"], source["text"], 9, 0))
    assert {kernel.digest for kernel in built} == expected


BF16_OPS = {
    "bf16_gemm_nt": {"a_major": "k", "b_major": "k"},
    "bf16_gemm_nn": {"a_major": "k", "b_major": "mn"},
    "bf16_gemm_tn": {"a_major": "mn", "b_major": "mn"},
    "bf16_gemm_tt": {"a_major": "mn", "b_major": "k"},
    "m_grouped_bf16_gemm_nt_contiguous": {"b_major": "k", "grouping": "contiguous", "num_groups": 8},
    "m_grouped_bf16_gemm_nn_contiguous": {"b_major": "mn", "grouping": "contiguous", "num_groups": 8},
    "bf16_m_grouped_gemm_nt_masked": {"grouping": "masked", "num_groups": 8, "expected_m": 0},
}


@pytest.mark.parametrize("op", BF16_OPS)
def test_compile_of_bf16_builds_what_calls_use(cache, op):
    options = BF16_OPS[op]
    output = {} if "grouping" in options else {"out": torch.float32, "accumulate": True}
    groups = {"num_groups": 8} if "grouping" in options else {}
    built = deep_gemm.compile(op, m=(1, 150), n=576, k=512, jobs=2, **output, **groups)
    expected = set()
    for m in range(1, 151):
        for place in (False, True) if output else (None,):  # C apart, C that is D
            words = {"d_dtype": "f32", "has_c": True, "c_is_d": place} if output else {}
            source = _C.print_bf16_gemm_source(_C.plan_bf16_gemm(m, 576, 512, **options, **words)["config"])
            expected.add(_C.jit_digest(source["entry"], source["text"], 9, 0))
    assert {kernel.digest for kernel in built} == expected and len(built) > 1


@pytest.mark.parametrize("hint", [0, 20])
def test_compile_of_bf16_for_ends(cache, hint):
    op = "m_grouped_bf16_gemm_nn_contiguous"
    (built,) = deep_gemm.compile(op, m=8192, n=576, k=512, num_groups=8, use_psum_layout=True, expected_m=hint)
    plan = _C.plan_bf16_gemm(8192, 576, 512, b_major="mn", grouping="psum", num_groups=8, expected_m=hint)
    source = _C.print_bf16_gemm_source(plan["config"])
    assert built.digest == _C.jit_digest(source["entry"], source["text"], 9, 0) and "psum" in built.text


def test_cli_knows_bf16(cache, capsys):
    shape = ["--m", "64", "--n", "576", "--k", "512"]
    assert main(["compile", "--op", "bf16_gemm_nn", *shape, "--jobs", "1"]) == 0
    assert "1 kernels for sm_90a" in capsys.readouterr().out
    assert main(["compile", "--op", "bf16_gemm_nn", "--m", "1:4096", *shape[2:], "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 1
    assert main(["plan", "--op", "m_grouped_bf16_gemm_nt_masked", *shape, "--groups", "8", "--expected-m", "20"]) == 0
    short = capsys.readouterr().out
    assert short.startswith("best ") and "masked" in short and "runner-up" in short
    assert main(["plan", "--op", "m_grouped_bf16_gemm_nt_masked", *shape, "--groups", "8", "--all"]) == 0
    assert len(capsys.readouterr().out) > len(short)


def test_ends_are_of_contiguous_groups_alone():
    for options in (MASKED, {"op": "fp8_gemm_nt"}):
        with pytest.raises(deep_gemm.DeepGemmError, match="^use_psum_layout: "):
            deep_gemm.compile(**options, m=64, n=576, k=512, use_psum_layout=True)


def test_the_alignment_that_is_set_is_the_default(cache):
    explicit = deep_gemm.compile(**CONTIGUOUS, m=1000, n=576, k=512, alignment=64)
    saved = deep_gemm.get_mk_alignment_for_contiguous_layout()
    deep_gemm.set_mk_alignment_for_contiguous_layout(64)
    try:
        implicit = deep_gemm.compile(**CONTIGUOUS, m=1000, n=576, k=512)
    finally:
        deep_gemm.set_mk_alignment_for_contiguous_layout(saved)
    assert implicit[0].digest == explicit[0].digest


def test_recipe_output_and_c_choose_other_kernels(cache):
    kinds = [{}, {"recipe": (1, 1, 128)}, {"out": torch.float32}, {"accumulate": True}, {"image": "ptx"}]
    digests = [deep_gemm.compile(m=64, n=576, k=512, **kind)[0].digest for kind in kinds]
    assert len(set(digests)) == len(kinds)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"op": "bf16_gemm_nt", "recipe": (1, 128, 128)}, "^recipe: BF16"),
        ({"op": "m_grouped_bf16_gemm_nt_masked", "out": torch.float32}, "^out: .*bfloat16"),
        ({"op": "no_such_op"}, "no operation"),
        ({"op": "einsum"}, "^expr: "),
        ({"op": "cublaslt_gemm_nt"}, "fp8_gemm"),
        ({"m": 0}, "^m:"),
        ({"m": (5, 4)}, "^m:"),
        ({"n": []}, "^n:"),
        ({"k": -128}, "^k:"),
        ({"arch": "cpu"}, "arch"),
        ({"arch": "sm_80"}, "SM80.*SM90"),
        ({"recipe": (1, 64, 128)}, "recipe"),
        ({"out": torch.float16}, "out"),
        ({"image": "exe"}, "image"),
        ({"op": ["fp8_gemm_nt"]}, "^op:"),
        ({"m": None}, "^m:"),
        ({"m": (1, 2, 3)}, "^m:"),
        ({"m": 2**70}, "^m:"),
        ({"n": None}, "^n:"),
        ({"n": 2**31}, "^n:"),
        ({"k": 1.5}, "^k:"),
        ({"arch": 9}, "^arch:"),
        ({"arch": (9, "a")}, "^arch:"),
        ({"recipe": 5}, "^recipe:"),
        ({"recipe": ("a", 1, 1)}, "^recipe:"),
        ({"out": []}, "^out:"),
        ({"jobs": 0}, "^jobs:"),
        ({"jobs": "a"}, "^jobs:"),
        ({"sm_count": -1}, "^sm_count:"),
        ({**CONTIGUOUS, "num_groups": 0}, "^num_groups:"),
        ({**CONTIGUOUS, "alignment": -64}, "^alignment:"),
        ({**MASKED, "expected_m": -1}, "^expected_m:"),
        ({**MASKED, "expected_m": []}, "^expected_m:"),
        ({**MASKED, "out": torch.float32}, "^out: .*bfloat16"),
        ({**MASKED, "accumulate": True}, "^out: .*no c"),
        ({**K_GROUPED, "out": "bfloat16"}, "^out: .*float32"),
        ({**K_GROUPED, "recipe": (1, 128, 128)}, "^out: .*recipe"),
        ({**K_GROUPED, "num_groups": 0}, "^num_groups:"),
        ({**K_GROUPED, "use_psum_layout": True}, "^use_psum_layout:"),
        ({**K_GROUPED, "op": "k_grouped_fp8_gemm_tn_contiguous"}, "^op:"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(deep_gemm.DeepGemmError, match=message):
        deep_gemm.compile(**{**SHAPE, **change})


def test_cli_compile(cache, capsys):
    assert main(["compile", "--m", "64", "--n", "576", "--k", "512", "--jobs", "1"]) == 0
    assert f"1 kernels for sm_90a in {cache}" in capsys.readouterr().out
    assert any(cache.rglob("*"))


def test_cli_lists_break_points(cache, capsys):
    assert main(["compile", "--m", "1:4096", "--n", "2112,576", "--k", "7168", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4 and all(line.startswith("M >=") for line in lines)
    assert not cache.exists()


def test_cli_lists_break_points_of_groups(cache, capsys):
    shape = ["--m", "4096", "--n", "4096", "--k", "2048", "--groups", "32"]
    command = ["compile", "--op", "fp8_m_grouped_gemm_nt_masked", *shape, "--expected-m", "20,192", "--list"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all("expected M" in line and "masked" in line for line in lines)
    assert main(["plan", "--op", "m_grouped_fp8_gemm_nt_contiguous", *shape, "--alignment", "64"]) == 0
    assert "contiguous" in capsys.readouterr().out.splitlines()[0]
    assert main(["plan", "--op", "m_grouped_fp8_gemm_nt_contiguous", *shape, "--psum", "--expected-m", "30"]) == 0
    assert "psum" in capsys.readouterr().out.splitlines()[0]


def test_cli_plan(capsys):
    shape = ["--m", "128", "--n", "4096", "--k", "7168"]
    assert main(["plan", *shape]) == 0
    short = capsys.readouterr().out
    assert short.startswith("best ") and "runner-up" in short
    assert main(["plan", *shape, "--all"]) == 0
    assert len(capsys.readouterr().out) > len(short)


def test_cli_demo_runs_the_reference_without_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["demo", "--m", "16", "--n", "192", "--k", "512"]) == 0
    output = capsys.readouterr().out
    assert "CPU reference" in output and "D[16, 192]" in output


def test_cli_demo_fails_on_a_wrong_product(capsys, monkeypatch):
    from deep_gemm.cli import demo

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(demo, "fp8_gemm_nt", lambda a, b, d: d.fill_(1.0))
    assert main(["demo", "--m", "16", "--n", "192", "--k", "512"]) == 1


def test_cli_doctor(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    for word in ("PyTorch", "NVRTC", "kernel cache", "driver", "GPU", "supported"):
        assert word in output


def test_cli_doctor_survives_a_broken_machine(capsys, monkeypatch):
    def broken():
        raise OSError("cache unreadable")

    monkeypatch.setattr(_C, "jit_report", broken)
    assert main(["doctor"]) == 0
    assert "could not be read: OSError: cache unreadable" in capsys.readouterr().out


def test_cli_refusal_is_one_line(capsys):
    assert main(["compile", "--m", "64", "--n", "576", "--k", "512", "--arch", "sm_80"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1


@pytest.mark.parametrize("m", ["x", "1:y"])
def test_cli_bad_range(m, capsys):
    with pytest.raises(SystemExit):
        main(["compile", "--m", m, "--n", "576", "--k", "512"])
    assert "first:last" in capsys.readouterr().err


@pytest.mark.parametrize("extent", ["n", "k", "m"])
@pytest.mark.parametrize("value", ["0", "-5", str(2**31), str(2**80)])
def test_cli_plan_refuses_extents_in_one_line(extent, value, capsys):
    shape = {"m": "64", "n": "576", "k": "512", extent: value}
    assert main(["plan", *(f"--{name}={number}" for name, number in shape.items())]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {extent}: expected") and error.count("\n") == 1


def test_cli_reader_may_leave():
    command = [sys.executable, "-m", "deep_gemm", "plan", "--m=64", "--n=576", "--k=512", "--all"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141 and "Traceback" not in errors and "BrokenPipe" not in errors
