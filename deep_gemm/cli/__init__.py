"""The command line: one module per command, each with `add_arguments(parser)` and `run(arguments) -> exit status`."""

from __future__ import annotations

import argparse
import sys
from typing import List, Optional

from ..errors import DeepGemmError
from . import compile_command, demo, doctor, plan_command

COMMANDS = {"demo": demo, "doctor": doctor, "compile": compile_command, "plan": plan_command}


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one command; returns its exit status. A refusal is one line on stderr and status 1."""
    package = __package__.rpartition(".")[0]
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description="FP8 GEMMs compiled at run time.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=summary, description=summary))
    arguments = parser.parse_args(argv)
    try:
        return COMMANDS[arguments.command].run(arguments)
    except DeepGemmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
