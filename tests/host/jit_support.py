"""Shared by test_jit_*.py: the extension, a small kernel, and runs in child processes.

Cache, settings and counters belong to a process, so most cases run in a child of their own.
"""

import json
import os
import subprocess
import sys
import textwrap
import types
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "deep_gemm"

ENTRY = "scale_by"

# One header of the repository, a decimal constant (locales), and a factor that makes kernels differ.
KERNEL = """#include <deep_gemm/base/math.h>

extern "C" __global__ void scale_by(float* x) {{
    x[deep_gemm::ceil_div(threadIdx.x, 2u)] *= 1.5f + {factor};
}}
"""


def kernel(factor: int = 1) -> str:
    return KERNEL.format(factor=factor)


def nvrtc_folders() -> list:
    """Folders of pip wheels that may hold libnvrtc, newest layout first."""
    spec = find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations if spec else [])]
    return [str(root / part / "lib") for root in roots for part in ("cu13", "cuda_nvrtc")]


def skip_package_code():
    """For children: `from deep_gemm import _C` without deep_gemm/__init__.py, which imports torch."""
    package = types.ModuleType("deep_gemm")
    package.__path__ = [str(PACKAGE)]
    sys.modules["deep_gemm"] = package


def load_extension():
    """deep_gemm._C with this checkout's device headers and the installed wheels' NVRTC."""
    from deep_gemm import _C

    _C.set_include_root(str(ROOT / "include"))
    _C.set_nvrtc_search_path(nvrtc_folders())
    return _C


def child_environment(**variables) -> dict:
    """This environment without any DG_ variable or toolkit, plus `variables` (None removes one)."""
    toolkits = ("CUDA_HOME", "CUDA_PATH")
    env = {k: v for k, v in os.environ.items() if not k.startswith("DG_") and k not in toolkits}
    for name, value in variables.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


PRELUDE = """
import json, os, sys
sys.path.insert(0, {here!r})
from jit_support import ENTRY, kernel, load_extension, skip_package_code
skip_package_code()
_C = load_extension()
def answer(**values): print("ANSWER " + json.dumps(values), flush=True)
"""


def start(script: str, cwd=None, **variables) -> subprocess.Popen:
    """Starts `script` in a child that has _C, kernel(), ENTRY and answer(**values)."""
    text = PRELUDE.format(here=str(Path(__file__).parent)) + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=cwd,
        env=child_environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Finished:
    def __init__(self, process: subprocess.Popen, timeout: float = 120):
        try:
            self.out, self.err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        self.code = process.returncode
        answers = [line[7:] for line in self.out.splitlines() if line.startswith("ANSWER ")]
        self.answer = json.loads(answers[-1]) if answers else None


def run(script: str, cwd=None, **variables) -> Finished:
    """Runs `script` to its end, which must be a good one."""
    done = Finished(start(script, cwd=cwd, **variables))
    assert done.code == 0, f"exit status {done.code}\n{done.out}\n{done.err}"
    return done


BUILD = """
image, digest, log = _C.jit_build(ENTRY, kernel(), 9, 0)
answer(digest=digest, size=len(image), image=image.hex(), **_C.jit_report())
"""


def build(cwd=None, **variables) -> Finished:
    """Builds kernel() for 9.0 in a child; its answer holds digest, size, image (hex) and jit_report()."""
    return run(BUILD, cwd=cwd, **variables)
