"""The options that name shapes and targets, shared by `compile` and `plan`."""

from __future__ import annotations

import argparse
from typing import Any, Dict, List, Tuple

from .. import precompile


def integers(text: str) -> List[int]:
    """Comma-separated extents: "4096" or "576,2112"."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers separated by commas, got {text!r}") from None


def m_range(text: str) -> Tuple[int, int]:
    """One M, or first:last."""
    first, _, last = text.partition(":")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an integer or first:last, got {text!r}") from None


def recipe(text: str) -> Tuple[int, ...]:
    """Three integers, e.g. "1,128,128"."""
    parts = tuple(integers(text))
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"expected three integers, got {text!r}")
    return parts


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """What `compile` and `plan` share; --m, --n and --k differ by command."""
    parser.add_argument("--op", default="fp8_gemm_nt", help="operation (default: %(default)s)")
    parser.add_argument("--arch", default="sm_90a", help="architecture to compile for (default: %(default)s)")
    parser.add_argument("--sms", type=int, default=0, help="SMs of the device (default: the planner's number)")
    parser.add_argument("--recipe", type=recipe, help="gran_m,gran_n,gran_k of FP8 (default: 1,128,128)")
    parser.add_argument("--out", default="bfloat16", help="dtype of D: bfloat16 or float32 (default: %(default)s)")
    parser.add_argument("--accumulate", action="store_true", help="for calls with c")
    parser.add_argument("--groups", type=int, default=1, help="groups of a grouped operation (default: %(default)s)")
    parser.add_argument("--expected-m", type=integers, default=[0], help="rows expected in a group, for masked ones and --psum")
    parser.add_argument("--alignment", type=int, help="of groups, for contiguous ones (default: what the library has set)")
    parser.add_argument("--expr", help="expression of einsum and fp8_einsum; --groups counts its batches")
    parser.add_argument("--head-splits", type=recipe, help="left,mid,right of fp8_gemm_nt_skip_head_mid")
    parser.add_argument("--psum", action="store_true", help="for calls with use_psum_layout")


def planning_options(arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """The planner's keywords for the parsed options, one entry for each expected M."""
    target = precompile.target_of(arguments.arch, arguments.sms)
    kind = precompile.Kind(arguments.op, arguments.recipe, arguments.out, arguments.accumulate)
    options = precompile.planning_options(target, kind)
    options.update(precompile.head_options(arguments.op, arguments.head_splits))
    options.update(precompile.expression_options(arguments.op, arguments.expr))
    groups = precompile.Groups(arguments.groups, arguments.expected_m, arguments.alignment, arguments.psum)
    return [{**options, **group} for group in groups.planning(arguments.op)]
