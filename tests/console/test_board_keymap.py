"""The operator's own keys: they act, they are shown, and a mistake is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widget import Widget

from mam_core.config import load
from mam_core.errors import ConfigError
from mam_tui.app import Console
from mam_tui.keymap import FIXED, defaults, normal, read
from mam_tui.own_settings import check
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.help import HelpScreen, keys_of
from mam_tui.screens.job import JobScreen
from mam_tui.screens.sessions import SessionsScreen
from mam_tui.widgets.command_line import CommandLine
from tests.console.board_story import told
from tests.console.story import summary


def refused(folder: Path, text: str) -> str:
    path = folder / "mam.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as problem:
        check(load(str(path)))
    return problem.value.message.replace(f"{folder}/", "")


class TestWhatItDoes:
    async def test_the_new_key_acts_and_the_old_one_is_free(self, tmp_path: Path) -> None:
        mine = '[keys]\ncancel = "delete"\nsessions = "f2"\nread-only = "ctrl+o"\nhelp = "f1"\n'
        mine = mine.replace("sessions", "view-sessions")
        async with told(tmp_path, [summary()], config=mine) as seen:
            await seen.press("c")
            assert not seen.is_on(Confirm)
            await seen.press("delete")
            assert seen.is_on(Confirm)
            await seen.press("escape", "ctrl+o")
            assert seen.app.desk.read_only
            await seen.press("ctrl+o", "2")
            assert not seen.is_on(SessionsScreen)
            await seen.press("f2")
            assert seen.is_on(SessionsScreen)
            await seen.press("f1")
            assert seen.is_on(HelpScreen)

    async def test_two_actions_can_change_their_keys(self, tmp_path: Path) -> None:
        mine = '[keys]\ncancel = "y"\ncopy = "c"\n'
        async with told(tmp_path, [summary()], config=mine) as seen:
            await seen.press("c")
            assert seen.app.clipboard == "job0001"
            await seen.press("y")
            assert seen.is_on(Confirm)

    async def test_it_is_shown_wherever_keys_are(self, tmp_path: Path) -> None:
        mine = '[keys]\ncancel = "delete"\nhelp = "f1"\nview-board = "f9"\n'
        async with told(tmp_path, [summary()], config=mine) as seen:
            assert "f1 keys" in seen.text()
            assert "del cancel" in seen.text()
            titles = [command.title for command in seen.app.get_system_commands(seen.app.screen)]
            assert "cancel (del)" in titles
            assert "view: board (f9)" in titles
            await seen.press("enter")
            assert seen.is_on(JobScreen)
            await seen.pilot.pause()
            assert "del cancel" in seen.text()
            await seen.press("escape")
            help_lines = keys_of(seen.app.board, seen.app.board.lacks)
            assert any(line[:3] == ("del", "cancel", "") for line in help_lines)
            assert not any(line.keys == "c" for line in help_lines)

    async def test_an_empty_board_names_the_operators_key(self, tmp_path: Path) -> None:
        async with told(tmp_path, config='[keys]\nnew = "ctrl+n"\ndemo = "f5"\n') as seen:
            assert "^n  makes the first one" in seen.text()
            assert "f5  shows how it looks" in seen.text()


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            ('cancle = "x"', "keys.cancle is no action; did you mean cancel?"),
            ('cancel = "f99"', "keys.cancel is no key: 'f99'; keys are such as"),
            ('cancel = "hyper+x"', "keys.cancel is no key: 'hyper+x'; keys are such as"),
            ('cancel = "r"', "keys.cancel is r, which is the key of retry"),
            ('cancel = "1"', "keys.cancel is 1, which is the key of view-board"),
            ('cancel = "?"', "keys.cancel is ?, which is the key of help"),
            ('cancel = "j"', "keys.cancel cannot be j: that moves by a line"),
            ('cancel = "ctrl+q"', "keys.cancel cannot be ctrl+q: that quits"),
            ('cancel = "ctrl+m"', "keys.cancel cannot be ctrl+m: terminals send enter for it"),
        ],
    )
    def test_is_one_sentence_with_its_place(self, tmp_path: Path, line: str, sentence: str) -> None:
        said = refused(tmp_path, f"# mine\n[keys]\n{line}\n")
        assert said.startswith(f"mam.toml, line 3: {sentence}")
        assert "\n" not in said

    def test_columns_and_colours_that_there_are_not(self, tmp_path: Path) -> None:
        said = refused(tmp_path, '[console]\ncolumns = ["id", "agee"]\n')
        assert said.startswith("mam.toml, line 2: console.columns: there is no column 'agee'; ")
        said = refused(tmp_path, '[console]\ntheme = "pink"\n')
        assert said.startswith("mam.toml, line 2: console.theme: there is no theme 'pink'; ")

    def test_what_shares_a_key_by_custom_may_go_on_doing_so(self, tmp_path: Path) -> None:
        path = tmp_path / "mam.toml"
        path.write_text('[keys]\nretry = "f8"\nrestore = "f8"\n')
        assert read(load(str(path))) == {"retry": "f8", "restore": "f8"}


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("x", "x"),
        ("X", "X"),
        ("/", "slash"),
        (",", "comma"),
        ("shift+a", "A"),
        ("ctrl+A", "ctrl+a"),
        ("alt+x", "alt+x"),
        ("F5", "f5"),
        ("ctrl+/", "ctrl+slash"),
        ("slash", "slash"),
        ("space", "space"),
        (" ", None),
        ("", None),
        ("nonsense", None),
        ("ctrl+", None),
    ],
)
def test_a_key_as_people_write_it(written: str, key: str | None) -> None:
    assert normal(written) == key


def test_every_key_without_an_action_is_known_not_to_be_free() -> None:
    """So that nobody gives one to an action, and wonders why it does something else."""
    ours = [one for one in _with_bindings(Widget) if one.__module__.startswith("mam_tui.widgets")]
    for kind in (*ours, JobScreen, Console):
        for binding in vars(kind).get("BINDINGS", []):
            if isinstance(binding, Binding) and binding.id is None and kind not in _APART:
                for key in binding.key.split(","):
                    assert key in FIXED or key in defaults().values(), (kind, key)


#: While one types there, letters are letters.
_APART = (CommandLine,)


def _with_bindings(kind: type[Widget]) -> Iterator[type[Widget]]:
    for one in kind.__subclasses__():
        yield one
        yield from _with_bindings(one)
