"""Component classes as styles that can be laid over a line, in light and dark alike.

Textual's muted colours are half transparent: taken for themselves they are plain
white. So each is first put on its widget's ground, and of the result only what
belongs to the writing is kept.
"""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget


def ink(widget: Widget, name: str) -> Style:
    """The colour and weight of the writing; the ground is the line's own."""
    full = widget.get_component_rich_style(name)
    return Style(
        color=full.color,
        bold=full.bold,
        italic=full.italic,
        underline=full.underline,
        reverse=full.reverse,
        dim=full.dim,
    )
