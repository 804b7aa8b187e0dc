"""``mam register --token``: a secret of each job's own, for production."""

from __future__ import annotations

import json
import re
import secrets

import pytest

from mam_core.fields import fresh_token
from tests.cli.conftest import Mam


def test_each_job_gets_a_long_one_of_its_own(mam: Mam) -> None:
    """K2: as `secrets.token_urlsafe(32)` makes them."""
    tokens = [mam.record(mam.register(f"part {n}", "--token"))["auth_token"] for n in range(20)]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)
    assert len(set(tokens)) == 20


def test_none_is_taken_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["-ZZRag41usMgnKCYjXr7njtj0BEClV", "--help", "a-b"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: next(made))
    assert fresh_token() == "a-b"


def test_many_at_once_get_one_each(mam: Mam) -> None:
    """K2, AP-12"""
    wanted = [{"prompt": f"part {n}", "agent": "a", "agent_session": "l"} for n in range(5)]
    lines = mam.folder / "jobs.ndjson"
    lines.write_text("".join(json.dumps(one) + "\n" for one in wanted))
    ids = mam.ok("register", "--bulk", str(lines), "--token").lines
    tokens = {mam.record(job_id)["auth_token"] for job_id in ids}
    assert len(tokens) == 5
    assert None not in tokens
