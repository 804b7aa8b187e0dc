"""Settings that are read again while a command runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.config import Config, load
from mam_core.errors import ConfigError
from mam_core.operations.settings import Settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mam.toml"
    path.write_text("[groups.agents]\nslots = 2\n")
    return path


def test_what_changed_is_taken_over_by_all_who_hold_them(file: Path) -> None:
    config = load()
    assert config.groups["agents"].slots == 2
    settings = Settings(config)
    assert not settings.look(at_once=True).words()
    file.write_text('[groups.agents]\nslots = 5\n[templates.fix]\nagent = "codex"\n')
    assert settings.look(at_once=True).changed == ("groups.agents.slots", "templates.fix.agent")
    assert config.groups["agents"].slots == 5
    assert config.slots() == {"agents": 5}
    assert config.template("fix") == {"agent": "codex"}
    assert not settings.look(at_once=True).words()


def test_a_file_that_is_being_written_is_not_read(file: Path) -> None:
    """Two looks in a row have to find the same."""
    config = load()
    settings = Settings(config)
    settings.look(at_once=True)
    file.write_text("")
    assert not settings.look().words()
    file.write_text("[groups.agents]\nslots = 12\n")
    assert not settings.look().words()
    assert config.slots() == {"agents": 2}
    assert settings.look().changed == ("groups.agents.slots",)


@pytest.mark.parametrize(
    ("text", "words"), [("slots = ", "mam.toml, line 1"), ("[groups.a]\nslot = 3\n", "not known")]
)
def test_a_mistake_leaves_all_as_it_was_and_is_said_once(file: Path, text: str, words: str) -> None:
    config = load()
    settings = Settings(config)
    settings.look(at_once=True)
    file.write_text(text)
    told = settings.look(at_once=True).words()
    assert told.startswith("settings not reloaded: ")
    assert words in told
    assert "\n" not in told
    assert not settings.look().words()
    assert config.slots() == {"agents": 2}
    file.write_text("[groups.agents]\nslots = 3\n")
    assert settings.look(at_once=True).changed == ("groups.agents.slots",)


def test_a_file_that_is_gone_still_counts(file: Path) -> None:
    config = load()
    settings = Settings(config)
    settings.look(at_once=True)
    file.unlink()
    assert "was removed" in settings.look(at_once=True).words()
    assert config.slots() == {"agents": 2}


def test_a_file_that_is_made_later_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load()
    settings = Settings(config)
    settings.look(at_once=True)
    (tmp_path / "mam.toml").write_text("[groups.agents]\nslots = 1\n")
    assert settings.look(at_once=True).changed == ("groups.agents.slots",)
    assert config.slots() == {"agents": 1}


def test_where_records_and_events_are_counts_after_the_next_start(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQTT_PORT", "1999")
    config = load(flags={"store.url": "sqlite:x.db"})
    url = config.store.url
    settings = Settings(config)
    settings.look(at_once=True)
    file.write_text('[broker]\nhost = "there"\n[store]\nurl = "files"\n[notify]\nbell = false\n')
    look = settings.look(at_once=True)
    assert look.later == ("broker.host",)
    assert "takes effect after a restart: broker.host" in look.words()
    assert (config.broker.host, config.broker.port, config.store.url) == (None, 1999, url)
    assert not config.notify.bell


def test_what_only_the_caller_knows_to_be_wrong_is_not_taken_over(file: Path) -> None:
    def check(config: Config) -> None:
        if config.console.theme:
            raise ConfigError("there is no such theme")

    config = load()
    settings = Settings(config, check=check)
    settings.look(at_once=True)
    file.write_text('[console]\ntheme = "odd"\n')
    assert "no such theme" in settings.look(at_once=True).words()
    assert config.console.theme is None
