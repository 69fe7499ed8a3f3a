"""Checks the rules of the house that a machine can hold.

Usage: python scripts/check_house.py [--root DIR] [--rule NAME]...

Prints each violation as path:line: [rule] text; exit status 1 if there is any. A bar that truly costs speed may be
crossed where a comment above the line says why: `// house: crossed (rule): reason`. Crossings are counted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from house_rules.cxx_rules import CXX_RULES
from house_rules.python_rules import check_python
from house_rules.source import Source, Violation, read_tree
from house_rules.tree_rules import TREE_RULES


def check_file(source: Source) -> list[Violation]:
    """Violations inside one file."""
    if source.is_cxx:
        return [violation for rule in CXX_RULES for violation in rule(source)]
    return list(check_python(source)) if source.suffix == ".py" else []


def check_tree(root: Path) -> tuple[list[Violation], list[Violation]]:
    """Violations of a tree, and those that a comment at the place justifies."""
    sources = read_tree(root)
    found = [violation for source in sources for violation in check_file(source)]
    found += [violation for rule in TREE_RULES for violation in rule(sources)]
    by_path = {source.path: source for source in sources}
    crossed = [v for v in found if by_path[v.path].crossed(v.line, v.rule)]
    return sorted(set(found) - set(crossed)), sorted(set(crossed))


def main() -> int:
    """Command line; the number of violations decides the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--rule", action="append", help="only these rules")
    options = parser.parse_args()
    violations, crossed = check_tree(options.root.resolve())
    if options.rule:
        violations = [violation for violation in violations if violation.rule in options.rule]
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations, {len(crossed)} bars crossed with a reason")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
