"""Print the plan of a shape beside its runner-up."""

from __future__ import annotations

import argparse
from typing import Any, Dict

from .. import _C
from ..precompile import extents, family_of
from .shape_arguments import add_target_arguments, planning_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds this command's options."""
    for name, meaning in (("m", "rows of A"), ("n", "rows of B"), ("k", "depth")):
        parser.add_argument(f"--{name}", type=int, required=True, help=meaning)
    add_target_arguments(parser)
    parser.add_argument("--all", action="store_true", help="every candidate, with the reason of each rejection")


def run(arguments: argparse.Namespace) -> int:
    """Prints the pick and what it beat, for each expected M."""
    for name in ("m", "n", "k"):
        extents(getattr(arguments, name), name)
    for options in planning_options(arguments):
        explain(arguments, options)
    return 0


def explain(arguments: argparse.Namespace, options: Dict[str, Any]) -> None:
    """Prints the choice for a shape under the keywords of the planner: the pick and what it beat."""
    if family_of(options) == "bf16_gemm":
        return explain_bf16(arguments, options)
    choice = _C.explain_fp8_gemm(arguments.m, arguments.n, arguments.k, **options)
    if arguments.all:
        print(choice["text"])
        return
    print(f"best       {choice['best']['text']}")
    for plan in choice["runners_up"][:1]:
        print(f"runner-up  {plan['text']}")
    print(f"{len(choice['runners_up'])} other candidates could run it, {len(choice['rejected'])} were rejected; --all lists them")


def explain_bf16(arguments: argparse.Namespace, options: Dict[str, Any]) -> None:
    """The same for BF16, whose planner keeps no reasons of what it does not consider."""
    plans = _C.plans_bf16_gemm(arguments.m, arguments.n, arguments.k, **options)
    for index, plan in enumerate(plans if arguments.all else plans[:2]):
        print(f"{'runner-up' if index else 'best':10} {plan['text']}")
    print(f"{len(plans) - 1} other candidates could run it{'' if arguments.all else '; --all lists them'}")
