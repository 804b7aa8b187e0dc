"""Names that nothing knows: accepted with a word about them, refused where nothing could follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mam_core.agents.profiles import BUILT_IN
from mam_core.operations.known_names import BUILT_IN_AGENTS
from mam_core.sessions import SessionFolder
from tests.cli.conftest import Mam, is_one_sentence
from tests.scripts.plain import REGISTRY, run
from tests.support.rows import every_row

GIVEN = ["--prompt", "count the stars", "--agent", "shell", "--label", "tmux:alpha"]


def changed(**names: str) -> list[str]:
    words = [*GIVEN]
    for name, value in names.items():
        if f"--{name}" in words:
            words[words.index(f"--{name}") + 1] = value
        else:
            words += [f"--{name}", value]
    return words


@pytest.fixture
def known(mam: Mam) -> Mam:
    """A registry with a job, a group in the settings and one that only a job names."""
    (mam.folder / "mam.toml").write_text(
        '[groups.nightly]\nslots = 2\n[agents.tester]\ncommand = ["true"]\n'
        '[templates.t]\nprompt = "p"\nagent_session = "tmux:templated"\n'
        "[hosts.bigblack]\ncores = 32\n"
    )
    mam.ok("register", *changed(group="builds"))
    return mam


def test_the_built_in_agents_are_those_of_the_profiles() -> None:
    assert set(BUILT_IN) == BUILT_IN_AGENTS


class TestRegister:
    def test_an_unknown_name_is_accepted_with_a_warning_and_a_suggestion(self, known: Mam) -> None:
        for names, said in (
            ({"group": "xyz"}, "unknown group 'xyz' (known: builds, nightly)"),
            ({"agent": "claude-cod"}, "unknown agent 'claude-cod'. Did you mean claude-code?"),
            ({"agent": "testr"}, "unknown agent 'testr'. Did you mean tester?"),
            ({"agent": "CLAUDE-CODE"}, "unknown agent 'CLAUDE-CODE'. Did you mean claude-code?"),
            ({"group": "BUILDS"}, "unknown group 'BUILDS'. Did you mean builds?"),
            ({"label": "tmux:ALPHA"}, "unknown label 'tmux:ALPHA'. Did you mean tmux:alpha?"),
            ({"group": "nigthly"}, "unknown group 'nigthly'. Did you mean nightly?"),
            ({"group": "bilds"}, "unknown group 'bilds'. Did you mean builds?"),
            ({"label": "tmux:alhpa"}, "unknown label 'tmux:alhpa'. Did you mean tmux:alpha?"),
        ):
            answer = known.ok("register", *changed(**names))
            warnings = [line for line in answer.err.splitlines() if "unknown" in line]
            assert warnings == [f"mam: warning: {said}"]
            record = known.record(answer.out.strip())
            (name,) = names
            assert record["agent_session" if name == "label" else name] == names[name]

    def test_what_somebody_knows_is_no_news(self, known: Mam) -> None:
        session = {
            **dict.fromkeys(("agent", "mode", "workdir", "settings_from", "created_at"), "x"),
            "name": "beta",
            "label": "tmux:beta",
            "created_by": "me",
            "node": "here",
        }
        folder = Path(SessionFolder(str(known.registry)).path)
        folder.mkdir(mode=0o700)
        (folder / "beta.json").write_text(json.dumps(session))
        for number, names in enumerate(
            (
                {"group": "nightly"},
                {"group": "builds"},
                {"agent": "tester"},
                {"agent": "claude-code"},
                {"label": "tmux:templated"},
                {"label": "tmux:beta"},
                {},
            )
        ):
            answer = known.ok("register", *changed(prompt=f"part {number}", **names))
            assert answer.err == "", names

    def test_a_mistake_in_the_settings_is_said_too(self, known: Mam) -> None:
        text = (known.folder / "mam.toml").read_text()
        said = "unknown agent 'shel'. Did you mean shell?"
        for table in ('[templates.u]\nagent = "shel"\n', '[defaults]\nagent = "shel"\n'):
            (known.folder / "mam.toml").write_text(f"{table}{text}")
            words = ["register", "--prompt", table, "--label", "tmux:alpha"]
            words += ["--template", "u"] if "templates.u" in table else []
            assert said in known.ok(*words).err
            line = json.dumps({"prompt": f"{table} 2", "agent_session": "tmux:alpha"})
            (known.folder / "jobs").write_text(line)
            words[1:5] = ["--bulk", "jobs"]
            assert said in known.ok(*words).err

    def test_the_first_job_of_a_registry_is_compared_with_nothing(self, mam: Mam) -> None:
        assert "unknown" not in mam.ok("register", *changed(group="builds")).err
        assert "unknown agent" in mam.ok("register", *changed(agent="claud-code")).err

    def test_a_job_that_was_there_already_is_not_warned_of(self, known: Mam) -> None:
        known.ok("register", *changed(key="k", group="new1"))
        answer = known.ok("register", *changed(key="k", group="new2"))
        assert "unknown" not in answer.err

    def test_a_file_of_jobs_names_each_once_and_not_without_end(self, known: Mam) -> None:
        jobs = [
            {"prompt": f"p{n}", "agent": "shell", "agent_session": "tmux:a", "group": f"new{n}"}
            for n in range(40)
        ]
        (known.folder / "jobs").write_text("".join(json.dumps(job) + "\n" for job in jobs))
        answer = known.ok("register", "--bulk", "jobs")
        assert len(answer.lines) == 40
        warnings = [line for line in answer.err.splitlines() if "unknown" in line]
        assert len([line for line in warnings if "unknown group 'new" in line]) == 5
        assert len([line for line in warnings if "35 more unknown groups" in line]) == 1
        assert not [line for line in warnings if "label" in line], "a new one, and near to none"
        assert "unknown" not in known.ok("register", "--bulk", "jobs").err, "they are in use now"

    def test_the_drop_in_script_is_silent_on_stdout(self, known: Mam) -> None:
        done = run(REGISTRY, "register", *changed(agent="claud-code"), cwd=known.folder)
        assert done.returncode == 0
        assert known.record(done.stdout.strip())["agent"] == "claud-code"
        assert "registry.py: warning: unknown agent 'claud-code'" in done.stderr

    def test_edit_says_the_same(self, known: Mam) -> None:
        job_id = known.register("p")
        answer = known.ok("edit", job_id, "--group", "bilds")
        assert "warning: unknown group 'bilds'. Did you mean builds?" in answer.err
        assert known.record(job_id)["group"] == "bilds"


def test_a_filter_that_finds_nothing_says_which_name_nothing_knows(known: Mam) -> None:
    table = (
        (["list", "--agent", "claude"], "unknown agent 'claude'. Did you mean claude-code?"),
        (["list", "--group", "build"], "unknown group 'build'. Did you mean builds?"),
        (["list", "--json", "--group", "build"], "unknown group 'build'. Did you mean builds?"),
        (["list", "--label", "alpha"], "unknown label 'alpha'. Did you mean tmux:alpha?"),
        (["audit", "--group", "build"], "unknown group 'build'. Did you mean builds?"),
        (["clean", "--group", "build"], "unknown group 'build'. Did you mean builds?"),
        (["group", "build", "--log"], "unknown group 'build'. Did you mean builds?"),
        (["pause", "--group", "build"], "unknown group 'build'. Did you mean builds?"),
        (["pause", "--agent", "shel"], "unknown agent 'shel'. Did you mean shell?"),
        (["pause", "--node", "bigblak"], "unknown host 'bigblak'. Did you mean bigblack?"),
    )
    with every_row() as rows:
        for words, said in table:
            with rows.row(words):
                assert f"mam: warning: {said}\n" in known.ok(*words).err
    for silent in (["list", "--group", "builds"], ["list", "--agent", "aider"]):
        assert known.ok(*silent).err == ""
    assert json.loads(known.ok("list", "--json", "--group", "builds").out)[0]["group"] == "builds"


def test_draining_a_host_that_nothing_knows_is_refused(known: Mam) -> None:
    """It would hold back nobody, and the host that was meant would go on claiming."""
    answer = known("node", "drain", "bigblak")
    assert answer.code == 1
    assert "unknown host 'bigblak'. Did you mean bigblack?" in answer.err
    assert is_one_sentence(answer.err)
    assert not (known.registry / ".gates").exists()
    known.ok("node", "drain", "bigblack")
    answer = known.ok("node", "resume", "bigblak")
    assert answer.err.endswith(
        "was not paused; still paused: node bigblack. Did you mean bigblack?\n"
    )
    known.ok("node", "resume", "bigblack")


def test_a_refusal_names_the_nearest(known: Mam) -> None:
    table = (
        (["register", "--template", "T1"], "templates: t"),
        (["work", "--label", "a", "--agents", "testr", "--once"], "Did you mean tester?"),
        (["group", "build"], "unknown group 'build'. Did you mean builds?"),
    )
    with every_row() as rows:
        for words, said in table:
            with rows.row(words):
                answer = known(*words)
                assert answer.code in (1, 2)
                assert said in answer.err
                assert is_one_sentence(answer.err)
