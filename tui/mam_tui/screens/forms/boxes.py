"""From box to box: how a form hears the keys that leave one.

With priority, so that the focus is where it belongs before the next letter comes: what is typed
ahead on a busy machine, or pasted, never lands in the box before.
"""

from __future__ import annotations

from textual.binding import Binding, BindingType

BOXES: list[BindingType] = [
    Binding("tab", "app.focus_next", "next box", show=False, priority=True),
    Binding("shift+tab", "app.focus_previous", "box before", show=False, priority=True),
]
