"""`mam help TOPIC`: the manual in a terminal, harmless, paged or plain."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mam_core.manual import topics
from mam_core.manual.rendering import rendered
from mam_core.safe_text import cell_width
from tests.cli.conftest import Mam, Process, environment, is_one_sentence
from tests.support.clinic import Terminal
from tests.support.rows import each_row

PAGE = """\
# A page

Some *words* about `mam list` and **strong ones**, with a [link](dispatch.md) that goes on and on.

<!-- nobody sees this -->
## A table

| key | what it means |
|---|---|
| `one` | the first of them, which has a long explanation that does not fit |
| `a-very-long-word-here` | b \\| c |

- an item
  that goes on
- another

```console
$ mam list   # as it stands, however long this line may be for a narrow terminal
```
"""


def lines(width: int = 60, *, colour: bool = False, text: str = PAGE) -> list[str]:
    return list(rendered(text, width, colour=colour))


class TestAPage:
    def test_is_drawn_for_a_plain_terminal(self) -> None:
        assert lines() == [
            "A page",
            "======",
            "",
            "Some words about `mam list` and strong ones, with a link",
            "(mam help dispatch) that goes on and on.",
            "",
            "A table",
            "-------",
            "",
            "key                      what it means",
            "-----------------------  -----------------------------------",
            "`one`                    the first of them, which has a long",
            "                         explanation that does not fit",
            "`a-very-long-word-here`  b | c",
            "",
            "- an item that goes on",
            "- another",
            "",
            "    $ mam list   # as it stands, however long this line may be for a narrow terminal",
        ]

    def test_ends_every_colour_where_its_line_ends(self) -> None:
        drawn = lines(20, colour=True)
        assert "\x1b[36mmam list\x1b[0m" in "\n".join(lines(colour=True))
        for line in drawn:
            assert line.rfind("\x1b[0m") >= max(line.rfind("\x1b[36m"), line.rfind("\x1b[1m"))

    @pytest.mark.parametrize("width", [20, 33, 80, 300])
    def test_fits_but_for_what_cannot_be_broken(self, width: int) -> None:
        text = "word " * 200 + "\n\n| a | b |\n|---|---|\n| " + "x " * 99 + "| y |\n"
        assert max(map(cell_width, lines(width, text=text))) <= min(width, 100)

    def test_cannot_harm_the_terminal(self) -> None:
        text = PAGE + "\x1b[2J \u202e `\x1b]0;x\x07` \ue000 **\ue001**\n\n```\n\x1b[31m\n```\n"
        drawn = "\n".join(lines(colour=True, text=text))
        for code in ("\x1b[36m", "\x1b[1m", "\x1b[0m"):
            drawn = drawn.replace(code, "")
        assert "\x1b" not in drawn
        assert "\u202e" not in drawn

    @each_row(
        "text", ["", "```\nopen", "# ", "|", "||\n|-|", "- ", "`", "**", "[](x)", "<!--", "1."]
    )
    def test_that_is_odd_is_drawn_somehow(self, text: str) -> None:
        lines(text=text)


class TestTheCommand:
    def test_every_page_is_listed_and_can_be_read(self, mam: Mam) -> None:
        listed = [line.split()[0] for line in mam.ok("help", "topics").lines]
        assert "dispatch.md" in listed, "a verb has that name"
        for name in listed:
            assert len(mam.ok("help", name).lines) > 20

    def test_a_beginning_is_enough(self, mam: Mam) -> None:
        assert mam.ok("help", "config.md").code == 0
        assert mam.ok("help", "archi").out == mam.ok("help", "architecture").out

    def test_a_verb_comes_first(self, mam: Mam) -> None:
        assert mam.ok("help", "dispatch").out.startswith("usage: mam dispatch")
        assert mam.ok("help", "dispatch.md").out.startswith("The dispatch registry")

    @pytest.mark.parametrize("name", ["nonsense", "", "../README", "/etc/passwd", "a"])
    def test_what_is_no_page_is_one_sentence(self, mam: Mam, name: str) -> None:
        answer = mam("help", name)
        assert (answer.code, answer.out) == (2, "")
        assert is_one_sentence(answer.err)

    def test_without_its_manual_it_says_so(self, mam: Mam, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topics, "manual_folder", lambda: None)
        for name in ("topics", "operating"):
            answer = mam("help", name)
            assert answer.code == 2
            assert "without" in answer.err

    def test_completion_knows_the_pages(self, mam: Mam) -> None:
        assert "operating\tOperating guide" in mam.ok("__complete", "zsh", "help", "oper").lines

    def test_a_pipe_gets_plain_text(self, process: Callable[..., Process]) -> None:
        answer = process("help", "operating", env=environment(PAGER="false", COLUMNS="72"))
        assert answer.stdout.startswith("Operating guide\n===============\n")
        assert "\x1b" not in answer.stdout

    def test_a_terminal_gets_a_pager(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pager = folder / "pager"
        pager.write_text("#!/bin/sh\ncat > paged\necho was paged\n")
        pager.chmod(0o755)
        monkeypatch.setenv("PAGER", str(pager))
        person = Terminal("help", "operating", cwd=folder)
        person.until(lambda shown: "was paged" in shown, "the pager")
        assert person.code() == 0
        assert (folder / "paged").read_text().startswith("Operating guide\n")

    def test_one_that_is_not_there_is_said_and_done_without(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PAGER", os.fspath(folder / "nothing"))
        person = Terminal("help", "operating", cwd=folder)
        person.until(lambda shown: "cannot be started" in shown, "a word")
        assert person.code() == 0
