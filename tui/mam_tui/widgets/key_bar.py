"""The bottom line: the few keys that matter here, and those only that can be used now."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual import events
from textual.reactive import reactive
from textual.widget import Widget

from mam_core.safe_text import cell_width
from mam_tui.styles import ink

#: More than a person takes in at a glance are as good as none; the rest is one key away.
MOST = 8

_NAMES = {
    "slash": "/",
    "backslash": "\\",
    "colon": ":",
    "question_mark": "?",
    "escape": "esc",
    "at": "@",
    "minus": "-",
    "plus": "+",
    "comma": ",",
    "full_stop": ".",
    "semicolon": ";",
    "apostrophe": "'",
    "quotation_mark": '"',
    "exclamation_mark": "!",
    "number_sign": "#",
    "dollar_sign": "$",
    "percent_sign": "%",
    "ampersand": "&",
    "asterisk": "*",
    "equals_sign": "=",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "circumflex_accent": "^",
    "underscore": "_",
    "grave_accent": "`",
    "vertical_line": "|",
    "tilde": "~",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "delete": "del",
}


def key_name(key: str) -> str:
    """A key as people write it."""
    key = key.partition(",")[0]
    *modifiers, base = key.split("+")
    return "+".join([*modifiers, _NAMES.get(base, base)]).replace("ctrl+", "^")


class KeyBar(Widget):
    """Pairs of key and words; what does not fit is left out whole. A click is the key itself."""

    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; background: $panel; }
    KeyBar > .key-bar--key { color: $text-accent; text-style: bold; }
    KeyBar > .key-bar--words { color: $foreground; }
    """
    COMPONENT_CLASSES = {"key-bar--key", "key-bar--words"}

    pairs: reactive[tuple[tuple[str, str], ...]] = reactive(())

    def show(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)

    def _placed(self) -> Iterable[tuple[range, str, str]]:
        """What fits: where it stands, its key, its words."""
        at = 0
        for key, words in self.pairs[:MOST]:
            end = at + cell_width(key_name(key)) + cell_width(words) + 3
            if end > self.size.width:
                return
            yield range(at, end), key, words
            at = end

    def render(self) -> Text:
        key_style = ink(self, "key-bar--key")
        line = Text(no_wrap=True, end="")
        for _, key, words in self._placed():
            line.append(f" {key_name(key)}", key_style)
            line.append(f" {words} ")
        return line

    def on_click(self, event: events.Click) -> None:
        for place, key, _ in self._placed():
            if event.x in place:
                self.app.simulate_key(key)
                return
