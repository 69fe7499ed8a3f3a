"""Report what this machine offers and what is missing."""

from __future__ import annotations

import argparse
import platform
import sys
from typing import Any, Callable, Iterator, List, Tuple

import torch

from .. import _C
from ..nvrtc_paths import nvrtc_folders
from ..ops.table import OPS, supported_sentence

Line = Tuple[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no options."""


def versions() -> Iterator[Line]:
    """Versions of everything in the process."""
    yield "library", f"{_C.version} ({_C.__file__})"
    yield "Python", f"{sys.version.split()[0]} on {platform.platform()}"
    yield "PyTorch", f"{torch.__version__}, CUDA {torch.version.cuda or 'none (CPU build)'}"


def compiler() -> Iterator[Line]:
    """NVRTC and the kernel cache."""
    report = _C.jit_report()
    if report["nvrtc_found"]:
        yield "NVRTC", f"{'.'.join(map(str, report['nvrtc_version']))} at {report['nvrtc_path']}"
    else:
        yield "NVRTC", "not found; install the package nvidia-cuda-nvrtc"
        yield "  places tried", report["nvrtc_places_tried"]
    yield "  pip folders", ", ".join(nvrtc_folders()) or "none"
    yield "kernel cache", f"{report['cache_dir'] or 'memory only'} ({report['cache_state']})"
    yield "device headers", report["include_root"]


def driver() -> Iterator[Line]:
    """Whether there is a CUDA driver, and the CUDA version it serves."""
    if not _C.driver_available():
        yield "driver", "none"
        return
    version = torch._C._cuda_getDriverVersion() if torch.version.cuda else 0
    yield "driver", f"CUDA {version // 1000}.{version % 1000 // 10}" if version else "present; PyTorch is a CPU build"


def devices() -> Iterator[Line]:
    """The GPUs that PyTorch sees, and whether there are kernels for them."""
    if not torch.cuda.is_available():
        yield "GPU", "none; CPU tensors run the reference"
        return
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        arch = f"sm_{properties.major}{properties.minor}"
        known = any(arch in op.archs for op in OPS)
        memory = f"{properties.total_memory / 2**30:.0f} GiB, {properties.multi_processor_count} SMs"
        yield f"GPU {index}", f"{properties.name}, {arch}, {memory}: {'supported' if known else 'no kernels yet'}"


def support() -> Iterator[Line]:
    """What this release runs, and how much of the contract is pending."""
    yield "supported", supported_sentence()
    yield "pending", f"{sum(not op.archs for op in OPS)} operations of the contract refuse every call so far"


def collect(section: Callable[[], Iterator[Line]]) -> List[Line]:
    """The lines of a section; one that fails reports its failure, for a broken machine is when this is read."""
    lines: List[Line] = []
    try:
        lines.extend(section())
    except Exception as error:  # noqa: BLE001
        lines.append((section.__name__, f"could not be read: {type(error).__name__}: {error}"))
    return lines


def run(arguments: argparse.Namespace) -> int:
    """Prints every section; always 0, a report is not a verdict."""
    for section in (versions, compiler, driver, devices, support):
        for name, value in collect(section):
            print(f"{name:15} {value}")
    return 0
