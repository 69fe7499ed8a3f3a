"""Every rule of the house finds a planted violation, and leaves good code alone."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

GOOD = {
    "csrc/support/error.h": '// Errors.\n#pragma once\n\n#include <string>\n\nnamespace deep_gemm {\nvoid fail(std::string why);\n}\n',
    "csrc/plan/size.h": (
        '// Sizes.\n#pragma once\n\n#include "support/error.h"\n\nnamespace deep_gemm {\n'
        "inline constexpr int kWidth = 8;\nenum class Mode { kFast, kExact };\n"
        "struct Size {\n    int rows = 0;\n    bool empty() const { return rows == 0; }\n"
        "    bool operator==(const Size&) const = default;\n};\nvoid set_fast(bool on);\n}\n"
    ),
    "csrc/plan/size.cc": (
        '#include "plan/size.h"\n\nnamespace deep_gemm {\n// asm, torch and Python are words here: "asm(" too.\n'
        'int area(const Size& a) {\n    DG_CHECK(a.rows > 0, "rows: expected a positive number, got {}", a.rows);\n'
        '    const char* text = "assert(this is text)";\n    return a.rows * kWidth;\n}\n}\n'
    ),
    "include/deep_gemm/ptx/fence.cuh": (
        "// Fences.\n#pragma once\n\n// PTX ISA: fence. PTX 8.0, SM 90. Orders nothing else.\n"
        'DG_DEVICE void fence() { asm volatile("fence.proxy.async;" ::: "memory"); }\n'
    ),
    "deep_gemm/thing.py": '"""A module of the package."""\n\n\ndef thing(a):\n    """Returns its argument unchanged, any dtype."""\n    return a\n',
}


def lines(count):
    """So many different statements."""
    return "".join(f"    x += {i} * x;\n" for i in range(count))


def variables(count, end=";"):
    """So many different declarations, C++ or Python."""
    return "".join(f"int x{i}{end}\n" if end else f"x{i} = {i}\n" for i in range(count))


def function(count, name="f"):
    """A C++ function of so many lines in all."""
    return f"int {name}(int x) {{\n{lines(count - 2)}}}\n"


# rule, file, content
PLANTED = [
    ("file length", "csrc/plan/a.cc", variables(401)),
    ("file length", "include/deep_gemm/kernels/k/a.cuh", "// A.\n#pragma once\n" + variables(300)),
    ("file length", "tests/a.py", variables(401, "")),
    ("function length", "csrc/plan/a.cc", function(61)),
    ("function length", "csrc/plan/a.cc", "struct A {\n    A() : a_{1}, b_(2) {\n" + lines(60) + "    }\n    int a_, b_;\n};\n"),
    ("function length", "include/deep_gemm/tile/a.cuh", "// A.\n#pragma once\n" + function(81)),
    ("function length", "scripts/a.py", "def f():\n    x = 0\n" + "".join(f"    x += {i}\n" for i in range(60))),
    ("parameters", "csrc/plan/a.cc", "int f(int a, int b, int c, int d, int e, int g, int h);\n"),
    ("parameters", "csrc/plan/a.cc", "template <int A, int B, int C, int D, int E>\nint f(int a) { return a; }\n"),
    ("positional bool", "csrc/plan/a.cc", "int f(int a, bool fast);\n"),
    ("positional bool", "csrc/plan/a.cc", "template <bool kFast>\nint f(int a) { return a; }\n"),
    ("streams", "csrc/plan/a.cc", "#include <iostream>\n"),
    ("streams", "csrc/plan/a.cc", "#include <regex>\n"),
    ("streams", "csrc/plan/a.cc", "int f() { std::locale l; }\n"),
    ("cutlass", "csrc/plan/a.cc", "#include <cutlass/cutlass.h>\n"),
    ("check message", "csrc/plan/a.cc", "void f(int a) { assert(a > 0); }\n"),
    ("check message", "csrc/plan/a.cc", 'void f(int a) { assert(false && "no"); }\n'),
    ("check message", "csrc/plan/a.cc", "void f(int a) { throw std::runtime_error(); }\n"),
    ("check message", "csrc/plan/a.cc", 'void f(int a) { DG_CHECK(a < 3 && a > 1, "bad"); }\n'),
    ("check message", "csrc/plan/a.cc", "void f(int a) { DG_CHECK(max(a, 3) > 1); }\n"),
    ("device trap", "include/deep_gemm/tile/a.cuh", "// A.\n#pragma once\nDG_DEVICE void f() { __trap(); }\n"),
    ("assembly", "include/deep_gemm/tile/a.cuh", '// A.\n#pragma once\nDG_DEVICE void f() { asm("nop;"); }\n'),
    ("ptx reference", "include/deep_gemm/ptx/a.cuh",
     "// A.\n#pragma once\n" + "\n" * 20 + 'DG_DEVICE void f() { asm volatile("nop;"); }\n'),
    ("names", "csrc/plan/BadName.cc", "int x;\n"),
    ("names", "csrc/plan/a.cc", "struct bad_type {\n    int x;\n};\n"),
    ("names", "csrc/plan/a.cc", "constexpr int MAX_SIZE = 3;\n"),
    ("names", "csrc/plan/a.cc", "#define MY_MACRO 1\n"),
    ("names", "csrc/plan/a.cc", "int get_size(int a) { return a; }\n"),
    ("names", "csrc/plan/a.cc", "int readSize(int a) { return a; }\n"),
    ("header", "csrc/plan/a.h", "// A.\nint x;\n"),
    ("header", "csrc/plan/a.h", "#pragma once\n"),
    ("header", "csrc/plan/a.h", "// A.\n#pragma once\nusing namespace std;\n"),
    ("layers", "csrc/plan/a.cc", '#include "ops/fp8_gemm.h"\n'),
    ("layers", "csrc/plan/a.cc", '#include "jit/jit.h"\n'),
    ("layers", "csrc/support/a.cc", '#include "plan/size.h"\n'),
    ("layers", "csrc/plan/a.cc", '#include "size.h"\n'),
    ("layers", "csrc/misc/a.cc", '#include "support/error.h"\n'),
    ("layers", "include/deep_gemm/ptx/a.cuh", "// A.\n#pragma once\n#include <deep_gemm/tile/pipeline.cuh>\n"),
    ("layers", "include/deep_gemm/tile/a.cuh", "// A.\n#pragma once\n#include <vector>\n"),
    ("layers", "include/deep_gemm/tile/a.cuh", '// A.\n#pragma once\n#include "support/error.h"\n'),
    ("circle", "csrc/support/error.h", '// E.\n#pragma once\n#include "support/error.h"\n'),
    ("frontend", "csrc/plan/a.cc", "#include <pybind11/pybind11.h>\n"),
    ("frontend", "csrc/plan/a.cc", 'const char* f() { return "torch.float32"; }\n'),
    ("macros", "include/deep_gemm/base/a.h", "// A.\n#pragma once\n" + "".join(f"#define DG_{i}\n" for i in "ABCDEF")),
    ("arch tests", "csrc/plan/a.cc", "int f(int major) {\n" + "    if (major >= 9) return 1;\n" * 6 + "}\n"),
    ("words", "docs/a.md", "See /wor" + "k/x for it.\n"),
    ("words", "csrc/plan/a.cc", "// TOD" + "O: later\n"),
    ("words", "README.md", "From pyp" + "i.\n"),
    ("duplicate", "csrc/plan/a.cc", function(20) + function(20, "g")),
    ("duplicate", "scripts/b.py", variables(14, "") * 2),
    ("docstring", "deep_gemm/a.py", "x = 1\n"),
    ("docstring", "deep_gemm/a.py", '"""A module of the package."""\n\n\ndef f(a):\n    return a\n'),
    ("docstring", "deep_gemm/a.py", '"""A module of the package."""\n\n\nclass A:\n    """A thing of the package."""\n\n    def f(self):\n        return 1\n'),
    ("syntax", "deep_gemm/a.py", "def f(:\n"),
]  # fmt: skip


@pytest.fixture(scope="module")
def check_house():
    """The checker as a module."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        spec = importlib.util.spec_from_file_location("check_house", SCRIPTS / "check_house.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(SCRIPTS))


