"""A project's own ``*-job-safety`` folder: what it may say, what wins, and where it is seen."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mam_core.agents.profiles import profile_of, trouble_with
from mam_core.cli.main import main
from mam_core.config import Config, load
from mam_core.errors import ConfigError
from mam_core.operations.skill import skill as skill_text

RULES = """
[groups.dbps250]
memory = "8G"
[needs]
MY_APP_CH_HOSTS = "where ClickHouse is"
[audits.negative-rows]
command = ["./audit.sh"]
issue = "GH-84"
[hosts.bigblack]
cores = 32
memory = "61G"
groups = ["p1", "p2"]
[functions]
run_resumable_job = "myapp_populate_cache"
[issues]
GH-84 = "checkpoint race"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    return tmp_path


def extend(project: Path, text: str = RULES, home: str = ".claude/skills", name: str = "x") -> Path:
    folder = project / home / f"{name}-job-safety"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: x-job-safety\n---\n")
    (folder / "mam.toml").write_text(text)
    return folder / "mam.toml"


def read(project: Path, **environ: str) -> Config:
    return load(cwd=str(project), environ=environ)


@pytest.mark.parametrize("home", [".claude/skills", "mam.d"])
@pytest.mark.parametrize("where", [".", "deep"])
def test_it_adds_to_the_rules_of_the_project(project: Path, home: str, where: str) -> None:
    """N48"""
    path = extend(project, home=home)
    config = read(project / where)
    assert config.groups["dbps250"].memory == 8 * 2**30
    assert config.audits["negative-rows"].command == ("./audit.sh",)
    assert config.hosts["bigblack"].groups == ("p1", "p2")
    assert dict(config.needs) == {"MY_APP_CH_HOSTS": "where ClickHouse is"}
    assert config.files == (str(path),)
    assert config.folder_of("audits", "negative-rows", "command") == str(path.parent)


def test_other_folders_are_no_extension(project: Path) -> None:
    for name in ("job-safety-notes", "x-job-safety-old"):
        folder = project / ".claude" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "mam.toml").write_text("[broken")
    (project / ".claude" / "skills" / "y-job-safety").mkdir()
    assert read(project).files == ()


def test_the_project_has_the_last_word_key_by_key(project: Path) -> None:
    """N49: universal and local make the effective rules."""
    extend(project, name="b", text='[groups.g]\nmemory = "2G"\ncpu = 2\n[needs]\nB = "b"\n')
    extend(project, name="a", text='[groups.g]\nmemory = "1G"\n[needs]\nA = "a"\n')
    (project / "mam.toml").write_text('[groups.g]\nmemory = "4G"\n[needs]\nC = "c"\n')
    config = read(project)
    assert (config.groups["g"].memory, config.groups["g"].cpu) == (4 * 2**30, 2)
    assert set(config.needs) == {"A", "B", "C"}, "nobody's name takes another's away"


def test_it_stands_beside_the_settings_that_are_in_force(project: Path, tmp_path: Path) -> None:
    extend(project)
    (project / "mam.toml").write_text("")
    assert load(str(project / "mam.toml"), cwd="/", environ={}).needs
    assert load(None, cwd="/", environ={"MAM_CONFIG": str(project / "mam.toml")}).needs
    (project / "deep" / "mam.toml").write_text("")
    assert not read(project / "deep").needs, "another project"


@pytest.mark.parametrize(
    "table", ['[agents.x]\ncommand = ["x"]', '[store]\nurl = "files"', '[deploy]\npull = ["x"]']
)
def test_it_may_not_say_everything(project: Path, table: str) -> None:
    """It adds rules. Who runs jobs, where records are and what deploys is the operator's own."""
    path = extend(project, table + "\n")
    with pytest.raises(ConfigError, match="cannot be said here; what can: groups, templates") as e:
        read(project)
    assert e.value.message.startswith(f"{path}, line 1: ")


def test_a_strangers_folder_is_passed_over_and_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = extend(project)
    path.chmod(0o666)
    config = read(project)
    assert not config.needs
    assert "everybody may write" in config.notices[0]
    assert os.fspath(path) in config.notices[0]


def test_mam_config_shows_each_rule_with_its_origin(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """N49"""
    path = extend(project)
    monkeypatch.chdir(project)
    assert main(["config", "--json"]) == 0
    shown = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert shown["groups.dbps250.memory"]["origin"] == f"{path}:3"
    assert shown["needs.MY_APP_CH_HOSTS"]["origin"] == f"{path}:5"
    assert shown["audits.negative-rows.issue"]["value"] == "GH-84"
    assert shown["hosts.bigblack.cores"]["value"] == 32
    assert shown["functions.run_resumable_job"]["value"] == "myapp_populate_cache"
    assert shown["issues.GH-84"]["value"] == "checkpoint race"


@pytest.mark.parametrize("home", [".claude/skills", "mam.d"])
def test_a_skill_without_settings_is_named_wherever_rules_are_shown(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """It is for agents: a person who asks for the rules in force should know that it is there."""
    path = extend(project, home=home)
    skill = path.with_name("SKILL.md")
    monkeypatch.chdir(project / "deep")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project / "nobody"))
    for has_settings, words in (
        (True, "its mam.toml is in force"),
        (False, "no mam.toml beside it is in force"),
    ):
        if not has_settings:
            path.unlink()
        for command in ("config", "skill", "audit"):
            main([command])
            out, err = capsys.readouterr()
            told = out if command == "audit" else err
            assert told.count(f"{skill}: agents read it; {words}") == 1, command
    assert read(project).skills == (str(skill),)
    assert (read(project).files, read(project).notices) == ((), ()), "no noise elsewhere"
    skill.unlink()
    main(["config"])
    assert "safety skill" not in capsys.readouterr().err, "an empty folder is nothing"


def test_the_shipped_skill_speaks_of_both_layers() -> None:
    text = " ".join(skill_text().split())
    assert "There are two layers of rules" in text
    assert "*-job-safety" in text


def test_no_agent_is_started_without_the_variables(project: Path) -> None:
    """N29, N48: asked before anything costs something."""
    extend(project)
    profile = profile_of(read(project), "shell")
    lacking = trouble_with(profile, {"PATH": os.environ["PATH"]})
    assert lacking == "agent shell needs the variable MY_APP_CH_HOSTS: not set here"
    there = {"PATH": os.environ["PATH"], "MY_APP_CH_HOSTS": "a"}
    assert trouble_with(profile, there) == ""


@pytest.mark.parametrize("name", ['"two words"', '"1st"', '"a-b"'])
def test_a_variable_must_have_a_name(project: Path, name: str) -> None:
    extend(project, f'[needs]\n{name} = "x"\n')
    with pytest.raises(ConfigError, match="is no name of a variable"):
        read(project)
