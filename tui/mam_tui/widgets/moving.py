"""The keys by which one goes about in anything long; the same everywhere, or nobody learns them."""

from __future__ import annotations

from textual.binding import Binding, BindingType

#: For a widget with `action_go` (lines) and `action_page` (pages).
MOVING: tuple[BindingType, ...] = (
    Binding("down,j", "go(1)", "down", show=False),
    Binding("up,k", "go(-1)", "up", show=False),
    Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
    Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
    Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
    Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
)
