"""Print the plan of a shape beside its runner-up."""

from __future__ import annotations

import argparse

from .. import _C
from ..precompile import extents
from .shape_arguments import add_target_arguments, planning_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds this command's options."""
    for name, meaning in (("m", "rows of A"), ("n", "rows of B"), ("k", "depth")):
        parser.add_argument(f"--{name}", type=int, required=True, help=meaning)
    add_target_arguments(parser)
    parser.add_argument("--all", action="store_true", help="every candidate, with the reason of each rejection")


def run(arguments: argparse.Namespace) -> int:
    """Prints the pick and what it beat."""
    for name in ("m", "n", "k"):
        extents(getattr(arguments, name), name)
    choice = _C.explain_fp8_gemm(arguments.m, arguments.n, arguments.k, **planning_options(arguments))
    if arguments.all:
        print(choice["text"])
        return 0
    print(f"best       {choice['best']['text']}")
    for plan in choice["runners_up"][:1]:
        print(f"runner-up  {plan['text']}")
    print(f"{len(choice['runners_up'])} other candidates could run it, {len(choice['rejected'])} were rejected; --all lists them")
    return 0