def plant(root, files):
    """Writes files under a root."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def test_good_code_passes(check_house, tmp_path):
    plant(tmp_path, GOOD)
    assert check_house.check_tree(tmp_path) == ([], [])


@pytest.mark.parametrize("rule, path, content", PLANTED, ids=[f"{i}-{row[0]}" for i, row in enumerate(PLANTED)])
def test_a_planted_violation_is_found(check_house, tmp_path, rule, path, content):
    plant(tmp_path, {**GOOD, path: content})
    violations, _ = check_house.check_tree(tmp_path)
    assert {violation.rule for violation in violations} == {rule}, [str(violation) for violation in violations]
    assert {violation.path for violation in violations} == {path}


def test_limits_are_met_exactly(check_house, tmp_path):
    plant(tmp_path, {**GOOD, "csrc/plan/a.cc": function(60), "csrc/plan/b.cc": variables(400)})
    assert check_house.check_tree(tmp_path)[0] == []


def test_a_bar_crossed_with_a_reason_is_counted(check_house, tmp_path):
    reason = "// house: crossed (function length): one switch, 4 % faster\n"
    plant(tmp_path, {**GOOD, "csrc/plan/a.cc": reason + function(61)})
    violations, crossed = check_house.check_tree(tmp_path)
    assert violations == [] and [v.rule for v in crossed] == ["function length"]
    plant(tmp_path, {"csrc/plan/a.cc": reason.replace("function length", "names") + function(61)})
    assert [v.rule for v in check_house.check_tree(tmp_path)[0]] == ["function length"]


def test_generated_files_are_not_measured(check_house, tmp_path):
    head = "// Shapes. Generated by scripts/generate_wgmma.py.\n#pragma once\n"
    plant(tmp_path, {**GOOD, "include/deep_gemm/ptx/shapes.cuh": head + variables(500)})
    assert check_house.check_tree(tmp_path)[0] == []


def test_exit_status_and_place(tmp_path):
    plant(tmp_path, {**GOOD, "csrc/plan/a.cc": "int x;\n\nint get_size(int a) { return a; }\n"})
    command = [sys.executable, str(SCRIPTS / "check_house.py"), "--root", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 1 and "csrc/plan/a.cc:3: [names] get_size" in ran.stdout
    (tmp_path / "csrc/plan/a.cc").unlink()
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
