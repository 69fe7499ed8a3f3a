"""Importing: cheap in what it pulls in, without CUDA, safe to fork after, and under any package name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import deep_gemm

PACKAGE = Path(deep_gemm.__file__).resolve().parent
PRODUCT = textwrap.dedent(
    """
    import torch
    def product(library):
        torch.manual_seed(0)
        x, y = torch.randn(5, 256), torch.randn(16, 256)
        a = library.per_token_cast_to_fp8(x, use_ue8m0=False)
        b = library.per_block_cast_to_fp8(y, use_ue8m0=False)
        d = torch.empty(5, 16)
        library.fp8_gemm_nt(a, b, d)
        return d
    """
)


def run_python(code: str, *path: Path, **environment: str) -> str:
    """Standard output of `code` in a fresh interpreter that finds packages in `path` first."""
    folders = [str(folder) for folder in (*path, PACKAGE.parent)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment}
    command = [sys.executable, "-c", PRODUCT + textwrap.dedent(code)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_touches_no_cuda_and_no_compiler():
    code = """
    import sys
    libraries = lambda: {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
    before, mapped = set(sys.modules), libraries()
    import deep_gemm
    assert not torch.cuda.is_initialized()
    heavy = [name for name in ("triton", "torch._dynamo", "torch._inductor", "torch.distributed.nn", "setuptools")
             if name in sys.modules and name not in before]
    print(heavy, [path for path in libraries() - mapped if "nvrtc" in path or "libcuda" in path])
    """
    assert run_python(code) == "[] []"


def test_import_needs_no_environment():
    code = "import deep_gemm; print(deep_gemm.__version__)"
    command = [sys.executable, "-c", code]
    variables = {"PYTHONPATH": str(PACKAGE.parent), "PATH": ""}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == deep_gemm.__version__, done.stderr


def test_fork_after_import_and_after_a_call():
    code = """
    import os
    import deep_gemm
    expected = product(deep_gemm)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(product(deep_gemm), expected) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if hasattr(os, "waitstatus_to_exitcode") else 0)
    """
    assert run_python(code, OMP_NUM_THREADS="1") == "0"


@pytest.fixture
def vendored(tmp_path: Path) -> Path:
    """A folder in which a copy of this package lives as `host_project.third_party.gemm`."""
    target = tmp_path / "host_project" / "third_party" / "gemm"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    if not (target / "include").is_dir():
        shutil.copytree(PACKAGE.parent / "include", target / "include")
    for folder in (tmp_path / "host_project", tmp_path / "host_project" / "third_party"):
        (folder / "__init__.py").touch()
    return tmp_path


def test_a_renamed_copy_lives_beside_the_original(vendored: Path):
    code = """
    import deep_gemm
    from host_project.third_party import gemm
    assert gemm.__file__ != deep_gemm.__file__ and gemm._C is not deep_gemm._C
    assert gemm.DeepGemmError is not deep_gemm.DeepGemmError
    assert torch.equal(product(gemm), product(deep_gemm))
    torch.ops.deep_gemm.fp8_gemm_nt, torch.ops.host_project_third_party_gemm.fp8_gemm_nt
    for library in (gemm, deep_gemm):
        try:
            library.fp8_gemm_nt(None, None, None)
        except library.DeepGemmError as error:
            pass
    deep_gemm.set_tc_util(40)
    print(gemm.get_tc_util())
    """
    assert run_python(code, vendored) == "100"


def test_a_renamed_copy_works_without_the_original(vendored: Path, tmp_path: Path):
    code = """
    from host_project.third_party import gemm
    compiled = torch.compile(lambda: product(gemm), backend="aot_eager")
    assert torch.equal(compiled(), product(gemm))
    built = gemm.compile(m=64, n=576, k=512)
    import sys
    print("deep_gemm" in sys.modules, len(built), gemm._C.jit_report()["include_root"])
    """
    output = run_python(code, vendored, DG_JIT_CACHE_DIR=str(tmp_path / "cache"))
    assert output == f"False 1 {vendored / 'host_project' / 'third_party' / 'gemm' / 'include'}"
