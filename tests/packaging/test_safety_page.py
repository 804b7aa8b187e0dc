"""docs/safety.md keeps its word: every rule is on it, and every test that it names is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "safety.md").read_text()
NAMED = sorted(set(re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", PAGE)))


def test_every_test_that_is_named_is_there() -> None:
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not re.search(rf"^\s*(?:async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []
    assert len(NAMED) > 50


def test_every_invariant_and_every_anti_pattern_is_a_row_with_a_test() -> None:
    rows = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}
    for rule in [f"INV-{n}" for n in range(1, 10)] + [f"AP-{n}" for n in range(1, 18)]:
        assert "::test_" in rows[rule], rule


def test_every_line_about_job_safety_is_spoken_of() -> None:
    """N1 to N41, N48 to N50, but for capacity, caps and the autoscaler."""
    wanted = {*range(1, 42), 48, 49, 50} - {6, 7, 8}
    said = {int(number) for number in re.findall(r"\bN(\d+)\b", PAGE)}
    assert wanted - said == set()


def test_versions_are_bounded_and_pinned() -> None:
    """N17"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in project["dependencies"]:
        assert re.match(r"[\w-]+(?:\[\w+\])?(?:>=|==|~=)\d", wanted), wanted
        name = re.split(r"[>=~\[]", wanted)[0]
        assert re.search(rf"^{name}==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert "--refresh" in PAGE
    assert "--refresh" in (ROOT / "README.md").read_text()
