"""Pictures of the console, kept as small SVG files and compared with what is drawn now.

A line of the screen is a line of the file, so that a difference is a difference of lines.
``MAM_RENEW=1 ./test --fast tests/console/test_pictures.py`` draws all anew: look at them then.

Another Textual than the one of requirements.lock draws other borders and colours: with that the
way to each picture is gone all the same, and the pictures are not compared.
"""

from __future__ import annotations

import difflib
import html
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from rich.segment import Segment
from rich.style import Style
from textual.app import App

FOLDER = Path(__file__).parent / "svg"
RENEWS = bool(os.environ.get("MAM_RENEW"))
_LOCK = Path(__file__).parents[2] / "requirements.lock"
_IS_LOCKED = f"\ntextual=={version('textual')} " in _LOCK.read_text(encoding="utf-8")
_WIDE, _HIGH = 10, 21  #: of a cell
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" font-size="16.6" '
    'font-family="Fira Code,DejaVu Sans Mono,monospace"><style>text{{white-space:pre}}{2}</style>\n'
    '<path fill="{3}" d="M0 0h{0}v{1}h-{0}z"/>\n'
)


def svg_of(app: App[None], hidden: Mapping[str, str]) -> str:
    """The screen as it is drawn; `hidden` has words for others, equally long, that differ."""
    strips = app.screen._compositor.render_strips()
    lines = [list(Segment.simplify(strip)) for strip in strips]
    looks = {segment.style: _looks(app, segment.style) for line in lines for segment in line}
    area = Counter[str]()
    for segment in (segment for line in lines for segment in line):
        area[looks[segment.style][1]] += segment.cell_length
    paper = area.most_common(1)[0][0]
    classes: dict[str, str] = {}
    drawn = []
    for y, line in enumerate(lines):
        grounds, inks, x = "", "", 0
        for segment in line:
            ink, ground = looks[segment.style]
            wide = segment.cell_length * _WIDE
            if ground != paper:
                kind = classes.setdefault(f"fill:{ground}", f"c{len(classes)}")
                path = f"M{x} {y * _HIGH}h{wide}v{_HIGH}h-{wide}z"
                grounds += f'<path class="{kind}" d="{path}"/>'
            if segment.text.strip() or "underline" in ink:
                kind = classes.setdefault(ink, f"c{len(classes)}")
                text = segment.text
                for word, other in hidden.items():
                    text = text.replace(word, other)
                place = f'class="{kind}" x="{x}" textLength="{wide}"'
                inks += f"<tspan {place}>{html.escape(text, quote=False)}</tspan>"
            x += wide
        drawn.append(f'{grounds}<text y="{y * _HIGH + 16}">{inks}</text>\n')
    styles = "".join(f".{name}{{{look}}}" for look, name in classes.items())
    head = _HEAD.format(app.size.width * _WIDE, app.size.height * _HIGH, styles, paper)
    return head + "".join(drawn) + "</svg>\n"


def _looks(app: App[None], style: Style | None) -> tuple[str, str]:
    """The ink as CSS, and the ground."""
    style, theme = style or Style(), app.ansi_theme
    ink = style.color.get_truecolor(theme) if style.color else theme.foreground_color
    ground = style.bgcolor.get_truecolor(theme, False) if style.bgcolor else theme.background_color
    if style.reverse:
        ink, ground = ground, ink
    kinds = {"bold": "font-weight:bold", "italic": "font-style:italic", "dim": "opacity:.6"}
    kinds["underline"] = "text-decoration:underline"
    return ";".join([f"fill:{ink.hex}", *(css for k, css in kinds.items() if getattr(style, k))]), (
        ground.hex
    )


def differences(name: str, drawn: str) -> str:
    """From the picture that is kept, in words; empty: there are none, or it is kept from now on."""
    kept, new = FOLDER / f"{name}.svg", Path(tempfile.gettempdir(), "mam-pictures", f"{name}.svg")
    before = kept.read_text(encoding="utf-8") if kept.exists() else ""
    if before == drawn or not _IS_LOCKED:
        return ""
    place = kept if RENEWS else new
    place.parent.mkdir(exist_ok=True)
    place.write_text(drawn, encoding="utf-8")
    if RENEWS:
        return ""
    changes = difflib.unified_diff(_words(before), _words(drawn), "kept", "drawn", n=0, lineterm="")
    words = "\n".join(changes) or "the same words, in other colours"
    return f"{name}: compare {new} with {kept}\n{words}\n"


def _words(svg: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]*>", "", line)) for line in svg.split("\n")[2:]]
