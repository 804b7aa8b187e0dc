"""Print the test files closest to what changed, as many as run within a minute.

`./test --fast` without arguments runs these. Close means, in this order: the test file changed
itself, its name shares a word with a changed module, it imports a changed module over as few steps
as possible. How long a file takes is known from earlier runs (see `tests/support/durations.py`).
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = ROOT / ".pytest_cache" / "v" / "mam" / "durations"

#: Seconds of tests that six processes on two cores run in three quarters of a minute.
BUDGET_SEC = 120.0
#: A test file that never ran here is taken for one of these.
UNKNOWN_SEC = {"unit": 0.5, "fuzz": 3.0, "cli": 6.0, "contract": 6.0, "console": 15.0}
UNKNOWN_ELSEWHERE_SEC = 20.0

#: What no test imports, by its first folder.
TESTED_BY = {"docs": "tests/docs", "README.md": "tests/docs", "screenshots": "tests/docs"}
TESTED_BY_ELSE = "tests/packaging"
IMPORTED = ("core", "tui", "tests", "bench")
#: Words that say nothing about what a module is about.
COMMON_WORDS = {"test", "init", "main", "base", "core", "conftest", "view", "screen", "job", "work"}

Graph = dict[str, set[str]]  # a module and those that import it; test files stand under their path


def main() -> int:
    changed, since = changed_files()
    if not changed:
        print("./test --fast: nothing has changed.", file=sys.stderr)
        return 0
    ranked = rank(changed)
    chosen = within_budget(ranked, changed)
    total = len(list(test_files()))
    print(
        f"./test --fast: {len(changed)} files changed {since};"
        f" the closest {len(chosen)} of {total} test files run, ./test runs all",
        file=sys.stderr,
    )
    print(*chosen, sep="\n")
    return 0


def changed_files() -> tuple[list[str], str]:
    """What is not committed yet; where all is committed, what the last commit changed."""
    new = git("ls-files", "--others", "--exclude-standard")
    if changed := sorted({*git("diff", "--name-only", "HEAD"), *new}):
        return changed, "since the last commit"
    return git("diff", "--name-only", "HEAD~1", "HEAD"), "by the last commit"


def git(*words: str) -> list[str]:
    try:
        answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError as missing:
        sys.exit(f"./test --fast: cannot run git ({missing.strerror}); name some tests.")
    if answer.returncode:
        problem = answer.stderr.strip()
        sys.exit(f"./test --fast: git cannot tell what changed ({problem}); name some tests.")
    return answer.stdout.splitlines()


def rank(changed: Iterable[str]) -> list[str]:
    """Test files, closest to the change first, without those that it cannot reach."""
    distance = {path: 0 for path in changed if is_test(path) and (ROOT / path).exists()}
    graph = importers()
    sources = [node for path in changed for node in nodes_of(path, graph)]
    for path in test_files():
        about = {word for part in Path(path).parts[2:] for word in words(Path(part).stem)}
        if any(about & words(source.rpartition(".")[2]) for source in sources):
            distance.setdefault(path, 1)
    reached, steps = set(sources), 2
    while reached:
        reached = {user for node in reached for user in graph.get(node, ())} - distance.keys()
        for user in reached:
            distance[user] = steps
        steps += 1
    for path in changed:
        if Path(path).parts[0] not in IMPORTED:
            folder = TESTED_BY.get(Path(path).parts[0], TESTED_BY_ELSE)
            distance |= {test: 1 for test in test_files() if test.startswith(folder)}
    return sorted(filter(is_test, distance), key=lambda path: (distance[path], path))


def within_budget(ranked: Iterable[str], changed: Iterable[str]) -> list[str]:
    try:
        known: dict[str, float] = json.loads(DURATIONS.read_text())
    except (OSError, ValueError):
        known = {}
    chosen, spent = [], 0.0
    for path in ranked:
        guess = UNKNOWN_SEC.get(Path(path).parts[1], UNKNOWN_ELSEWHERE_SEC)
        spent += (cost := known.get(path, guess))
        if spent > BUDGET_SEC and path not in changed:
            spent -= cost
            continue
        chosen.append(path)
    return chosen


def words(name: str) -> set[str]:
    """`test_work_limits` and `limits_probe` share `limit`."""
    return {word.rstrip("s") for word in name.split("_")} - COMMON_WORDS


@cache
def importers() -> Graph:
    graph: Graph = {}
    product = grimp.build_graph("mam_core", "mam_tui", cache_dir=None)
    for module in product.modules:
        graph[module] = set(product.find_modules_that_directly_import(module))
    for path in (ROOT / "tests").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for imported in imports(path):
            graph.setdefault(imported, set()).add(name if is_test(name) else dotted(name))
    for test in test_files():
        for folder in Path(test).parents:
            graph.setdefault(dotted(str(folder / "conftest.py")), set()).add(test)
    return graph


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def nodes_of(path: str, graph: Graph) -> list[str]:
    """The modules that a changed file stands for: itself, or the package it lies in as data."""
    module = dotted(path.removeprefix("core/").removeprefix("tui/"))
    if path.endswith(".py"):
        return [module.removesuffix(".__init__")]
    package = module.rpartition(".")[0]
    return [node for node in graph if node.rpartition(".")[0] == package]


def dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def test_files() -> Iterator[str]:
    return (str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py")))


if __name__ == "__main__":
    sys.exit(main())
