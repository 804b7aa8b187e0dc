"""No page rots: every command is run as it stands there, or says why it is not.

A page's commands are those of one shell in a private folder. What a page mentions in passing is
compared with the parsers: no verb and no option is shown that there is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mam_core.cli.main import VERBS, load, parser_of
from mam_core.cli.usage import GLOBAL_OPTIONS
from mam_core.config.reference import page as configuration_page
from mam_core.errors import MamError
from mam_core.manual.topics import topics
from tests.docs.pages import ROOT, Command, blocks, mentions, pages
from tests.support.brokers import processes_in
from tests.support.patience import until_gone
from tests.support.relays import none_left_behind
from tests.support.rows import each_row
from tests.support.tmux import private_tmux

_SCRIPT_HEAD = """\
mam() { "$MAM_TEST_PYTHON" -P -m mam_core "$@"; }
"""
_ONE = """\
{{
{text}
}} > {folder}/{number}.out 2>&1
echo $? > {folder}/{number}.code
"""

run_pages = [page for page in pages() if any(block.is_run for block in blocks(page))]
every_page = each_row("page", pages())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", run_pages, ids=lambda page: page.name)
def test_every_command_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    commands = [command for block in blocks(page) if block.is_run for command in block.commands()]
    project, answers = tmp_path / "project", tmp_path / "answers"
    project.mkdir()
    answers.mkdir()
    parts = [
        _ONE.format(text=command.text, folder=answers, number=number)
        for number, command in enumerate(commands)
    ]
    with private_tmux():
        environ = {**os.environ, "MAM_TEST_PYTHON": sys.executable, "COLUMNS": "200"}
        environ["PWD"] = str(project)
        # As on a terminal: what is said first stands first.
        environ["PYTHONUNBUFFERED"] = "1"
        # A relay that `publish` leaves behind would wait for a broker, and we for the relay.
        with none_left_behind(project / ".mam" / "jobs"):
            told = subprocess.run(
                ["bash", "-c", _SCRIPT_HEAD + "".join(parts)],
                cwd=project,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        until_gone(lambda: [process.pid for process in processes_in(project)])
    assert (told.stdout, told.stderr) == ("", "")
    wrong = [
        words
        for number, command in enumerate(commands)
        if (words := _wrong(command, answers / f"{number}.out", answers / f"{number}.code"))
    ]
    assert wrong == [], "\n".join(wrong)


def _wrong(command: Command, output: Path, code: Path) -> str:
    where = f"{command.page}:{command.line}: {command.text}"
    if not code.exists():
        return f"{where}\n  was not reached"
    said = output.read_text(errors="replace")
    if int(code.read_text()) != command.exit_code:
        return f"{where}\n  exited with {code.read_text().strip()}: {said}"
    return "" if command.fits(said) else f"{where}\n  printed\n{said}"


@every_page
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    left = [
        f"{block.page}:{block.line}"
        for block in blocks(page)
        if block.shows_commands and not block.is_run and not block.is_excused
    ]
    assert left == []


@every_page
def test_no_page_names_a_verb_or_an_option_that_there_is_not(page: Path) -> None:
    wrong = []
    for line, words in mentions(page):
        rest = iter(words)
        for word in rest:
            if GLOBAL_OPTIONS.get(word):
                next(rest, None)
            elif not word.startswith("-"):
                break
        else:
            continue
        if not word.isascii() or not word.islower() or word in ("help", "mam"):
            continue  # VERB, help TOPIC, words of a sentence, `… add mam -- mam VERB`
        module = load(word)
        if module is None:
            wrong.append(f"{page.name}:{line}: there is no verb {word}")
            continue
        known = _options_of(word)
        for option in (one.partition("=")[0] for one in rest if one.startswith("--")):
            if option != "--" and option.rstrip(",.:;)") not in known:
                wrong.append(f"{page.name}:{line}: mam {word} has no {option}")
    assert wrong == []


@every_page
def test_commands_that_are_not_run_could_be_given_like_that(page: Path) -> None:
    wrong = []
    for block in blocks(page):
        for line, words in [] if block.is_run else block.mam_commands():
            verb = next((word for word in words if word in VERBS), None)
            if verb is None or "…" in " ".join(words):
                continue
            module = load(verb)
            assert module is not None
            try:
                parser_of(verb, module).read([word for word in words if word != verb])
            except MamError as problem:
                wrong.append(f"{block.page}:{line}: {problem}")
    assert wrong == []


def _options_of(verb: str) -> set[str]:
    module = load(verb)
    assert module is not None
    actions = parser_of(verb, module)._actions
    found = {flag for action in actions for flag in action.option_strings}
    for action in actions:  # a verb with verbs of its own
        if isinstance(action.choices, dict):
            for inner in action.choices.values():
                found |= set(inner._option_string_actions)
    return found


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_configuration_reference_is_what_the_code_says() -> None:
    """``python -m mam_core.config.reference > docs/configuration.md`` writes it anew."""
    assert (ROOT / "docs" / "configuration.md").read_text() == configuration_page()


def test_the_manual_is_what_the_issue_asks_for() -> None:
    there = {topic.name for topic in topics()}
    assert there >= {"architecture", "operating", "agents", "configuration", "formats"}
    assert there >= {"contributing", "dispatch"}
    assert all(topic.title and not topic.title.startswith("#") for topic in topics())
