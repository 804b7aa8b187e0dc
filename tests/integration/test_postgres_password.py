"""A database that asks for a password: workers know it from a file, and so do their agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import psycopg

from tests.support.patience import eventually
from tests.support.postgres import own_server

_SECRET = "canary-5f1c0b9e"


def test_an_agent_finds_the_password_and_is_not_told_it(tmp_path: Path) -> None:
    """Promises 9 and 62: the way to a 0600 file, in no command line, variable, output or log."""
    with own_server() as server:
        with psycopg.connect(server.uri, autocommit=True) as db:
            db.execute(f"CREATE ROLE host1 LOGIN PASSWORD '{_SECRET}'")
            db.execute("CREATE SCHEMA mam AUTHORIZATION host1")
            rights = server.data / "pg_hba.conf"
            rights.write_text(f"local all host1 scram-sha-256\n{rights.read_text()}")
            db.execute("SELECT pg_reload_conf()")
        project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
        project.mkdir()
        elsewhere.mkdir()
        secret = project / "secret"
        secret.write_text(f"{_SECRET}\n")
        secret.chmod(0o600)
        where = f"host={quote(str(server.root), safe='')}&options=-csearch_path%3Dmam"
        lines = ["[store]", f'url = "postgresql://host1@/postgres?{where}"']
        lines += ['password_file = "secret"', "[agents.shell]", "command = ['sh']"]
        (project / "mam.toml").write_text("\n".join(lines) + "\n")
        environ = {**os.environ, "HOME": str(tmp_path), "PYTHON": sys.executable}
        said = ""

        def mam(*words: str) -> str:
            nonlocal said
            command = [sys.executable, "-m", "mam_core", *words]
            done = subprocess.run(
                command, cwd=project, env=environ, capture_output=True, text=True, timeout=60
            )
            said += done.stdout + done.stderr
            assert done.returncode == 0, done.stderr
            return done.stdout

        publish = '"$PYTHON" -m mam_core publish --job $MAM_JOB_ID --event progress --detail half'
        prompt = f"cd /; env; {publish}"
        given = ["--agent", "shell", "--agent-session", "tmux:a", "--workdir", str(elsewhere)]
        job_id = mam("register", "--prompt", prompt, *given).strip()
        mam("work", "--agent-session", "tmux:a", "--agents", "shell", "--once")
        assert json.loads(mam("get", job_id))["status"] == "completed"
        # The worker may be through before a broker has taken what its agent said.
        mam("relay", "--once")
        eventually(lambda: "half" in mam("logs", job_id), "the progress is in the history")
        assert "password_file=" in mam("output", job_id)
        mam("doctor", "--json")
        assert _SECRET not in said
    secret.unlink()
    for folder, _, names in os.walk(project):
        for name in names:
            assert _SECRET.encode() not in (Path(folder) / name).read_bytes(), name
