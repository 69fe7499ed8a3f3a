"""The package as others load it: renamed, twice in one process, before a fork, without a GPU, a driver or a compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deep_gemm

PACKAGE = Path(deep_gemm.__file__).resolve().parent
INCLUDE = next(folder for folder in (PACKAGE / "include", PACKAGE.parent / "include") if folder.is_dir())
SMALL_GEMM = """
import os, torch
def small_gemm(library, m=4, n=8, k=128):
    a = (torch.ones(m, k).to(torch.float8_e4m3fn), torch.full((m, 1), 0.5))
    b = (torch.ones(n, k).to(torch.float8_e4m3fn), torch.ones(1, 1))
    d = torch.zeros(m, n, dtype=torch.bfloat16)
    library.fp8_gemm_nt(a, b, d)
    assert torch.all(d == k / 2), d
"""


def run(code, folder=PACKAGE.parent, **environment):
    """Output of `code` in a fresh process that imports from `folder`."""
    done = subprocess.run([sys.executable, "-c", SMALL_GEMM + code], text=True, timeout=300, cwd=os.sep,
                          env={**os.environ, "PYTHONPATH": str(folder), **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def vendored(tmp_path_factory):
    """A folder whose `vendor.parts.gemm` and `other_gemm` are copies of the package."""
    folder = tmp_path_factory.mktemp("vendored")
    (folder / "vendor" / "parts").mkdir(parents=True)
    (folder / "vendor" / "__init__.py").touch()
    (folder / "vendor" / "parts" / "__init__.py").touch()
    for target in (folder / "vendor" / "parts" / "gemm", folder / "other_gemm"):
        shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", "include"))
        shutil.copytree(INCLUDE, target / "include")
    return folder


def test_a_renamed_copy_works_and_never_asks_for_the_original(vendored, tmp_path):
    run(
        """
import sys, vendor.parts.gemm as gemm
small_gemm(gemm)
torch.compile(lambda: small_gemm(gemm), backend="aot_eager")()
try:
    gemm.fp8_gemm_nt(1, 2, 3)
except gemm.DeepGemmError as error:
    assert type(error).__module__ == "vendor.parts.gemm.errors", type(error)
assert len(gemm.compile(m=64, n=576, k=512)) == 1
assert gemm._C.jit_report()["include_root"] == os.path.join(os.path.dirname(gemm.__file__), "include")
assert not any(name == "deep_gemm" or name.startswith("deep_gemm.") for name in sys.modules)
""",
        vendored,
        DG_JIT_CACHE_DIR=str(tmp_path),
    )


def test_two_copies_in_one_process_keep_their_own_state(vendored):
    run(
        """
import vendor.parts.gemm as first, other_gemm as second
small_gemm(first), small_gemm(second)
assert first.DeepGemmError is not second.DeepGemmError
for library, other in ((first, second), (second, first)):
    try:
        library.set_tc_util(101)
    except RuntimeError as error:
        assert type(error) is library.DeepGemmError and not isinstance(error, other.DeepGemmError)
first.set_pdl(True), first.set_tc_util(37)
assert not second.get_pdl() and second.get_tc_util() == 100
assert torch.ops.vendor_parts_gemm.fp8_gemm_nt is not torch.ops.other_gemm.fp8_gemm_nt
""",
        vendored,
    )


def test_import_loads_no_driver_no_compiler_and_nothing_heavy():
    run(
        """
import sys
def libraries():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if ".so" in line}
modules, mapped = set(sys.modules), libraries()
import deep_gemm
assert not torch.cuda.is_initialized()
added = [path for path in libraries() - mapped if "libnvrtc" in path or "libcuda" in path]
heavy = {"triton", "torch._dynamo", "torch._inductor", "torch.distributed.nn", "setuptools"} & (set(sys.modules) - modules)
assert not added and not heavy, (added, heavy)
""",
        PATH="/nonexistent",
        DG_DRIVER_LIBRARY="libnone.so.9",
    )


def test_import_needs_no_environment():
    done = subprocess.run([sys.executable, "-c", "import deep_gemm; print(deep_gemm.__version__)"], text=True, timeout=300,
                          env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""}, capture_output=True)
    assert done.stdout.strip() == deep_gemm.__version__, done.stderr


def test_a_fork_after_import_works_in_both_processes():
    run(
        """
import deep_gemm
small_gemm(deep_gemm)
torch.set_num_threads(1)
child = os.fork()
if child == 0:
    code = 1
    try:
        small_gemm(deep_gemm)
        deep_gemm.set_pdl(True)
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
small_gemm(deep_gemm)
assert not deep_gemm.get_pdl()
"""
    )


def test_environment_is_read_at_first_use_not_at_import(tmp_path):
    out = run(
        """
import deep_gemm
os.environ["DG_DRIVER_LIBRARY"] = "libset_late.so"
try:
    deep_gemm.get_num_sms()
except deep_gemm.DeepGemmError as error:
    print(error)
"""
    )
    assert "libset_late.so" in out


def test_the_device_headers_are_where_the_package_says():
    headers = [path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.*h")]
    assert "deep_gemm/kernels/fp8_gemm/interface.h" in headers and "deep_gemm/base/types.h" in headers
