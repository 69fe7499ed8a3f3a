#!/usr/bin/env python3
"""Runs the replayable cases on a GPU and records what it computes, or compares the emulator with the record.

    python tests/emulator/replay.py --record    on an H200: writes golden/h200.json
    python tests/emulator/replay.py             on the emulator: compares with the record

Needs Python 3.10 or newer and an NVRTC (the one of PyTorch's wheels will do). The record holds, for every output
buffer, its SHA-256 and its first bytes (all of them where that tells more); a case that the GPU refuses is recorded
with the error.
"""
from __future__ import annotations

import argparse
import base64
import json
import select
import subprocess
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from cases import all_cases  # noqa: E402
from harness.case import Case, digest, run_case  # noqa: E402
from harness.cuda_driver import CudaDriver, CudaError  # noqa: E402

GOLDEN = HERE / "golden" / "h200.json"
HEAD_BYTES = 2048
CASE_SECONDS = 60


def observe(driver: CudaDriver, case: Case) -> dict[str, dict[str, str]]:
    """Digest and head (or whole) of every output."""
    found = {}
    for name, data in run_case(driver, case).items():
        kept = data if case.keeps_all else data[:HEAD_BYTES]
        found[name] = {"sha256": digest(data), "head": base64.b64encode(zlib.compress(kept, 9)).decode()}
    return found


def difference(expected: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> str:
    """Where outputs differ, as far as the record tells; empty when all digests agree."""
    for name, record in expected.items():
        if record["sha256"] == found[name]["sha256"]:
            continue
        heads = [zlib.decompress(base64.b64decode(side["head"])) for side in (record, found[name])]
        words = [[head[i:i + 4] for i in range(0, len(head), 4)] for head in heads]
        wrong = [i for i, (x, y) in enumerate(zip(*words)) if x != y]
        if not wrong:
            return f"{name} differs behind the recorded head"
        first = wrong[0]
        return (f"{name}: {len(wrong)} of {min(map(len, words))} recorded words differ, the first is word {first}: recorded 0x{words[0][first][::-1].hex()}, "
                f"found 0x{words[1][first][::-1].hex()}")
    return ""


def record_cases(first: int, library: str) -> int:
    """Prints one JSON line a case, from the first-th on. Ends after an error: it may have poisoned the context."""
    driver = CudaDriver(library)
    if driver.compute_capability() != (9, 0):
        raise SystemExit(f"the record needs compute capability 9.0, this device has {driver.compute_capability()}")
    for case in all_cases("sm90a")[first:]:
        try:
            print(json.dumps([case.name, observe(driver, case)]), flush=True)
        except (CudaError, RuntimeError) as error:
            print(json.dumps([case.name, {"error": str(error).splitlines()[0]}]), flush=True)
            return 1
    return 0


def record(path: Path, library: str) -> int:
    """Records every case; a child process runs them, and a new one goes on behind a case that fails or hangs."""
    names = [case.name for case in all_cases("sm90a")]
    results: dict[str, dict[str, object]] = {}
    while len(results) < len(names):
        command = [sys.executable, str(HERE / "replay.py"), "--child", str(len(results)), "--library", library]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)  # unbuffered: select must see every line
        assert child.stdout is not None
        before = len(results)
        while select.select([child.stdout], [], [], CASE_SECONDS)[0] and (line := child.stdout.readline()):
            name, results[names[len(results)]] = json.loads(line)
            print(f"{name}: {results[name].get('error', 'ok')}", flush=True)
        child.kill()
        child.wait()
        if len(results) < len(names) and (len(results) == before or "error" not in results[names[len(results) - 1]]):
            results[names[len(results)]] = {"error": "the case hung or its process died"}
            print(f"{names[len(results) - 1]}: hung or died", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return sum("error" in result for result in results.values())


def compare(path: Path, library: str) -> int:
    """Number of cases whose outputs differ from the record."""
    golden, driver, different = json.loads(path.read_text()), CudaDriver(library), 0
    for case in all_cases("sm90a"):
        expected = golden.get(case.name)
        wrong = "" if expected is None else expected["error"] if "error" in expected else difference(expected, observe(driver, case))
        verdict = "not recorded" if expected is None else f"DIFFERENT: {wrong}" if wrong else "equal"
        different += bool(wrong)
        print(f"{case.name}: {verdict}", flush=True)
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--file", type=Path, default=GOLDEN)
    parser.add_argument("--library", default=None)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        return record_cases(arguments.child, arguments.library)
    if arguments.record:
        return record(arguments.file, arguments.library or "libcuda.so.1")
    if arguments.library is None:
        from build import build

        arguments.library = str(build())
    return compare(arguments.file, arguments.library)


if __name__ == "__main__":
    sys.exit(main())
