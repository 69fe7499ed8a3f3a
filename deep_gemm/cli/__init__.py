"""The command line: one module per command, each with `add_arguments(parser)` and `run(arguments) -> exit status`."""

from __future__ import annotations

import argparse
import os
import sys
from types import ModuleType
from typing import List, Optional

from ..errors import DeepGemmError
from . import compile_command, demo, doctor, plan_command

COMMANDS = {"demo": demo, "doctor": doctor, "compile": compile_command, "plan": plan_command}


CLOSED_PIPE = 141  # what a shell reports of a program that SIGPIPE ended


def run(command: ModuleType, arguments: argparse.Namespace) -> int:
    """Runs `command`, whose reader may leave before the end, as `head` does."""
    try:
        status = command.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer goes nowhere
        return CLOSED_PIPE


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
        return run(COMMANDS[arguments.command], arguments)
    except DeepGemmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
