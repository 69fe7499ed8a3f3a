"""Compiles the kernel of every golden plan, without a GPU, and fails on spills, local memory or serialised wgmma.

Usage: python scripts/compile_all.py [--every-candidate] [--jobs N] [--cubins DIR]

Prints one line per kernel: registers, spilled bytes, shared memory, seconds. Exit status 1 if any kernel failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
LARGE = (4096, 8192, 7168)  # a shape whose candidates are all of the feasible ones, but for those of short K
RAGGED = (4096, 8190, 7168)  # the same, with rows of D that end inside 16 bytes
SHORT_K = (4096, 8192, 1536)


@dataclasses.dataclass(frozen=True)
class Job:
    """One kernel to compile and what it is called in the report."""

    label: str
    entry: str
    source: str
    smem_bytes: int
    major: int
    minor: int


@dataclasses.dataclass(frozen=True)
class Result:
    """What the compiler made of a job; `problem` is empty if all is well."""

    job: Job
    registers: int
    spill_bytes: int
    seconds: float
    problem: str
    image: bytes


def job_of(plan: dict) -> Job:
    """The job that compiles a plan of the planner."""
    from deep_gemm import _C

    printer = _C.print_bf16_gemm_source if "a_major" in plan["config"] else _C.print_fp8_gemm_source
    source = printer(plan["config"])
    arch = _C.planning_arch()
    return Job(plan["config_text"], source["entry"], source["text"], plan["smem_bytes"], arch["major"], arch["minor"])


def golden_plans() -> list[dict]:
    """The plans of every golden table."""
    from deep_gemm import _C

    plans = []
    for pattern, plan in (("*fp8_gemm.json", _C.plan_fp8_gemm), ("*bf16_gemm.json", _C.plan_bf16_gemm)):
        for table in sorted(GOLDEN.glob(pattern)):
            for row in json.loads(table.read_text()):
                options = {key: row[key] for key in row if key not in ("m", "n", "k", "grid", "raster")}
                plans.append(plan(row["m"], row["n"], row["k"], **options))
    return plans


# What a kernel is compiled for besides the recipe: both ways D is commonly wanted, and every grouping.
KINDS = (
    {"d_dtype": "bf16"},
    {"d_dtype": "f32", "has_c": True},
    {"head_splits": (128, 64, 64)},
    {"grouping": "contiguous", "num_groups": 8},
    {"grouping": "masked", "num_groups": 8},
    {"grouping": "batched", "num_groups": 8},
    {"grouping": "batched", "num_groups": 8, "d_dtype": "f32", "has_c": True},
    {"grouping": "psum", "num_groups": 8},
)
IN_PLACE = {"c_is_d": True}  # of kinds with C and FP32 D
K_GROUPED = {"d_dtype": "f32", "has_c": True, "grouping": "k_grouped", "num_groups": 8}

BF16_KINDS = (
    {"d_dtype": "bf16"},
    {"d_dtype": "bf16", "has_c": True},
    {"d_dtype": "f32", "has_c": True},
    {"d_dtype": "f32", "has_c": True, **IN_PLACE},
    {"d_dtype": "bf16", "grouping": "batched", "num_groups": 8},
    {"d_dtype": "bf16", "has_c": True, "grouping": "batched", "num_groups": 8},
    {"d_dtype": "f32", "has_c": True, "grouping": "batch_sum", "num_groups": 8},
)
BF16_GROUPED_KINDS = tuple(kind for kind in KINDS if kind.get("grouping", "batched") != "batched")


def every_candidate() -> list[dict]:
    """Every feasible config of every kind outside clusters, which cost no register."""
    from deep_gemm import _C

    plans = []
    in_place = tuple({**kind, **IN_PLACE} for kind in KINDS if kind.get("has_c"))
    for shape, recipe, kind in itertools.product((LARGE, RAGGED, SHORT_K), ("1d2d", "1d1d"), (*KINDS, *in_place)):
        choice = _C.explain_fp8_gemm(*shape, recipe=recipe, **kind)
        plans += [plan for plan in (choice["best"], *choice["runners_up"]) if plan["cluster"] == 1]
    for kind in (K_GROUPED, {**K_GROUPED, **IN_PLACE}):
        choice = _C.explain_fp8_gemm(*LARGE, recipe="1d1d", **kind)
        plans += [plan for plan in (choice["best"], *choice["runners_up"]) if plan["cluster"] == 1]
    for kind in (K_GROUPED, {**K_GROUPED, **IN_PLACE}):
        feasible = _C.plans_bf16_gemm(*LARGE, a_major="mn", b_major="mn", **kind)
        plans += [plan for plan in feasible if plan["cluster"] == 1]
    majors = [*itertools.product(("k", "mn"), ("k", "mn"), BF16_KINDS), *itertools.product(("k",), ("k", "mn"), BF16_GROUPED_KINDS)]
    for shape, (a_major, b_major, kind) in itertools.product((LARGE, RAGGED), majors):
        feasible = _C.plans_bf16_gemm(*shape, a_major=a_major, b_major=b_major, **kind)
        plans += [plan for plan in feasible if plan["cluster"] == 1]
    return plans


def compile_job(job: Job) -> Result:
    """Runs in a worker: builds one kernel and reads the assembler's report."""
    from deep_gemm import _C

    start = time.perf_counter()
    try:
        image, _, log = _C.jit_build(job.entry, job.source, job.major, job.minor)
    except RuntimeError as error:
        return Result(job, 0, 0, time.perf_counter() - start, str(error), b"")
    seconds = time.perf_counter() - start
    registers = re.search(r"Used (\d+) registers", log)
    spills = sum(int(count) for count in re.findall(r"(\d+) bytes spill", log))
    problem = _C.jit_resource_complaints(log).strip()
    if registers is None:
        problem = problem or f"the compiler's report is missing: {log!r}"
    return Result(job, int(registers.group(1)) if registers else 0, spills, seconds, problem, image)


