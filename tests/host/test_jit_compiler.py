"""NVRTC: where it is found, what it is asked, and what comes back."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jit_support import ENTRY, build, kernel, load_extension, nvrtc_folders, run

_C = load_extension()

# -- discovery -------------------------------------------------------------------------------------


def test_importing_and_settings_load_no_compiler():
    maps = run("_C.settings(); answer(maps=open('/proc/self/maps').read())").answer["maps"]
    assert "nvrtc" not in maps and "libcuda" not in maps


def test_found_in_a_wheel():
    report = _C.jit_report()
    assert report["nvrtc_found"] and report["nvrtc_version"] >= (12, 0)
    assert str(Path(report["nvrtc_path"]).parent) in nvrtc_folders()


MISSING = """
try: _C.jit_build(ENTRY, kernel(), 9, 0)
except RuntimeError as error: answer(error=str(error), **_C.jit_report())
"""


def test_missing_is_a_sentence_with_the_places_and_the_remedy():
    answer = run(MISSING, DG_JIT_NVRTC_LIBRARY="/nowhere/libnvrtc.so.13").answer
    assert not answer["nvrtc_found"] and answer["nvrtc_version"] == [0, 0]
    remedies = ("nvidia-cuda-nvrtc", "toolkit", "DG_JIT_NVRTC_LIBRARY")
    for part in ("no NVRTC", "/nowhere/libnvrtc.so.13", *remedies):
        assert part in answer["error"]


def test_a_library_that_is_not_nvrtc_is_refused():
    assert "it is not a usable NVRTC" in run(MISSING, DG_JIT_NVRTC_LIBRARY="libc.so.6").answer["error"]


def test_places_are_tried_in_order(tmp_path):
    script = """
    _C.set_nvrtc_search_path(["/first", "/second"])
    answer(**_C.jit_report())
    """
    tried = run(script, CUDA_HOME=tmp_path / "kit", CUDA_PATH=tmp_path / "other").answer["nvrtc_places_tried"]
    places = ["/first", "/second", f"{tmp_path}/kit/lib64", f"{tmp_path}/other/lib64", "/usr/local/cuda/lib64"]
    positions = [tried.index(f"  {place}") for place in places]
    assert positions == sorted(positions)


def test_found_in_a_toolkit(tmp_path):
    wheel = Path(_C.jit_report()["nvrtc_path"]).parent
    (tmp_path / "lib64").mkdir()
    for library in wheel.glob("libnvrtc*.so*"):
        if ".alt." not in library.name:
            (tmp_path / "lib64" / library.name).symlink_to(library)
    script = "_C.set_nvrtc_search_path([])\n_C.jit_build(ENTRY, kernel(), 9, 0)\nanswer(**_C.jit_report())"
    answer = run(script, CUDA_HOME=tmp_path, DG_JIT_CACHE_DIR=tmp_path / "cache").answer
    assert answer["nvrtc_path"].startswith(str(tmp_path)) and answer["compiled"] == 1


def test_a_changed_search_path_is_searched_again():
    script = f"""
    before = _C.jit_report()["nvrtc_found"]
    del os.environ["DG_JIT_NVRTC_LIBRARY"]
    _C.reload_settings()
    answer(before=before, after=_C.jit_report()["nvrtc_found"])
    """
    answer = run(script, DG_JIT_NVRTC_LIBRARY="/nowhere").answer
    assert (answer["before"], answer["after"]) == (False, True)


# -- targets ---------------------------------------------------------------------------------------

TARGETS = [
    # capability, first NVRTC, cubin, PTX
    ((9, 0), (12, 0), "sm_90a", "compute_90a"),
    ((10, 0), (12, 8), "sm_100a", "compute_100a"),
    ((10, 3), (12, 9), "sm_103a", "compute_103a"),
]
VERSIONS = [(11, 8), (12, 0), (12, 4), (12, 7), (12, 8), (12, 9), (13, 0), (14, 1)]


@pytest.mark.parametrize("capability, first, cubin, ptx", TARGETS)
@pytest.mark.parametrize("version", VERSIONS)
def test_target_table(capability, first, cubin, ptx, version):
    for kind, name in (("cubin", cubin), ("ptx", ptx)):
        if version >= first:
            assert _C.jit_target_name(*capability, kind, version) == name
        else:
            texts = (f"{pair[0]}.{pair[1]}" for pair in (capability, first, version))
            with pytest.raises(RuntimeError, match="{} needs NVRTC {} or newer, found {}".format(*texts)):
                _C.jit_target_name(*capability, kind, version)


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 1), (12, 0), (0, 0)])
def test_unsupported_capabilities_name_the_supported_ones(capability):
    with pytest.raises(RuntimeError, match=r"is not supported; supported: 9.0 \(NVRTC >= 12.0\), 10.0"):
        _C.jit_target_name(*capability, "cubin", (13, 0))


def test_an_unknown_kind_is_refused():
    with pytest.raises(RuntimeError, match="kind: expected 'cubin' or 'ptx', got 'fatbin'"):
        _C.jit_build(ENTRY, kernel(), 9, 0, "fatbin")


@pytest.mark.parametrize("capability, first, cubin, ptx", TARGETS)
def test_this_nvrtc_builds_every_target_that_the_table_gives_it(tmp_path, capability, first, cubin, ptx):
    if _C.jit_report()["nvrtc_version"] < first:
        pytest.skip(f"this NVRTC is older than {first}")
    script = f"""
    image = _C.jit_build(ENTRY, kernel(), {capability[0]}, {capability[1]})[0]
    text = _C.jit_build(ENTRY, kernel(), {capability[0]}, {capability[1]}, "ptx")[0]
    answer(image=image.hex(), text=text.decode(), **_C.jit_report())
    """
    answer = run(script, DG_JIT_CACHE_DIR=tmp_path).answer
    image = bytes.fromhex(answer["image"])
    assert image[:4] == b"\x7fELF" and int.from_bytes(image[18:20], "little") == 190  # EM_CUDA
    assert f".target {cubin}" in answer["text"] and f".entry {ENTRY}(" in answer["text"]
    assert not answer["text"].endswith("\0")
    assert answer["compiled"] == answer["published"] == 2


# -- what the compiler says ------------------------------------------------------------------------

FAILS = """
text = kernel().replace("1.5f", "not_defined")
try: _C.jit_build(ENTRY, text, 9, 0)
except RuntimeError as error: answer(error=str(error), digest=_C.jit_digest(ENTRY, text, 9, 0))
"""


def test_a_compile_error_carries_log_options_and_source(tmp_path):
    error = run(FAILS, DG_JIT_CACHE_DIR=tmp_path).answer["error"]
    for part in ('"not_defined" is undefined', "scale_by.cu(4)", "=sm_90a", "--std=c++20", "*= not_defined"):
        assert part in error


def test_debug_keeps_the_source_and_names_it(tmp_path):
    answer = run(FAILS, DG_JIT_CACHE_DIR=tmp_path, DG_JIT_DEBUG=1).answer
    copy = tmp_path / f"{answer['digest']}.cu"
    assert f"source: {copy}" in answer["error"] and "not_defined" in copy.read_text()


def test_an_entry_that_is_not_there_is_an_error(tmp_path):
    script = """
    errors = []
    for kind in ("cubin", "ptx"):
        try: _C.jit_build("nothing", kernel(), 9, 0, kind)
        except RuntimeError as error: errors.append(str(error))
    answer(errors=errors)
    """
    errors = run(script, DG_JIT_CACHE_DIR=tmp_path).answer["errors"]
    assert len(errors) == 2 and all("has no entry 'nothing'" in error for error in errors)


SPILLING = """
#include <deep_gemm/base/types.h>
extern "C" __global__ void __launch_bounds__(1024, 2) scale_by(float* x) {
    float held[64];
    for (int i = 0; i < 64; ++i) held[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; ++i) x[int(held[(i * 7 + int(x[0])) % 64]) + i] = held[i];
}
"""
CHECKED = f"""
try: answer(built=len(_C.jit_build(ENTRY, {SPILLING!r}, 9, 0)[0]))
except RuntimeError as error: answer(error=str(error))
"""


def test_ptxas_check_refuses_local_memory_fresh_and_from_the_cache(tmp_path):
    for _ in range(2):
        error = run(CHECKED, DG_JIT_CACHE_DIR=tmp_path, DG_JIT_PTXAS_CHECK=1).answer["error"]
        assert "DG_JIT_PTXAS_CHECK" in error and "bytes stack frame" in error
    assert "built" in run(CHECKED, DG_JIT_CACHE_DIR=tmp_path).answer
    assert build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_PTXAS_CHECK=1).answer["size"] > 0


@pytest.mark.parametrize(
    "line, complains",
    [
        ("ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", False),
        ("ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", True),
        ("ptxas         .     0 bytes stack frame, 100 bytes spill stores, 0 bytes spill loads", True),
        ("ptxas         .     0 bytes stack frame, 0 bytes spill stores, 10 bytes spill loads", True),
        ("ptxas info    : Used 168 registers, used 16 barriers, 24 bytes lmem", True),
        ("ptxas info    : Used 168 registers, used 16 barriers, 400 bytes cmem[0]", False),
        ("ptxas info : (C7510) ... wgmma.mma_async instructions are serialized due to ...", True),
    ],
)
def test_what_counts_as_a_complaint(line, complains):
    found = _C.jit_resource_complaints(f"ptxas info : something\n{line}\n")
    assert found == (line + "\n" if complains else "")


def test_ptxas_report_is_printed_fresh_and_from_the_cache(tmp_path):
    for _ in range(2):
        assert "registers" in build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_PTXAS_VERBOSE=1).err
    assert build(DG_JIT_CACHE_DIR=tmp_path).err == ""


def test_compiler_command_is_printed(tmp_path):
    err = build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_PRINT_COMPILER_COMMAND=1).err
    assert err.startswith("deep_gemm command: nvrtc --std=c++20 --gpu-architecture=sm_90a")
    assert "scale_by.cu" in err


def test_options_that_spare_work_go_to_compilers_that_know_them(tmp_path):
    built = build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_PRINT_COMPILER_COMMAND=1)
    version, words = tuple(built.answer["nvrtc_version"]), built.err.split()
    assert ("--minimal" in words) == (version >= (12, 4)), (version, words)
    assert ("--no-cache" in words) == (version >= (12, 9)), (version, words)


# -- copies for people -----------------------------------------------------------------------------


def test_ptx_dump_also_of_a_kernel_that_is_cached_already(tmp_path):
    digest = build(DG_JIT_CACHE_DIR=tmp_path).answer["digest"]
    answer = build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_DUMP_PTX=1).answer
    assert answer["compiled"] == 1 and f".entry {ENTRY}(" in (tmp_path / f"{digest}.ptx").read_text()
    assert build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_DUMP_PTX=1).answer["loaded"] == 1


def fake_disassembler(folder):
    folder.mkdir(parents=True)
    tool = folder / "nvdisasm"
    tool.write_text('#!/bin/sh\nprintf "code of %s\\n" "$1"\n')
    tool.chmod(0o755)


def test_sass_dump_by_a_disassembler_in_a_toolkit(tmp_path):
    fake_disassembler(tmp_path / "kit" / "bin")
    cache = tmp_path / "a cache"
    digest = run(
        "_C.set_nvrtc_search_path([])\nanswer(digest=_C.jit_build(ENTRY, kernel(), 9, 0)[1])",
        DG_JIT_CACHE_DIR=cache,
        DG_JIT_DUMP_SASS=1,
        DG_JIT_NVRTC_LIBRARY=_C.jit_report()["nvrtc_path"],
        CUDA_HOME=tmp_path / "kit",
    ).answer["digest"]
    assert (cache / f"{digest}.sass").read_text() == f"code of {cache}/{digest}.cubin\n"


def test_asm_dump_gives_both_or_says_why_not(tmp_path):
    done = build(DG_JIT_CACHE_DIR=tmp_path, DG_JIT_DUMP_ASM=1)
    assert (tmp_path / f"{done.answer['digest']}.ptx").exists()
    sass = tmp_path / f"{done.answer['digest']}.sass"
    if sass.exists():
        assert ENTRY in sass.read_text() and "EXIT" in sass.read_text()
    else:
        assert "nvdisasm" in done.err


def test_line_information_reaches_the_ptx(tmp_path):
    script = "answer(ptx=_C.jit_build(ENTRY, kernel(), 9, 0, 'ptx')[0].decode())"
    assert ".loc" in run(script, DG_JIT_CACHE_DIR=tmp_path, DG_JIT_WITH_LINEINFO=1).answer["ptx"]
    assert ".loc" not in run(script, DG_JIT_CACHE_DIR=tmp_path).answer["ptx"]


# -- hostile surroundings --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comma_locale(tmp_path_factory):
    """A folder for LOCPATH with de_DE.UTF-8, made here where the system has none installed."""
    folder = tmp_path_factory.mktemp("locales")
    tool = shutil.which("localedef")
    if tool is None:
        pytest.skip("no localedef to make a locale with decimal commas")
    command = [tool, "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"]
    made = subprocess.run(command, capture_output=True, text=True)
    if not (folder / "de_DE.UTF-8" / "LC_NUMERIC").exists():
        pytest.skip(f"no locale sources: {made.stderr[:200]}")
    return folder


def test_decimal_commas_do_not_matter(tmp_path, comma_locale):
    script = """
    import locale
    locale.setlocale(locale.LC_ALL, "")
    point = locale.localeconv()["decimal_point"]  # now: NVRTC 12.0 sets LC_NUMERIC to C and leaves it so
    image, digest, log = _C.jit_build(ENTRY, kernel(), 9, 0)
    answer(point=point, image=image.hex(), digest=digest)
    """
    german = run(script, DG_JIT_CACHE_DIR=tmp_path / "de", LOCPATH=comma_locale, LC_ALL="de_DE.UTF-8").answer
    plain = run(script, DG_JIT_CACHE_DIR=tmp_path / "c", LC_ALL="C").answer
    assert (german.pop("point"), plain.pop("point")) == (",", ".")
    assert german == plain


def test_current_folder_is_gone(tmp_path):
    """A relative cache folder cannot be resolved then: kernels stay in memory."""
    script = """
    os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
    answer(size=len(_C.jit_build(ENTRY, kernel(), 9, 0)[0]), **_C.jit_report())
    """
    done = run(script, cwd=tmp_path, DG_JIT_CACHE_DIR="cache")
    assert done.answer["size"] > 0 and done.answer["published"] == 0 and "in memory only" in done.err


def test_closed_standard_error(tmp_path):
    script = "os.close(2)\n_C.jit_build(ENTRY, kernel(), 9, 0)\nanswer(**_C.jit_report())"
    assert run(script, DG_JIT_CACHE_DIR="/proc", DG_JIT_DEBUG=1).answer["compiled"] == 1
