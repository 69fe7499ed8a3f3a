"""What the digest covers, and what it must not see."""

import hashlib
import shutil

import pytest
from jit_support import ENTRY, ROOT, build, kernel, load_extension, run

_C = load_extension()


@pytest.fixture
def headers(tmp_path):
    """A copy of the device headers under another path, in force for the test."""
    root = tmp_path / "elsewhere" / "include"
    shutil.copytree(ROOT / "include", root)
    _C.set_include_root(str(root))
    yield root
    _C.set_include_root(str(ROOT / "include"))


def digest(text=None, entry=ENTRY, major=9, minor=0, kind="cubin"):
    return _C.jit_digest(entry, kernel() if text is None else text, major, minor, kind)


def test_is_64_hex_digits():
    assert len(digest()) == 64 and int(digest(), 16) >= 0


def test_same_from_another_include_root(tmp_path):
    here = digest()
    shutil.copytree(ROOT / "include", tmp_path / "x")
    _C.set_include_root(str(tmp_path / "x"))
    try:
        assert digest() == here
    finally:
        _C.set_include_root(str(ROOT / "include"))


def test_same_in_another_process_folder_and_cache(tmp_path):
    (tmp_path / "a").mkdir()
    script = "answer(digest=_C.jit_digest(ENTRY, kernel(), 9, 0))"
    done = run(script, cwd=tmp_path / "a", DG_JIT_CACHE_DIR=tmp_path / "b", HOME=tmp_path)
    assert done.answer["digest"] == digest()


def test_changes_with_text_entry_target_and_kind():
    variants = [digest(), digest(kernel(2)), digest(entry="other"), digest(kind="ptx")]
    if _C.jit_report()["nvrtc_version"] >= (12, 8):  # else it has one target only
        variants += [digest(major=10), digest(major=10, kind="ptx")]
    assert len(set(variants)) == len(variants)


def test_changes_with_a_direct_and_an_indirect_header(headers):
    seen = {digest()}
    for name in ("deep_gemm/base/math.h", "deep_gemm/base/types.h"):  # math.h includes types.h
        with open(headers / name, "a") as f:
            f.write("// changed\n")
        _C.set_include_root(str(headers))
        seen.add(digest())
    assert len(seen) == 3


def test_ignores_headers_outside_the_closure(headers):
    before = digest()
    (headers / "deep_gemm" / "unused.h").write_text("#pragma once\n")
    _C.set_include_root(str(headers))
    assert digest() == before


def test_a_renamed_header_changes_it(headers):
    (headers / "deep_gemm/base/maths.h").write_bytes((headers / "deep_gemm/base/math.h").read_bytes())
    assert digest(kernel().replace("math.h", "maths.h")) != digest()


def test_headers_are_read_once_until_the_root_is_set_again(headers):
    before = digest()
    with open(headers / "deep_gemm/base/math.h", "a") as f:
        f.write("// changed\n")
    assert digest() == before
    _C.set_include_root(str(headers))
    assert digest() != before


def test_changes_with_line_information_but_not_with_reports(tmp_path):
    script = "answer(digest=_C.jit_digest(ENTRY, kernel(), 9, 0))"
    plain = run(script).answer["digest"]
    assert run(script, DG_JIT_WITH_LINEINFO=1).answer["digest"] != plain
    assert run(script, DG_JIT_FOR_RACECHECK=1).answer["digest"] != plain
    for name in ("DG_JIT_DEBUG", "DG_JIT_PTXAS_VERBOSE", "DG_JIT_PTXAS_CHECK", "DG_JIT_DUMP_ASM"):
        assert run(script, **{name: 1}).answer["digest"] == plain


@pytest.mark.parametrize(
    "line",
    [
        '#include "leak.h"',
        "#include </tmp/leak.h>",
        "#include <deep_gemm/../leak.h>",
        "  #  include LEAK",
        '#include "deep_gemm/base/math.h"',
    ],
)
def test_refuses_includes_that_could_leave_the_closure(line):
    with pytest.raises(RuntimeError, match="<deep_gemm/...> only"):
        digest(line + "\n" + kernel())


def test_does_not_see_headers_of_the_current_folder(tmp_path):
    (tmp_path / "leak.h").write_text("#error leaked\n")
    script = """
    try: _C.jit_build(ENTRY, "#include <leak.h>\\n" + kernel(), 9, 0)
    except RuntimeError as error: refusal = str(error)
    asks = '#if __has_include("leak.h")\\n#error leaked\\n#endif\\n' + kernel()
    answer(refusal=refusal, size=len(_C.jit_build(ENTRY, asks, 9, 0)[0]))
    """
    answer = run(script, cwd=tmp_path, DG_JIT_CACHE_DIR=tmp_path / "cache").answer
    assert 'could not open source file "leak.h"' in answer["refusal"] and answer["size"] > 0


def test_a_missing_header_is_named(headers):
    with pytest.raises(RuntimeError, match="none.h>, included by the kernel source, is missing under"):
        digest("#include <deep_gemm/none.h>\n")


def test_includes_after_blanks_and_without_final_newline(headers):
    (headers / "deep_gemm/a.h").write_text("\t# include\t<deep_gemm/b.h>")
    (headers / "deep_gemm/b.h").write_text("#pragma once\n#include <deep_gemm/a.h>\n")  # a circle ends
    before = digest("#include <deep_gemm/a.h>")
    (headers / "deep_gemm/b.h").write_text("#pragma once\n#include <deep_gemm/a.h>\nint x;\n")
    _C.set_include_root(str(headers))
    assert digest("#include <deep_gemm/a.h>") != before


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 100_000])
def test_sha256(size):
    data = bytes(i * 7 % 256 for i in range(size))
    assert _C.sha256(data) == hashlib.sha256(data).hexdigest()


def test_the_entry_file_is_framed_by_a_real_sha256(tmp_path):
    done = build(DG_JIT_CACHE_DIR=tmp_path)
    entry = (tmp_path / (done.answer["digest"] + ".kernel")).read_bytes()
    assert hashlib.sha256(entry[:-32]).digest() == entry[-32:]
    assert entry[8:72].decode() == done.answer["digest"]
    assert bytes.fromhex(done.answer["image"]) in entry
