#!/usr/bin/env python3
"""Runs the replayable cases on a GPU and records what it computes, or compares the emulator with the record.

    python tests/emulator/replay.py --record          on an H200: adds to golden/h200.json what it lacks
    python tests/emulator/replay.py --record --anew   on an H200: writes it anew
    python tests/emulator/replay.py                   on the emulator: compares with the record

Needs Python 3.10 or newer and an NVRTC (the one of PyTorch's wheels will do). The record holds a
fingerprint of each case and, for every output buffer, its SHA-256 and its first bytes (all of them where that tells
more); a case that the GPU refuses is recorded with the error, and tried again by the next --record.
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


def record_cases(names: list[str], library: str) -> int:
    """Prints one JSON line a case. Ends after an error: it may have poisoned the context."""
    driver = CudaDriver(library)
    if driver.compute_capability() != (9, 0):
        raise SystemExit(f"the record needs compute capability 9.0, this device has {driver.compute_capability()}")
    known = {case.name: case for case in all_cases("sm90a")}
    for name in names:
        try:
            print(json.dumps([name, {"outputs": observe(driver, known[name])}]), flush=True)
        except (CudaError, RuntimeError) as error:
            print(json.dumps([name, {"error": str(error).splitlines()[0]}]), flush=True)
            return 1
    return 0


def run_child(names: list[str], library: str) -> dict[str, dict[str, object]]:
    """Records of the first cases of a list, up to the first that fails, hangs or kills its process."""
    command = [sys.executable, str(HERE / "replay.py"), "--library", library, "--child", *names]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)  # unbuffered: select must see every line
    assert child.stdout is not None
    found: dict[str, dict[str, object]] = {}
    while select.select([child.stdout], [], [], CASE_SECONDS)[0] and (line := child.stdout.readline()):
        name, result = json.loads(line)
        found[name] = result
        print(f"{name}: {result.get('error', 'ok')}", flush=True)
    child.kill()
    child.wait()
    if len(found) < len(names) and not any("error" in result for result in found.values()):
        hung = names[len(found)]
        found[hung] = {"error": "the case hung or its process died"}
        print(f"{hung}: hung or died", flush=True)
    return found


def record(path: Path, library: str, anew: bool) -> int:
    """Records the cases that the file lacks, has in another version or as failed, or all; drops those that are no more.

    Child processes run them, a new one behind a case that fails or hangs. Returns how many failed.
    """
    prints = {case.name: case.fingerprint() for case in all_cases("sm90a")}
    before = json.loads(path.read_text()) if path.exists() and not anew else {}
    kept = {name: entry for name, entry in before.items() if name in prints and is_current(entry, prints[name]) and "error" not in entry}
    missing = [name for name in prints if name not in kept]
    print(f"{len(kept)} cases are recorded already, {len(missing)} to go", flush=True)
    while missing:
        found = run_child(missing, library)
        kept.update({name: {"case": prints[name], **result} for name, result in found.items()})
        missing = [name for name in missing if name not in found]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return sum("error" in result for result in kept.values())


def is_current(entry: dict[str, object], fingerprint: str) -> bool:
    """Whether an entry of the record is of this version of its case."""
    return entry["case"] == fingerprint


def compare(path: Path, library: str) -> int:
    """Number of cases whose outputs differ from the record, or that it lacks."""
    golden, driver, different = json.loads(path.read_text()), CudaDriver(library), 0
    for case in all_cases("sm90a"):
        entry = golden.get(case.name)
        if entry is None or not is_current(entry, case.fingerprint()):
            verdict = "not recorded"
        elif wrong := entry.get("error") or difference(entry["outputs"], observe(driver, case)):
            verdict = f"DIFFERENT: {wrong}"
        else:
            verdict = "equal"
        different += verdict != "equal"
        print(f"{case.name}: {verdict}", flush=True)
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--file", type=Path, default=GOLDEN)
    parser.add_argument("--library", default=None)
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        return record_cases(arguments.child, arguments.library)
    if arguments.record:
        return record(arguments.file, arguments.library or "libcuda.so.1", arguments.anew)
    if arguments.library is None:
        from build import build

        arguments.library = str(build())
    return compare(arguments.file, arguments.library)


if __name__ == "__main__":
    sys.exit(main())