def use_empty_cache(folder: str) -> None:
    """Makes a worker compile everything itself."""
    os.environ["DG_JIT_CACHE_DIR"] = os.path.join(folder, str(os.getpid()))


def compile_jobs(jobs: list[Job], workers: int):
    """Yields results in the order of the jobs."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(workers, context, use_empty_cache, (folder,))
        with pool:
            yield from pool.map(compile_job, jobs)


def report(result: Result, verbose: bool) -> None:
    """One line of the table, and the compiler's words where it failed."""
    if result.problem or verbose:
        state = "FAILED" if result.problem else "ok"
        print(f"{state:6} {result.registers:4} regs {result.spill_bytes:4} spilled {result.job.smem_bytes:7} smem "
              f"{result.seconds:5.2f} s  {result.job.label}", flush=True)
    if result.problem:
        print(f"       {result.problem}", flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every-candidate", action="store_true", help="all feasible configs, not the golden ones only")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2), help="processes")
    parser.add_argument("--cubins", type=Path, help="keep the images here, for scripts/sass_diff.py")
    parser.add_argument("--quiet", action="store_true", help="print failures only")
    options = parser.parse_args()

    plans = every_candidate() if options.every_candidate else golden_plans()
    jobs = list({(job.entry, job.source): job for job in map(job_of, plans)}.values())
    start = time.perf_counter()
    failed, slowest = 0, 0.0
    for result in compile_jobs(jobs, options.jobs):
        report(result, not options.quiet)
        failed += bool(result.problem)
        slowest = max(slowest, result.seconds)
        if options.cubins and result.image:
            options.cubins.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^\w.+-]+", "_", f"{result.job.entry} {result.job.label}")
            (options.cubins / f"{name}.cubin").write_bytes(result.image)
    print(f"{len(jobs)} kernels, {failed} failed, {time.perf_counter() - start:.1f} s, slowest {slowest:.2f} s")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
