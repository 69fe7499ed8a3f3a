"""Rules for one Python file: lengths, docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .cxx_rules import MAX_FILE_LINES, MAX_HOST_FUNCTION_LINES
from .source import Source, Violation

MIN_DOCSTRING = 20  # characters: more than the name said again


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def check_length(source: Source, tree: ast.Module) -> Iterator[Violation]:
    """Python keeps the host's lengths; a docstring is not counted."""
    if source.is_generated:
        return
    if len(source.lines) > MAX_FILE_LINES:
        yield source.violation(1, "file length", f"{len(source.lines)} lines, at most {MAX_FILE_LINES}")
    for node in _functions(tree):
        length = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            length -= node.body[0].end_lineno - node.body[0].lineno + 1
        if length > MAX_HOST_FUNCTION_LINES:
            yield source.violation(node.lineno, "function length",
                                   f"{node.name} has {length} lines, at most {MAX_HOST_FUNCTION_LINES}")


def check_docstrings(source: Source, tree: ast.Module) -> Iterator[Violation]:
    """Every public module, class and function of the package says what it does."""
    if not source.path.startswith("deep_gemm/"):
        return
    if source.text.strip() and ast.get_docstring(tree) is None:
        yield source.violation(1, "docstring", "the module has none")
    scopes = [tree] + [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for scope in scopes:
        for node in scope.body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
                continue
            if any("overload" in ast.unparse(decorator) for decorator in node.decorator_list):
                continue
            if len(ast.get_docstring(node) or "") < MIN_DOCSTRING:
                yield source.violation(node.lineno, "docstring",
                                       f"{node.name}: say what it does, shapes, dtypes, layouts and errors")


def check_python(source: Source) -> Iterator[Violation]:
    """All rules for one Python file."""
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        yield source.violation(error.lineno or 1, "syntax", str(error.msg))
        return
    yield from check_length(source, tree)
    yield from check_docstrings(source, tree)
