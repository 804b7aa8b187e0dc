"""How a store is named, and that a password in the name goes nowhere."""

from __future__ import annotations

import pytest

from mam_core.errors import ConfigError
from mam_core.store_urls import StoreKind, StoreUrl
from tests.support.rows import each_row


@each_row(
    ("text", "kind", "shown"),
    [
        ("files", StoreKind.FILES, "files"),
        ("", StoreKind.FILES, "files"),
        ("sqlite:a/jobs.db", StoreKind.SQLITE, "sqlite:/base/a/jobs.db"),
        ("sqlite:/abs/jobs.db", StoreKind.SQLITE, "sqlite:/abs/jobs.db"),
        ("sqlite:///abs/jobs.db", StoreKind.SQLITE, "sqlite:/abs/jobs.db"),
        ("postgresql://db/jobs", StoreKind.POSTGRES, "postgresql://db/jobs"),
        ("postgres://me@db/jobs", StoreKind.POSTGRES, "postgresql://me@db/jobs"),
        ("postgresql:///?service=mam", StoreKind.POSTGRES, "postgresql:///?service=mam"),
    ],
)
def test_each_kind_has_its_form(text: str, kind: StoreKind, shown: str) -> None:
    url = StoreUrl.parse(text, "/base")
    assert (url.kind, str(url)) == (kind, shown)
    assert not url.has_password


@pytest.mark.parametrize(
    ("text", "file", "rest"),
    [
        ("postgresql://db/jobs", None, "postgresql://db/jobs"),
        ("postgresql://db/jobs?password_file=/a/b", "/a/b", "postgresql://db/jobs"),
        (
            "postgresql://db/jobs?password_file=/a%20%26/b&sslmode=require",
            "/a &/b",
            "postgresql://db/jobs?sslmode=require",
        ),
        ("sqlite:/a?password_file=b", None, "sqlite:/a?password_file=b"),
    ],
)
def test_a_file_with_the_password_can_be_named(text: str, file: str | None, rest: str) -> None:
    """Promise 9: what agents are told leads to the secret, and is none."""
    url = StoreUrl.parse(text)
    assert url.password_file == file
    if file is not None:
        assert str(url.without_password_file) == rest
        again = url.without_password_file.with_password_file(file)
        assert again.password_file == file
        assert str(again.without_password_file) == rest
        assert not url.has_password


@each_row(
    ("text", "plain"),
    [
        ("postgresql://me:hush@db/jobs", "postgresql://me@db/jobs"),
        ("postgresql://me:hu%40sh@db:5432/jobs", "postgresql://me@db:5432/jobs"),
        ("postgresql://db/jobs?password=hush", "postgresql://db/jobs"),
        (
            "postgresql://db/jobs?password=hush&sslmode=require",
            "postgresql://db/jobs?sslmode=require",
        ),
        (
            "postgresql://db/jobs?sslmode=require&password=hush",
            "postgresql://db/jobs?sslmode=require",
        ),
    ],
)
def test_a_password_is_seen_and_left_out(text: str, plain: str) -> None:
    """Decision 10."""
    url = StoreUrl.parse(text)
    assert url.has_password
    assert url.without_password == plain


@each_row(
    "text", ["sqlite:", "sqlite", "mysql://hush@db", "postgresql:jobs", "hush", "files:/x", "\0"]
)
def test_anything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StoreUrl.parse(text)
    assert "hush" not in str(caught.value)
