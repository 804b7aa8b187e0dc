"""What the documents ask of events and can be read in the sources themselves."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sources(*places: str) -> list[Path]:
    return [path for place in places for path in sorted((ROOT / place).rglob("*.py"))]


def test_the_client_library_has_the_second_callback_api() -> None:
    """G10"""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert "paho-mqtt>=2.0.0" in needed


def test_no_place_of_somebodys_machine_is_written_down() -> None:
    """G11: homes and skill folders are looked up when the program runs."""
    places = re.compile(r"""["'](/ho[m]e/|/Us[e]rs/|/ro[o]t/|~/)|\.claude/skills""")
    for path in sources("core/mam_core/events", "core/mam_core/operations", "core/scripts"):
        assert not places.search(path.read_text()), path


def test_signatures_are_compared_in_constant_time() -> None:
    """K4"""
    text = (ROOT / "core/mam_core/events/signature.py").read_text()
    assert "return compare_digest(" in text
    assert not re.search(r"(wanted|given) *[!=]=", text)


def test_public_brokers_are_named_only_to_be_warned_of() -> None:
    """G26: no default and no benchmark ever goes there."""
    from mam_core.events.public_brokers import _PUBLIC

    public = re.compile("|".join(map(re.escape, _PUBLIC)))
    naming = {path.name for path in sources("core", "bench") if public.search(path.read_text())}
    assert naming == {"public_brokers.py"}
