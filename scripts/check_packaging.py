"""Builds the package in every way users do and checks what comes out. No GPU; the registry only for the isolated build.

    python scripts/check_packaging.py [--skip-isolated] [--keep DIR]

1. A source distribution holds every source, header and licence that the build reads; a wheel is built from it with
   neither git nor a CUDA toolkit in reach, without PyTorch, and without an index.
2. `pip install .` with build isolation, and an editable install without it.
3. The wheel holds the extension, the device headers and the licence, and asks its users for no build-time dependency.
4. Import costs little more than PyTorch's, touches no driver, and a CPU call works.
Exits with 0 when all holds; the import time is printed and judged by the reader.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_ONLY = ("pybind11", "cmeel", "tvm-ffi", "cuda-runtime")

USE = """
import time, torch
start = time.perf_counter()
import deep_gemm
seconds = time.perf_counter() - start
assert not torch.cuda.is_initialized()
a = (torch.ones(4, 128).to(torch.float8_e4m3fn), torch.full((4, 1), 0.5))
b = (torch.ones(8, 128).to(torch.float8_e4m3fn), torch.ones(1, 1))
d = torch.zeros(4, 8, dtype=torch.bfloat16)
deep_gemm.fp8_gemm_nt(a, b, d)
assert torch.all(d == 64), d
print(f"{deep_gemm.__file__} {seconds:.3f}")
"""


def run(command: list, **options) -> str:
    """Output of a command; raises with it when the command fails."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def copy_of_project(folder: Path) -> Path:
    """The tracked files (or, outside a repository, all but build products) in a new folder."""
    target = folder / "project"
    if (ROOT / ".git").exists() and shutil.which("git"):
        names = run(["git", "ls-files", "-z"], cwd=ROOT).split("\0")
        for name in filter(None, names):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, target / name)
    else:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns("build", "dist", "*.so", "*.egg-info", "__pycache__"))
    return target


def environment_with_our_packages(folder: Path) -> Path:
    """Python of a new virtual environment that also sees the packages of this one."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).strip())
    (site / "ours.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def tools_only(folder: Path) -> dict:
    """An environment whose PATH holds the compiler and linker, but neither git nor nvcc, and no CUDA_HOME."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("g++", "gcc", "c++", "cc", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++", "as", "ld", "ar"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA", "GIT", "PYTHONPATH"))}
    return {**kept, "PATH": str(tools)}


def use(python: Path, cwd: Path) -> None:
    """Imports the installed package in `python`'s environment and runs a small call."""
    best = min(float(run([python, "-c", USE], cwd=cwd).split()[-1]) for _ in range(3))
    print(f"    import adds {best:.3f} s to PyTorch's")


def check_sdist(project: Path, folder: Path, environment: dict) -> Path:
    run([sys.executable, "setup.py", "-q", "sdist", "-d", folder / "sdist"], cwd=project, env=environment)
    (archive,) = (folder / "sdist").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        held = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    wanted = {"setup.py", "pyproject.toml", "README.md", "LICENSE"}
    for top in ("csrc", "include"):
        wanted |= {path.relative_to(project).as_posix() for path in (project / top).rglob("*") if path.is_file()}
    missing = sorted(wanted - held)
    assert not missing, f"the source distribution lacks {missing}"
    return archive


def check_wheel(wheel: Path, project: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        metadata = archive.read(next(name for name in held if name.endswith(".dist-info/METADATA"))).decode()
    wanted = {f"deep_gemm/{path.relative_to(project).as_posix()}" for path in (project / "include").rglob("*") if path.is_file()}
    assert wanted <= held, f"the wheel lacks {sorted(wanted - held)}"
    assert any(name.startswith("deep_gemm/_C.") for name in held) and any(name.endswith("/LICENSE") for name in held)
    strays = [name for name in held if not name.startswith(("deep_gemm/", "deep_gemm-"))]
    assert not strays, f"the wheel holds {strays}"
    needs = [line.split(":", 1)[1].strip() for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    at_run_time = [need for need in needs if "extra ==" not in need]
    assert [need.split(">")[0] for need in at_run_time] == ["torch"], at_run_time
    of_users = [need for need in needs if 'extra == "test"' not in need]
    assert not [need for need in of_users if any(name in need for name in BUILD_ONLY)], of_users


def timed(title: str, action, *arguments):
    start = time.perf_counter()
    result = action(*arguments)
    print(f"  {title}: {time.perf_counter() - start:.0f} s", flush=True)
    return result


def pip_wheel(source: Path, folder: Path, options: list, environment: dict) -> Path:
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", folder, *options, source], env=environment, cwd=folder.parent)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_all(folder: Path, skip_isolated: bool) -> None:
    bare = tools_only(folder)
    project = copy_of_project(folder)
    archive = timed("source distribution", check_sdist, project, folder, bare)
    wheel = timed("wheel from it, no index, git or toolkit", pip_wheel, archive, folder / "wheel",
                  ["--no-build-isolation", "--no-index"], bare)
    check_wheel(wheel, project)
    python = environment_with_our_packages(folder / "installed")
    run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel])
    use(python, folder)
    editable = environment_with_our_packages(folder / "editable")
    timed("editable install", run, [editable, "-m", "pip", "install", "-q", "--no-deps", "--no-index",
                                    "--no-build-isolation", "-e", project])
    use(editable, folder)
    if not skip_isolated:
        isolated = timed("pip wheel . with build isolation", pip_wheel, copy_of_project(folder / "again"),
                         folder / "isolated", [], os.environ)
        check_wheel(isolated, project)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip-isolated", action="store_true", help="leave out the build that asks the registry")
    parser.add_argument("--keep", type=Path, help="work in this new folder and leave it there")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True)
        check_all(options.keep.resolve(), options.skip_isolated)
    else:
        with tempfile.TemporaryDirectory() as folder:
            check_all(Path(folder), options.skip_isolated)
    print("packaging holds")


if __name__ == "__main__":
    main()
