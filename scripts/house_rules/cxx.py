"""Just enough of a C++ reader: blanks what is not code, finds functions with their parameters and lengths."""

from __future__ import annotations

import dataclasses
import re

_SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "static_assert", "alignas", "decltype", "requires",
                  "sizeof", "noexcept", "__launch_bounds__", "__attribute__", "__align__", "explicit", "defined"}


@dataclasses.dataclass(frozen=True)
class Function:
    """A function as read from text: lines are 1-based, `end` is 0 for a declaration."""

    name: str
    start: int
    end: int
    parameters: tuple[str, ...]
    template_parameters: tuple[str, ...]

    @property
    def length(self) -> int:
        return self.end - self.start + 1 if self.end else 0


def _blank(match: re.Match) -> str:
    text = match.group(0)
    quote = text[0] if text[0] in "\"'" else ""
    inner = re.sub(r"[^\n]", " ", text)
    return quote + inner[1:-1] + quote if quote else inner


def blank_text(text: str) -> str:
    """The text with comments, literal contents and preprocessor lines blanked; offsets and lines stay."""
    return _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), _SKIPPED.sub(_blank, text))


def split_top_level(text: str) -> list[str]:
    """Splits at commas that no bracket encloses; angle brackets count, comparisons and arrows do not."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "([{" or (char == "<" and i and (text[i - 1].isalnum() or text[i - 1] == "_")):
            depth += 1
        elif char in ")]}" or (char == ">" and depth and text[i - 1] not in "- "):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def matching(text: str, start: int, open_char: str, close_char: str) -> int:
    """Offset of the bracket that closes the one at `start`, or the end of the text."""
    depth = 0
    for match in re.compile("[" + re.escape(open_char + close_char) + "]").finditer(text, start):
        depth += 1 if match.group(0) == open_char else -1
        if depth == 0:
            return match.start()
    return len(text) - 1


def _template_prefix(head: str) -> tuple[str, tuple[str, ...]]:
    parameters: tuple[str, ...] = ()
    head = head.strip()
    while head.startswith("template"):
        start = head.find("<")
        if start < 0:
            break
        end = matching(head, start, "<", ">")
        parameters += tuple(split_top_level(head[start + 1 : end]))
        head = head[end + 1 :].strip()
    return head, parameters


def _signature(head: str) -> tuple[str, tuple[str, ...]] | None:
    """Name and parameters if the head of a statement declares a function."""
    head = re.sub(r"\boperator\s*(\(\)|[^\s\w(]+)", lambda m: "operator_" + "x" * (len(m.group(0)) - 9), head)
    if re.match(r"\s*(struct|class|union|enum|namespace|using|typedef|friend\s+class|concept)\b", head):
        return None
    position = 0
    while (start := head.find("(", position)) >= 0:
        end = matching(head, start, "(", ")")
        before = re.search(r"([~\w:]+)\s*(?:<[^<>]*>)?\s*$", head[:start])
        lambda_start = head[:start].rstrip().endswith("]")
        if lambda_start or (before and before.group(1).split("::")[-1] not in _NOT_FUNCTIONS):
            if re.search(r"(?<![=!<>])=(?!=)", head[:start]) and not lambda_start:
                return None
            name = "lambda" if lambda_start else before.group(1)
            inside = head[start + 1 : end].strip()
            return name, tuple(split_top_level(inside)) if inside not in ("", "void") else ()
        position = end + 1
    return None


def _is_member_initialiser(head: str) -> bool:
    """`Thing(int a) : a_` before a brace: the brace belongs to a member, not to the body."""
    return bool(re.search(r"\)\s*(noexcept\s*)?:(?!:).*[\w>]\s*$", head, re.DOTALL)) and not head.rstrip().endswith(")")


def functions_of(code: str) -> list[Function]:
    """Functions at namespace and class scope of blanked code, in order. Bodies are not looked into."""
    found: list[Function] = []
    head_start = 0
    position = 0
    pattern = re.compile(r"[;{}()]")
    while match := pattern.search(code, position):
        offset, char = match.start(), match.group(0)
        position = offset + 1
        if char == "(":
            position = matching(code, offset, "(", ")") + 1
            continue
        head, template = _template_prefix(re.sub(r"^(\s*(public|private|protected)\s*:)+", "", code[head_start:offset]))
        if char == "{":
            if _is_member_initialiser(head):
                position = matching(code, offset, "{", "}") + 1
                continue
            signature = _signature(head)
            if signature is None and re.search(r"[\w\]>=]\s*$", head) and not _opens_scope(head):
                position = matching(code, offset, "{", "}") + 1  # an initialiser: the statement goes on
                continue
            if signature is not None:
                position = matching(code, offset, "{", "}") + 1
                found.append(_function(code, head_start, position - 1, signature, template))
        elif char == ";" and (signature := _signature(head)) is not None:
            found.append(dataclasses.replace(_function(code, head_start, offset, signature, template), end=0))
        head_start = position
    return found


def _opens_scope(head: str) -> bool:
    return bool(re.match(r"\s*(inline\s+)?(struct|class|union|enum|namespace|extern)\b", head)) or not head.strip()


def _function(code: str, start: int, end: int, signature, template) -> Function:
    start += len(code[start:end]) - len(code[start:end].lstrip())
    label = re.match(r"(public|private|protected)\s*:\s*", code[start:end])
    start += label.end() if label else 0
    line_of = lambda offset: code.count("\n", 0, offset) + 1  # noqa: E731
    return Function(signature[0], line_of(start), line_of(end), signature[1], template)
