"""Rules across files: layers, include circles, duplicates, macros, architecture tests, words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .source import Source, Violation

HOST_RANKS = {"support": 0, "problem": 1, "contract": 2, "plan": 2, "jit": 2, "launch": 2, "reference": 2, "ops": 3,
              "bindings": 4}
DEVICE_RANKS = {"base": 0, "ptx": 1, "tile": 2, "schedule": 3, "epilogue": 3, "kernels": 4}
DEVICE_STANDARD_HEADERS = {"cstdint"}  # in the branch that only the host compiler reads
MAX_MACROS = 5
MAX_ARCH_TESTS = 5
DUPLICATE_LINES = 12

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
_ARCH_TEST = re.compile(r"__CUDA_ARCH__|\b(arch_)?major\s*(==|!=|<=|>=|<(?!<)|>(?!>))\s*\d")
_FOREIGN = re.compile(r"\btorch\b|\b[Pp]ython\b|pybind|\bPy[A-Z][A-Za-z]*_\w+")
# Written so that this file does not match itself.
_WORDS = [
    (re.compile(r"/wor[k]/|/roo[t]/"), "a path of one machine"),
    (re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"), "an unfinished mark; finish it or write an issue"),
    (re.compile(r"\bpyp[i]\b|pythonhoste[d]|anacond[a]\.org", re.IGNORECASE), "a registry host"),
    (re.compile(r"\b(A[I]|codin[g]) (agen[t]|assistan[t])|\bworkplac[e]\b", re.IGNORECASE), "not about the project"),
]


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _includes(source: Source) -> Iterator[tuple[int, str, str]]:
    for match in _INCLUDE.finditer(source.text):
        yield _line_of(source.text, match.start()), match.group(1), match.group(2)


def _check_host_include(source: Source, line: int, target: str) -> Iterator[Violation]:
    station, other = source.path.split("/")[1], target.split("/")[0]
    if station not in HOST_RANKS or "/" not in source.path[5:]:
        yield source.violation(1, "layers", f"csrc/{station} is not a station; known: {', '.join(HOST_RANKS)}")
    elif other not in HOST_RANKS:
        yield source.violation(line, "layers", f'"{target}": write includes from csrc/, as "station/file.h"')
    elif HOST_RANKS[other] > HOST_RANKS[station]:
        yield source.violation(line, "layers", f'"{target}" points up from {station} to {other}')
    elif HOST_RANKS[other] == HOST_RANKS[station] and other != station:
        yield source.violation(line, "layers", f"{station} and {other} do not know each other")


def _check_device_include(source: Source, line: int, quote: str, target: str) -> Iterator[Violation]:
    if quote == '"' or (not target.startswith("deep_gemm/") and target not in DEVICE_STANDARD_HEADERS):
        yield source.violation(line, "layers", f"device headers include <deep_gemm/...> only, not {target}")
        return
    parts, own = target.split("/"), source.path.split("/")
    if len(parts) > 2 and DEVICE_RANKS.get(parts[1], 0) > DEVICE_RANKS.get(own[2], 9):
        yield source.violation(line, "layers", f"<{target}> points up from {own[2]} to {parts[1]}")


def check_layers(sources: list[Source]) -> Iterator[Violation]:
    """No include points up, and stations of one rank do not know each other."""
    for source in sources:
        for line, quote, target in _includes(source):
            if source.path.startswith("csrc/") and quote == '"':
                yield from _check_host_include(source, line, target)
            elif source.path.startswith("include/"):
                yield from _check_device_include(source, line, quote, target)


def check_circles(sources: list[Source]) -> Iterator[Violation]:
    """No file includes itself by a detour."""
    by_path = {source.path: source for source in sources if source.is_cxx}
    edges = {path: [] for path in by_path}
    for path, source in by_path.items():
        for line, quote, target in _includes(source):
            resolved = ("csrc/" if quote == '"' else "include/") + target
            if resolved in by_path:
                edges[path].append((resolved, line))
    state: dict[str, int] = {}

    def visit(path: str) -> Iterator[Violation]:
        state[path] = 1
        for target, line in edges[path]:
            if state.get(target) == 1:
                yield by_path[path].violation(line, "circle", f"{target} includes this file again")
            elif target not in state:
                yield from visit(target)
        state[path] = 2

    for path in edges:
        if path not in state:
            yield from visit(path)


def check_foreign(sources: list[Source]) -> Iterator[Violation]:
    """Only bindings/ knows the frontend; a comment elsewhere may say so."""
    for source in sources:
        if not source.path.startswith("csrc/") or source.path.startswith("csrc/bindings/"):
            continue
        text = re.sub(r"(?m)^\s*//[^\n]*|\s//[^\n]*", lambda m: "\n" * m.group(0).count("\n"), source.text)
        for match in _FOREIGN.finditer(text):
            yield source.violation(_line_of(text, match.start()), "frontend",
                                   f"'{match.group(0)}' belongs in csrc/bindings/")


def check_counts(sources: list[Source]) -> Iterator[Violation]:
    """Few kinds of macros, few tests for an architecture outside the tables."""
    macros, tests = {}, []
    for source in sources:
        if not source.path.startswith(("csrc/", "include/")):
            continue
        for match in re.finditer(r"^[ \t]*#\s*define\s+(DG_\w+)", source.text, re.MULTILINE):
            macros.setdefault(match.group(1), (source, _line_of(source.text, match.start())))
        if "table" not in source.path.rsplit("/", 1)[-1]:
            tests += [(source, _line_of(source.text, m.start())) for m in _ARCH_TEST.finditer(source.text)]
    for name, (source, line) in list(macros.items())[MAX_MACROS:]:
        yield source.violation(line, "macros", f"{name} is one too many: at most {MAX_MACROS}, there are {len(macros)}")
    for source, line in tests[MAX_ARCH_TESTS:]:
        yield source.violation(line, "arch tests", f"{len(tests)} outside *table* files, at most {MAX_ARCH_TESTS}")


def check_words(sources: list[Source]) -> Iterator[Violation]:
    """Words that do not belong in the project."""
    for source in sources:
        for pattern, why in _WORDS:
            for match in pattern.finditer(source.text):
                yield source.violation(_line_of(source.text, match.start()), "words", f"'{match.group(0)}': {why}")


def _significant(source: Source) -> list[tuple[int, str]]:
    """Lines that say something: not blank, not a lone bracket, not a comment or an include."""
    kept = []
    for number, line in enumerate(source.lines, 1):
        text = re.sub(r"\s+", "", line)
        if len(text) > 2 and not text.startswith(("//", "#", "import", "from", "}//")):
            kept.append((number, text))
    return kept


def check_duplicates(sources: list[Source]) -> Iterator[Violation]:
    """No run of a dozen lines stands in two places."""
    seen: dict[tuple[str, ...], tuple[Source, int]] = {}
    for source in sources:
        if source.is_generated or not (source.is_cxx or source.suffix == ".py"):
            continue
        lines = _significant(source)
        reported_until = 0
        for i in range(len(lines) - DUPLICATE_LINES + 1):
            window = tuple(text for _, text in lines[i : i + DUPLICATE_LINES])
            first = seen.setdefault(window, (source, lines[i][0]))
            if first != (source, lines[i][0]) and i >= reported_until:
                reported_until = i + DUPLICATE_LINES
                yield source.violation(lines[i][0], "duplicate", f"the same lines stand at {first[0].path}:{first[1]}")


TREE_RULES = (check_layers, check_circles, check_foreign, check_counts, check_words, check_duplicates)
