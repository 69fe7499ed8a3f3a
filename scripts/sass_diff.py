"""Compares the machine code of two sets of kernels: what a change did to instructions, registers and spills.

Usage: python scripts/compile_all.py --cubins OLD; ...change...; python scripts/compile_all.py --cubins NEW
       python scripts/sass_diff.py OLD NEW [--full NAME]

Prints the kernels whose code differs with the opcodes that became more or fewer. --full prints the unified difference of
the kernels whose file name contains NAME. Needs nvdisasm: on PATH or from the nvidia-cuda-nvdisasm package. Exit status 1
if anything differs.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?P<text>[^;]+);")


def find_disassembler() -> str:
    """The path of nvdisasm."""
    if found := shutil.which("nvdisasm"):
        return found
    try:
        for file in importlib.metadata.files("nvidia-cuda-nvdisasm") or []:
            if file.name == "nvdisasm":
                return str(file.locate())
    except importlib.metadata.PackageNotFoundError:
        pass
    raise SystemExit("nvdisasm was not found; put it on PATH or install the package nvidia-cuda-nvdisasm")


def instructions_of(disassembler: str, cubin: Path) -> list[str]:
    """The instructions of an image in order, addresses left out."""
    listing = subprocess.run([disassembler, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
    return [match.group("text").strip() for line in listing.splitlines() if (match := _INSTRUCTION.match(line))]


def opcode_of(instruction: str) -> str:
    """`@P0 LDG.E.128 R4, [R2]` -> `LDG`."""
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0].split(".")[0]


def summary_of(old: list[str], new: list[str]) -> str:
    """Opcodes whose count changed, the largest change first."""
    before, after = (collections.Counter(map(opcode_of, code)) for code in (old, new))
    changes = {opcode: after[opcode] - before[opcode] for opcode in before | after}
    ordered = sorted(((abs(change), opcode) for opcode, change in changes.items() if change), reverse=True)
    return " ".join(f"{opcode}{changes[opcode]:+}" for _, opcode in ordered) or "same counts, other order or operands"


def compare(old_folder: Path, new_folder: Path, full: str) -> int:
    """Prints the differences; returns how many kernels differ."""
    disassembler = find_disassembler()
    names = sorted({path.name for folder in (old_folder, new_folder) for path in folder.glob("*.cubin")})
    if not names:
        raise SystemExit(f"no *.cubin in {old_folder} or {new_folder}")
    differing = 0
    for name in names:
        sides = [folder / name for folder in (old_folder, new_folder)]
        if not all(side.exists() for side in sides):
            differing += 1
            print(f"{name}: only in {sides[0].parent if sides[0].exists() else sides[1].parent}")
            continue
        old, new = (instructions_of(disassembler, side) for side in sides)
        if old == new:
            continue
        differing += 1
        print(f"{name}: {len(old)} -> {len(new)} instructions: {summary_of(old, new)}")
        if full and full in name:
            print("\n".join(difflib.unified_diff(old, new, "old", "new", lineterm="")))
    print(f"{len(names)} kernels, {differing} differ")
    return differing


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--full", default="", metavar="NAME", help="print the difference of these kernels whole")
    options = parser.parse_args()
    return 1 if compare(options.old, options.new, options.full) else 0


if __name__ == "__main__":
    sys.exit(main())
