"""Build the kernels of a range of shapes, without a GPU."""

from __future__ import annotations

import argparse
from typing import Any, Callable, Optional, Tuple

from .. import _C, precompile
from .shape_arguments import add_target_arguments, integers, m_range, planning_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds this command's options."""
    parser.add_argument("--m", type=m_range, required=True, help="rows of A: an integer or first:last")
    parser.add_argument("--n", type=integers, required=True, help="rows of B, comma-separated")
    parser.add_argument("--k", type=integers, required=True, help="depth, comma-separated")
    add_target_arguments(parser)
    parser.add_argument("--image", choices=("cubin", "ptx"), default="cubin", help="ptx is for an emulated driver")
    parser.add_argument("--jobs", type=int, default=None, help="threads (default: one a processor)")
    parser.add_argument("--list", action="store_true", help="print the M at which the choice changes, and build nothing")


def plain_report(done: int, total: int, kernel: precompile.BuiltKernel) -> None:
    """One line for each kernel."""
    print(f"[{done}/{total}] {kernel.seconds:6.2f} s  {kernel.digest[:16]}  {kernel.text}", flush=True)


def progress_bar() -> Tuple[Callable[[int, int, precompile.BuiltKernel], None], Callable[[], None]]:
    """(report, close): a tqdm bar where tqdm is installed, else plain lines."""
    try:
        from tqdm import tqdm
    except ImportError:
        return plain_report, lambda: None
    bar: Optional[Any] = None

    def report(done: int, total: int, kernel: precompile.BuiltKernel) -> None:
        nonlocal bar
        bar = bar or tqdm(total=total, unit="kernel")
        bar.set_postfix_str(kernel.text[:60], refresh=False)
        bar.update(done - bar.n)

    return report, lambda: bar.close() if bar is not None else None


def list_points(arguments: argparse.Namespace) -> int:
    """Prints the break points of the requested shapes."""
    for options in planning_options(arguments):
        hint = f"  expected M {options['expected_m']:6d}" if "expected_m" in options else ""
        for point in precompile.break_points(arguments.m, arguments.n, arguments.k, options):
            print(f"M >= {point.m:6d}  N {point.n:6d}  K {point.k:6d}{hint}  {point.text}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Builds, or lists with --list."""
    if arguments.list:
        return list_points(arguments)
    report, close = progress_bar()
    try:
        built = precompile.compile(
            arguments.op,
            m=arguments.m,
            n=arguments.n,
            k=arguments.k,
            arch=arguments.arch,
            recipe=arguments.recipe,
            out=arguments.out,
            accumulate=arguments.accumulate,
            num_groups=arguments.groups,
            expected_m=arguments.expected_m,
            alignment=arguments.alignment,
            use_psum_layout=arguments.psum,
            head_splits=arguments.head_splits,
            expr=arguments.expr,
            sm_count=arguments.sms,
            image=arguments.image,
            jobs=arguments.jobs,
            report=report,
        )
    finally:
        close()
    cache = _C.jit_report()
    print(f"{len(built)} kernels for {arguments.arch} in {cache['cache_dir']} ({cache['cache_state']})")
    return 0
