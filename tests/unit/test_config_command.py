"""``mam config``: every value with its origin, and nothing that is secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mam_core.cli.main import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_prints_every_value_with_its_origin(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-5: one configuration, shown with where it comes from."""
    (here / "mam.toml").write_text("[defaults]\ntimeout_sec = 600\n[groups.g]\nslots = 2\n")
    monkeypatch.setenv("MQTT_PASSWORD", "hunter2")
    assert main(["config"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines()}
    assert rows["defaults.timeout_sec"] == ["600", f"{here}/mam.toml:2"]
    assert rows["groups.g.slots"] == ["2", f"{here}/mam.toml:4"]
    assert rows["broker.password"] == ['"[redacted]"', "environment MQTT_PASSWORD"]
    assert rows["defaults.lease_sec"] == ["30", "default"]
    assert rows["tmux.socket"] == ["default"]
    assert "hunter2" not in out + err


def test_prints_one_key_or_one_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--json", "broker.port"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["key"], row["value"], row["origin"]) == ("broker.port", 1883, "default")
    assert main(["config", "tmux", "--json"]) == 0
    assert [row["key"] for row in json.loads(capsys.readouterr().out)] == ["tmux.socket"]
    assert main(["config", "groups", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_an_unknown_key_is_one_line_on_stderr(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "broker.hots"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "mam: there is no setting 'broker.hots' (see `mam config`)\n"


def test_path_prints_the_files_in_force(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == ""
    (here / "mam.toml").write_text("")
    assert main(["config", "path"]) == 0
    assert capsys.readouterr() == (f"{here}/mam.toml\n", "")
    (here / "other.toml").write_text("")
    assert main(["--config", "other.toml", "config", "path", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [f"{here}/other.toml"]


def test_a_mistake_is_one_line_with_file_line_and_key(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mam.toml").write_text("[defaults]\n\nagnet = 'x'\n")
    assert main(["config"]) == 1
    said = f"{here}/mam.toml, line 3: defaults.agnet is not known; did you mean agent?"
    assert capsys.readouterr() == ("", f"mam: {said}\n")


def test_a_registry_named_by_flag_is_shown_as_such(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--registry-dir", "reg", "config", "store.registry_dir", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["value"], row["origin"]) == (f"{here}/reg", "flag")


def test_hostile_text_in_the_file_does_not_reach_the_terminal(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mam.toml").write_text('[keys]\n"x\\u001b[31m" = "\\u001b]0;title\\u0007"\n')
    assert main(["config", "keys"]) == 0
    assert main(["config", "keys", "--json"]) == 0
    (here / "mam.toml").write_text('"x\\u001b[31m" = 1\n')
    assert main(["config"]) == 1
    assert "\x1b" not in "".join(capsys.readouterr())
