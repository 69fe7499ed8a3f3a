"""Rules for one C++ file: lengths, parameters, names, assembly, checks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .cxx import matching, split_top_level
from .source import Source, Violation

MAX_FILE_LINES = 400
MAX_KERNEL_FILE_LINES = 300
MAX_DEVICE_FUNCTION_LINES = 80
MAX_HOST_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_TEMPLATE_PARAMETERS = 4
PTX_REFERENCE_REACH = 16  # lines: a group of small wrappers shares one reference

_BANNED_INCLUDES = [
    ("streams", r"#\s*include\s*<(iostream|regex|locale|sstream|fstream|iomanip)>",
     "streams, locales and regular expressions crash where two C++ runtimes meet; use fmt and support/files.h"),
    ("cutlass", r"#\s*include\s*<(cutlass|cute)/", "device code is self-contained"),
    ("device trap", r"\btrap;", "device code never traps: the context would be lost"),
]
_BANNED_CODE = [
    ("streams", r"\bstd::(locale|regex|cout|cerr)\b", "crashes where two C++ runtimes meet"),
    ("check message", r"(?<!static_)\bassert\s*\(", "an assertion says nothing; use DG_CHECK with a message"),
    ("check message", r"\bthrow\s+(std::\w+|\w*Error)\s*\(\s*\)", "an error without a message"),
    ("device trap", r"\b__trap\s*\(", "device code never traps: the context would be lost"),
]


_FOREIGN = r"(cu|nvrtc)[A-Z]\w*"  # signatures that another project wrote: the driver's and the compiler's
_NOT_SNAKE_CASE = re.compile(_FOREIGN + r"|PYBIND11_MODULE|~?[A-Z][A-Za-z0-9]*")  # constructors are named as types


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def check_length(source: Source) -> Iterator[Violation]:
    """Files and functions stay short; generated files are not counted."""
    if source.is_generated:
        return
    kernel = source.path.startswith("include/deep_gemm/kernels/")
    limit = MAX_KERNEL_FILE_LINES if kernel else MAX_FILE_LINES
    if len(source.lines) > limit:
        yield source.violation(1, "file length", f"{len(source.lines)} lines, at most {limit}")
    most = MAX_DEVICE_FUNCTION_LINES if source.is_device else MAX_HOST_FUNCTION_LINES
    for function in source.functions:
        if function.length > most:
            yield source.violation(function.start, "function length",
                                   f"{function.name} has {function.length} lines, at most {most}")


def check_parameters(source: Source) -> Iterator[Violation]:
    """Few parameters, and no boolean whose meaning a caller cannot see."""
    seen_bools = set()
    for function in source.functions:
        where = function.start, "parameters"
        foreign = re.fullmatch(_FOREIGN, function.name)
        if len(function.parameters) > MAX_PARAMETERS and not source.is_device and not foreign:
            yield source.violation(*where, f"{function.name} takes {len(function.parameters)}, at most {MAX_PARAMETERS}")
        if len(function.template_parameters) > MAX_TEMPLATE_PARAMETERS:
            yield source.violation(*where, f"{function.name} has {len(function.template_parameters)} template parameters, "
                                           f"at most {MAX_TEMPLATE_PARAMETERS}")
        bools = [p for p in function.parameters if re.match(r"(const\s+)?bool\b(?!\s*[*&])", p)]
        bools = bools if len(function.parameters) > 1 else []  # a setter's only argument is named by the function
        bools += [p for p in function.template_parameters if re.match(r"bool\b", p)]
        if bools and function.name not in seen_bools:  # overloads count once
            seen_bools.add(function.name)
            yield source.violation(function.start, "positional bool", f"{function.name}: use an enum for '{bools[0]}'")


def check_banned(source: Source) -> Iterator[Violation]:
    """Constructs that have no place anywhere."""
    without_comments = re.sub(r"//[^\n]*", "", source.text)
    for patterns, text in ((_BANNED_INCLUDES, without_comments), (_BANNED_CODE, source.code)):
        for rule, pattern, why in patterns:
            for match in re.finditer(pattern, text):
                yield source.violation(_line_of(text, match.start()), rule, f"'{match.group(0).strip()}': {why}")


def check_assembly(source: Source) -> Iterator[Violation]:
    """Assembly stands under ptx/ only, each function with its reference above."""
    in_ptx = source.path.startswith("include/deep_gemm/ptx/")
    for match in re.finditer(r"\b(asm|__asm__)\b", source.code):
        if not in_ptx:
            yield source.violation(_line_of(source.code, match.start()), "assembly",
                                   "asm belongs under include/deep_gemm/ptx/")
    if not in_ptx or source.is_generated:
        return
    asm_lines = [_line_of(source.code, m.start()) for m in re.finditer(r"\basm\b", source.code)]
    for function in source.functions:
        uses = any(function.start <= line <= function.end for line in asm_lines)
        above = source.lines[max(0, function.start - 1 - PTX_REFERENCE_REACH) : function.start - 1]
        if uses and not any(line.startswith("//") for line in above):
            yield source.violation(function.start, "ptx reference",
                                   f"{function.name}: say above it the ISA section, PTX and SM version, what it orders")


def check_messages(source: Source) -> Iterator[Violation]:
    """DG_CHECK carries a literal text of more than a word, or one built from further arguments."""
    for match in re.finditer(r"\bDG_CHECK\s*\(", source.code):
        end = matching(source.code, match.end() - 1, "(", ")")
        arguments = split_top_level(source.code[match.end() : end])
        literal = len(arguments) > 1 and arguments[1].startswith('"')
        if not literal or (len(arguments[1]) < 12 and len(arguments) < 3):
            yield source.violation(_line_of(source.code, match.start()), "check message",
                                   "say which argument, what was expected, what came, what to do")


def check_names(source: Source) -> Iterator[Violation]:
    """PascalCase types, snake_case functions, kPascal constants, DG_ macros, no get_ queries, snake_case files."""
    stem = source.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    if not re.fullmatch(r"[a-z0-9_]+", stem):
        yield source.violation(1, "names", f"file '{stem}': use snake_case")
    for match in re.finditer(r"\b(?:struct|class|enum class|enum|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?[:{]",
                             source.code):
        if not re.fullmatch(r"[A-Z]\w*", match.group(1)) or "_" in match.group(1):
            yield source.violation(_line_of(source.code, match.start()), "names", f"type {match.group(1)}: use PascalCase")
    for match in re.finditer(r"^(?:static |inline )*constexpr [\w:<>,* ]+?[ *&](\w+)(?:\[\w*\])*\s*[={]", source.code, re.M):
        if not re.fullmatch(r"k[A-Z0-9]\w*", match.group(1)):
            yield source.violation(_line_of(source.code, match.start()), "names",
                                   f"constant {match.group(1)}: use kPascal")
    for match in re.finditer(r"^[ \t]*#\s*define\s+(\w+)", source.text, re.M):
        if not match.group(1).startswith("DG_"):
            yield source.violation(_line_of(source.text, match.start()), "names", f"macro {match.group(1)}: prefix DG_")
    for function in source.functions:
        name = function.name.split("::")[-1]
        if name.startswith("get_"):
            yield source.violation(function.start, "names", f"{name}: queries go without get_")
        if not re.fullmatch(r"[a-z0-9_]+", name) and not _NOT_SNAKE_CASE.fullmatch(name):
            yield source.violation(function.start, "names", f"function {name}: use snake_case")


def check_header(source: Source) -> Iterator[Violation]:
    """Headers open with a comment, are included once, and open no namespace for others."""
    if not source.is_header:
        return
    if not source.lines or not source.lines[0].startswith("//"):
        yield source.violation(1, "header", "say in the first line what this header is for")
    if "#pragma once" not in source.text:
        yield source.violation(1, "header", "#pragma once is missing")
    for match in re.finditer(r"^using namespace\b", source.code, re.M):
        yield source.violation(_line_of(source.code, match.start()), "header", "a header opens no namespace for others")


CXX_RULES = (check_length, check_parameters, check_banned, check_assembly, check_messages, check_names, check_header)
