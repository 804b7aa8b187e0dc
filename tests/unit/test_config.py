"""``mam.toml``: what is read, what wins, and how a mistake is named (decision 24, INV-5)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam_core import fields
from mam_core.config import VARIABLES, Config, load
from mam_core.config.schema import TABLES, Kind, setting_at
from mam_core.errors import ConfigError
from mam_core.records import DEFAULT_IDLE_TIMEOUT_SEC, DEFAULT_TIMEOUT_SEC, REDACTED
from mam_core.work.orders import GRACE_SEC
from tests.support.rows import each_row


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "deep" / "er").mkdir(parents=True)
    return folder


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The XDG folder of a person who has one."""
    folder = tmp_path / "xdg"
    (folder / "mam").mkdir(parents=True)
    return folder


def read(text: str, folder: Path, **environ: str) -> Config:
    folder.mkdir(exist_ok=True)
    (folder / "mam.toml").write_text(text)
    return load(cwd=str(folder), environ=environ)


def complaint(text: str, folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, folder)
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith(f"{folder / 'mam.toml'}")
    return caught.value.message.removeprefix(f"{folder / 'mam.toml'}, ")


class TestWhichFile:
    def test_without_any_everything_is_the_default(self, project: Path) -> None:
        config = load(cwd=str(project), environ={})
        assert config.files == ()
        assert config.defaults.timeout_sec == DEFAULT_TIMEOUT_SEC == 3600
        assert config.defaults.idle_timeout_sec == DEFAULT_IDLE_TIMEOUT_SEC == 120
        assert config.slots() == config.job_defaults() == {}
        assert config.registry_dir is None
        assert {entry.origin for entry in config.entries()} == {"default"}

    def test_the_nearest_one_upward_is_the_projects(self, project: Path) -> None:
        (project / "mam.toml").write_text("[groups.a]\nslots = 1\n")
        deep = project / "deep" / "er"
        assert load(cwd=str(deep), environ={}).slots() == {"a": 1}
        (project / "deep" / "mam.toml").write_text("[groups.b]\nslots = 2\n")
        assert load(cwd=str(deep), environ={}).slots() == {"b": 2}

    def test_the_project_wins_over_the_person_key_by_key(self, project: Path, person: Path) -> None:
        (person / "mam" / "mam.toml").write_text(
            "[defaults]\ntimeout_sec = 5\nagent = 'codex'\n"
            "[agents.x]\ncommand = ['x']\nmode = 'exec'\n"
        )
        (project / "mam.toml").write_text(
            "[defaults]\n# ours\ntimeout_sec = 7\n[agents.x]\nmode = 'stream'\n"
        )
        config = load(cwd=str(project), environ={"XDG_CONFIG_HOME": str(person)})
        assert config.defaults.timeout_sec == 7
        assert config.defaults.agent == "codex"
        assert config.agents["x"].command == ("x",)
        assert config.agents["x"].mode == "stream"
        assert config.origin(("defaults", "timeout_sec")) == f"{project}/mam.toml:3"
        assert config.origin(("defaults", "agent")) == f"{person}/mam/mam.toml:3"
        assert config.origin(("defaults", "group")) == "default"
        assert config.files == (f"{person}/mam/mam.toml", f"{project}/mam.toml")

    def test_without_xdg_the_persons_is_below_home(
        self, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "me"
        (home / ".config" / "mam").mkdir(parents=True)
        (home / ".config" / "mam" / "mam.toml").write_text("[groups.home]\nslots = 1\n")
        monkeypatch.setenv("HOME", str(home))
        for ignored in ({}, {"XDG_CONFIG_HOME": ""}, {"XDG_CONFIG_HOME": "relative"}):
            assert load(cwd=str(project), environ=ignored).slots() == {"home": 1}

    def test_a_named_one_is_the_only_one(self, project: Path, person: Path) -> None:
        (person / "mam" / "mam.toml").write_text("[groups.person]\nslots = 1\n")
        (project / "mam.toml").write_text("[groups.project]\nslots = 1\n")
        (project / "other.toml").write_text("[groups.other]\nslots = 1\n")
        environ = {"XDG_CONFIG_HOME": str(person), "MAM_CONFIG": "other.toml"}
        assert load(cwd=str(project), environ=environ).slots() == {"other": 1}
        environ["MAM_CONFIG"] = "missing"
        assert load("other.toml", cwd=str(project), environ=environ).slots() == {"other": 1}
        assert load("/dev/null", cwd=str(project), environ=environ).slots() == {}

    @pytest.mark.parametrize("how", ["flag", "variable"])
    def test_a_named_one_that_is_missing_is_an_error(self, project: Path, how: str) -> None:
        named = "no.toml" if how == "flag" else None
        environ = {"MAM_CONFIG": "no.toml"} if how == "variable" else {}
        with pytest.raises(ConfigError, match=r"no configuration file .*/no\.toml"):
            load(named, cwd=str(project), environ=environ)

    def test_a_strangers_file_above_us_is_passed_over_and_named(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever can put a mam.toml into a shared parent folder would run commands as us."""
        (project / "mam.toml").write_text("[groups.x]\nslots = 1\n")
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        if os.stat(project).st_uid == 0:
            os.chown(project / "mam.toml", 1234, -1)
        config = load(cwd=str(project), environ={})
        assert config.slots() == {}
        assert "belongs to user" in config.notices[0]
        assert load(f"{project}/mam.toml", environ={}).slots() == {"x": 1}

    def test_a_file_that_everybody_may_write_is_passed_over(self, project: Path) -> None:
        (project / "mam.toml").write_text("[groups.x]\nslots = 1\n")
        (project / "mam.toml").chmod(0o666)
        config = load(cwd=str(project), environ={})
        assert config.slots() == {}
        assert "everybody may write" in config.notices[0]


class TestWhatWins:
    def test_environment_wins_over_files_for_its_own_variables_only(self, project: Path) -> None:
        config = read(
            "[broker]\nhost = 'file'\nport = 1\ntls = true\n[defaults]\nagent = 'a'\n",
            project,
            MQTT_BROKER="env",
            MQTT_PORT="8883",
            MQTT_TLS="off",
            MAM_AGENT="nobody",
            MQTT_USERNAME="",
        )
        broker = config.broker
        assert (broker.host, broker.port, broker.tls) == ("env", 8883, False)
        assert broker.username is None
        assert config.origin(("broker", "tls")) == "environment MQTT_TLS"
        assert config.defaults.agent == "a"

    def test_a_flag_wins_over_the_environment(self, project: Path) -> None:
        config = load(
            cwd=str(project),
            environ={"MAM_REGISTRY_DIR": "from-env"},
            flags={"store.registry_dir": "from-flag"},
        )
        assert config.store.registry_dir == str(project / "from-flag")
        assert config.origin(("store", "registry_dir")) == "flag"

    @pytest.mark.parametrize("word", ["1", "true", "YES", "on"])
    def test_tls_is_switched_on_by_any_word_for_yes(self, project: Path, word: str) -> None:
        assert load(cwd=str(project), environ={"MQTT_TLS": word}).broker.tls is True

    @pytest.mark.parametrize(
        ("name", "text"), [("MQTT_PORT", "many"), ("MQTT_PORT", "0"), ("MQTT_TLS", "maybe")]
    )
    def test_a_bad_variable_is_named(self, project: Path, name: str, text: str) -> None:
        with pytest.raises(ConfigError, match=f"the variable {name} must be .*{text}"):
            load(cwd=str(project), environ={name: text})

    def test_every_variable_leads_to_a_setting(self) -> None:
        for place in VARIABLES.values():
            assert setting_at(place) is not None


class TestWhatIsRead:
    def test_every_table_of_decision_24(self, project: Path) -> None:
        config = read(
            """
            [defaults]
            timeout_sec = 600
            memory_max = "8G"
            heartbeat_sec = 0.5
            [store]
            registry_dir = "jobs"
            [broker]
            host = "mq"
            ca_certs = "~/ca.pem"
            password_file = "secret"
            [tmux]
            socket = "mine"
            [agents.claude-code]
            command = ["claude", "-p"]
            prompt = "file"
            mode = "stream"
            stream = "stream-json"
            env = { A = "1" }
            model_flag = "--model"
            resume = ["--resume", "{session}"]
            needs = ["A_KEY"]
            [groups.big]
            slots = 2
            min = 1
            max = 4
            memory = "4G"
            cpu = 1.5
            [templates.night]
            prompt = "tidy up"
            not_before = "+8h"
            auth_token = true
            workdir = "deep"
            after = []
            [notify]
            command = ["notify-send"]
            debounce_sec = 3
            [console]
            theme = "nord"
            glyphs = "ascii"
            mouse = false
            columns = ["id", "status"]
            [keys]
            cancel = "x"
            "job.retry" = "R"
            """,
            project,
        )
        assert config.defaults.memory_max == 8 * 2**30
        assert config.defaults.heartbeat_sec == 0.5
        assert config.store.registry_dir == config.registry_dir == str(project / "jobs")
        assert config.broker.ca_certs == os.path.expanduser("~/ca.pem")
        assert config.tmux.socket == "mine"
        agent = config.agents["claude-code"]
        assert agent.command == ("claude", "-p")
        assert agent.env == {"A": "1"}
        assert agent.resume == ("--resume", "{session}")
        assert agent.needs == ("A_KEY",)
        assert config.groups["big"].memory == 4 * 2**30
        assert config.slots() == {"big": 2}
        assert config.template("night") == {
            "prompt": "tidy up",
            "not_before": "+8h",
            "auth_token": True,
            "workdir": str(project / "deep"),
            "after": [],
        }
        assert config.notify.command == ("notify-send",)
        assert config.console.columns == ("id", "status")
        assert config.console.mouse is False
        assert config.keys == {"cancel": "x", "job.retry": "R"}

    def test_timing_settings_of_decision_31_have_their_defaults(self) -> None:
        defaults = Config().defaults
        timing = (
            defaults.heartbeat_sec,
            defaults.lease_sec,
            defaults.sweep_sec,
            defaults.grace_sec,
        )
        assert (*timing, GRACE_SEC) == (10, 30, 5, 5, 5)

    def test_pauses_and_bounds_of_attempts(self, project: Path) -> None:
        """Decisions 17 and 20: settings, like the timing of decision 31."""
        usual = Config().defaults
        assert (usual.retry_sec, usual.retry_factor, usual.retry_max_sec) == (10, 2, 600)
        assert (usual.output_max, usual.max_cost, usual.max_tokens) == (64 * 2**20, None, None)
        text = """
            [defaults]
            retry_sec = 0.5
            retry_factor = 1.5
            retry_max_sec = 60
            output_max = "1M"
            max_cost = 2.5
            max_tokens = 100000
            """
        said = read(text, project)
        chosen = said.defaults
        assert (chosen.retry_sec, chosen.retry_factor, chosen.retry_max_sec) == (0.5, 1.5, 60)
        assert chosen.output_max == 2**20
        assert said.job_defaults() == {"max_cost": 2.5, "max_tokens": 100_000}

    @pytest.mark.parametrize(
        "line", ["retry_sec = 0", "retry_factor = -1", "output_max = '0'", "max_tokens = 1.5"]
    )
    def test_what_makes_no_sense_there_is_refused(self, project: Path, line: str) -> None:
        with pytest.raises(ConfigError, match=f"line 2: defaults.{line.split()[0]}"):
            read(f"[defaults]\n{line}\n", project)

    def test_job_defaults_are_what_register_may_be_given(self, project: Path) -> None:
        (project / "pw").write_text("hush\n")
        config = read(
            "[defaults]\nagent = 'a'\nlease_sec = 9\n[broker]\nhost = 'mq'\npassword_file = 'pw'\n",
            project,
        )
        given = config.job_defaults()
        assert given == {
            "agent": "a",
            "broker": {
                "host": "mq",
                "port": 1883,
                "tls": False,
                "username": None,
                "password": "hush",
            },
        }
        fields.checked(given, now=0.0)

    def test_a_template_may_say_all_that_register_can_set(self) -> None:
        assert tuple(TABLES["templates"].settings) == fields.SETTABLE

    def test_an_unknown_template_names_the_known_ones(self, project: Path) -> None:
        config = read("[templates.night]\nprompt = 'x'\n", project)
        with pytest.raises(ConfigError, match=r"'day'; templates: night"):
            config.template("day")

    def test_a_broken_template_folder_is_no_reason_to_refuse_everything(
        self, project: Path
    ) -> None:
        config = read("[templates.t]\nworkdir = '/nowhere/at/all'\n", project)
        assert config.template("t")["workdir"] == "/nowhere/at/all"

    def test_the_records_of_the_tables_agree_with_the_schema(self) -> None:
        config = Config()
        for name, table in TABLES.items():
            if table.named or table.any_key:
                continue
            record = getattr(config, name)
            assert {key: getattr(record, key) for key in table.settings} == {
                key: setting.default for key, setting in table.settings.items()
            }

    def test_every_default_would_be_accepted_from_a_file(self) -> None:
        from mam_core.config.reading import checked

        for name, table in TABLES.items():
            for key, setting in table.settings.items():
                if setting.default is not None and setting.kind is not Kind.PATH:
                    assert checked((name, key), setting, setting.default, "/") == setting.default


class TestMistakes:
    """A bad key names file, line and key, in one sentence."""

    @each_row(
        ("text", "said"),
        [
            (
                "\n[defaults]\ntimout_sec = 1",
                "line 3: defaults.timout_sec is not known; did you mean timeout_sec?",
            ),
            ("x = 1", "line 1: x is not known; known are defaults, store,"),
            ("[default]\n", "line 1: default is not known; did you mean defaults?"),
            ("defaults = 3", "line 1: defaults must be a table"),
            ("[agents]\ncommand = ['x']", "line 2: agents.command must be a table: [agents.NAME]"),
            (
                "[defaults]\ntimeout_sec = 'ten'",
                "line 2: defaults.timeout_sec is refused: it must be a number of seconds",
            ),
            ("[defaults]\ntimeout_sec = -1", "line 2: defaults.timeout_sec is refused"),
            ("[defaults]\ntimeout_sec = nan", "line 2: defaults.timeout_sec is refused"),
            ("[defaults]\n\nlease_sec = 0", "line 3: defaults.lease_sec must be a positive number"),
            ("[broker]\nport = 70000", "line 2: broker.port must be a port between 1 and 65535"),
            ("[broker]\ntls = 1", "line 2: broker.tls must be true or false, not 1"),
            ("broker.tls = 'yes'", "line 1: broker.tls must be true or false, not 'yes'"),
            ("broker = { host = '' }", "line 1: broker.host must be a text"),
            ("[broker]\nhost = 2020-01-01", "line 2: broker.host must be a text, not "),
            ("[groups.a]\nslots = true", "line 2: groups.a.slots must be a whole number"),
            ("[groups.a]\nmemory = 'big'", "line 2: groups.a.memory must be a size"),
            ("[groups.a]\nmin = 3\nmax = 2", "line 2: groups.a.min is 3, which is more than"),
            ("[groups.a]\nmax = 2\nslots = 3", "line 3: groups.a.slots is 3, which is more than"),
            ('[groups."a\\nb"]\nslots = 3', 'line 1: groups."a\\nb" is no name'),
            ("[agents.x]\ncommand = 'claude -p'", "line 2: agents.x.command must be a list"),
            ("[agents.x]\ncommand = []", "line 2: agents.x.command must be a list of texts"),
            ("[agents.x]\nneeds = ['A B']", "line 2: agents.x.needs must be a list of names of"),
            ("[agents.x]\nneeds = 'A'", "line 2: agents.x.needs must be a list of names of"),
            (
                "[agents.x]\nprompt = 'telepathy'",
                "line 2: agents.x.prompt must be one of stdin, file, argument, not 'telepathy'",
            ),
            ("[agents.x.env]\nA = '1'\nB = 2", "line 3: agents.x.env.B must be a text"),
            ("[agents.x]\nenv = { 'A B' = '1' }", 'line 2: agents.x.env."A B" must be'),
            ("[templates.t]\npromt = 'x'", "line 2: templates.t.promt is not known; did you mean"),
            ("[templates.t]\nauth_token = 'mine'", "line 2: templates.t.auth_token must be true"),
            ("[console]\ncolumns = ['a', 1]", "line 2: console.columns must be a list of texts"),
            ("[keys]\ncancel = ['c']", "line 2: keys.cancel must be a text, not a list"),
            ("a = 1\nb =\n", "line 2: it is not TOML: Invalid value in column 4"),
            ("[a]\n[a]\n", "line 2: it is not TOML: "),
            ("\n\na = 'x", "line 3: it is not TOML: "),
        ],
    )
    def test_is_one_sentence_with_its_place(self, project: Path, text: str, said: str) -> None:
        assert complaint(text, project).startswith(said)

    def test_a_password_has_no_place_in_the_file(self, project: Path) -> None:
        """Decision 10: a password stands in a file of its own."""
        said = complaint("[broker]\nhost = 'x'\npassword = 'hunter2'", project)
        assert said == "line 3: broker.password is not read from here: use password_file"
        said = complaint(
            "[templates.t.broker]\nhost = 'x'\nport = 1\npassword = 'hunter2'", project
        )
        assert said.startswith("line 4: templates.t.broker.password is not read from here")

    def test_bytes_that_are_no_text(self, project: Path) -> None:
        (project / "mam.toml").write_bytes(b"[defaults]\n# \xff\n")
        with pytest.raises(ConfigError, match="line 2: it is not UTF-8"):
            load(cwd=str(project), environ={})

    def test_a_file_without_an_end(self, project: Path) -> None:
        (project / "mam.toml").write_bytes(b"#" * (1024 * 1024 + 1))
        with pytest.raises(ConfigError, match="more than 1048576 bytes"):
            load(cwd=str(project), environ={})

    def test_a_nest_without_an_end(self, project: Path) -> None:
        (project / "mam.toml").write_text("a = " + "[" * 100_000)
        with pytest.raises(ConfigError, match=r"mam\.toml"):
            load(cwd=str(project), environ={})

    def test_a_named_folder(self, project: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: is a directory"):
            load(str(project), environ={})

    @pytest.mark.parametrize("content", ["", "\n", "one\ntwo\n", "x" * 5000])
    def test_a_password_file_that_holds_no_password(self, project: Path, content: str) -> None:
        (project / "pw").write_text(content)
        config = read("[broker]\nhost = 'x'\npassword_file = 'pw'\n", project)
        with pytest.raises(ConfigError, match="must hold one line, the password"):
            config.broker.secret()

    def test_a_password_file_that_is_missing(self, project: Path) -> None:
        config = read("[broker]\nhost = 'x'\npassword_file = 'pw'\n", project)
        with pytest.raises(ConfigError, match="pw cannot be read: no such file"):
            config.job_defaults()


class TestSecrets:
    def test_are_shown_as_a_marker(self, project: Path) -> None:
        """K5, decision 10."""
        (project / "pw").write_text("hush\n")
        config = read(
            "[broker]\npassword_file = 'pw'\n[agents.x]\nenv = { KEY = 'sk-1' }\n",
            project,
            MQTT_PASSWORD="hunter2",
            MAM_STORE="postgresql://me:p@ss@db/jobs?password=again",
        )
        shown: dict[str, Any] = {entry.key: entry.value for entry in config.entries()}
        assert shown["broker.password"] == REDACTED
        assert shown["agents.x.env"] == {"KEY": REDACTED}
        assert shown["store.url"] == f"postgresql://me:{REDACTED}@db/jobs?password={REDACTED}"
        told = repr([*config.entries(), config.broker, config.store, config.agents])
        for secret in ("hunter2", "p@ss", "again", "sk-1", "hush"):
            assert secret not in told
        assert config.broker.secret() == "hunter2"


class TestTheColdPath:
    def imports(self, folder: Path, action: str) -> set[str]:
        code = f"import sys\n{action}\nprint(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    def test_no_file_means_no_parser(self, project: Path) -> None:
        """`mam pick` passes here: a few stat calls, and neither parser nor records of settings."""
        loaded = self.imports(
            project, "from mam_core.config import load; c = load(); c.slots(); c.job_defaults()"
        )
        assert "mam_core.config.loading" in loaded
        for costly in ("tomllib", "dataclasses", "logging", "mam_core.config.schema"):
            assert costly not in loaded

    def test_a_file_costs_its_parser_and_no_more(self, project: Path) -> None:
        (project / "mam.toml").write_text("[groups.x]\nslots = 1\n")
        loaded = self.imports(
            project, "from mam_core.config import load; c = load(); c.slots(); c.registry_dir"
        )
        assert "tomllib" in loaded
        for costly in ("mam_core.config.tables", "mam_core.config.lines", "difflib", "logging"):
            assert costly not in loaded
