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


def test_recipe_output_and_c_choose_other_kernels(cache):
    kinds = [{}, {"recipe": (1, 1, 128)}, {"out": torch.float32}, {"accumulate": True}, {"image": "ptx"}]
    digests = [deep_gemm.compile(m=64, n=576, k=512, **kind)[0].digest for kind in kinds]
    assert len(set(digests)) == len(kinds)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"op": "no_such_op"}, "no operation"),
        ({"op": "einsum"}, "fp8_gemm"),
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
