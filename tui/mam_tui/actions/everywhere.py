"""What can be done wherever the operator is."""

from __future__ import annotations

from mam_tui.actions.kinds import Action, Place
from mam_tui.actions.reasons import needs_a_deed, needs_an_agent

EVERYWHERE: tuple[Action, ...] = (
    Action("undo", "u", "undo", Place.EVERYWHERE, changes=True, why_not=needs_a_deed, weight=48),
    Action(
        "spawn", "s", "spawn", Place.EVERYWHERE, changes=True, weight=60, aliases=("sp", "start")
    ),
    Action(
        "attach",
        "a",
        "attach",
        Place.EVERYWHERE,
        changes=True,  # whoever is attached can type
        why_not=needs_an_agent,
        weight=62,
        aliases=("a",),
    ),
    Action(
        "say",
        "m",
        "say",
        Place.EVERYWHERE,
        changes=True,
        why_not=needs_an_agent,
        weight=56,
    ),
    Action(
        "answer",
        "A",
        "answer",
        Place.EVERYWHERE,
        changes=True,
        why_not=needs_an_agent,
        weight=64,
    ),
    Action("needing", "w", "only what needs you", Place.EVERYWHERE, weight=54),
    Action("attention", "", "what needs you, as a list", Place.EVERYWHERE, aliases=("!",)),
    Action("travel", "t", "the past", Place.EVERYWHERE, weight=34),
    Action(
        "pause",
        "p",
        "hold the picture",
        Place.EVERYWHERE,
        weight=30,
        only_now=True,
        aliases=("p", "hold"),
    ),
    Action("refresh", "ctrl+r", "read everything again", Place.EVERYWHERE, aliases=("reload",)),
    Action("command", "colon", "command", Place.EVERYWHERE, weight=40),
    Action(
        "help", "question_mark", "keys", Place.EVERYWHERE, weight=100, aliases=("h", "?", "keys")
    ),
    Action(
        "read-only", "", "switch read-only mode", Place.EVERYWHERE, aliases=("R", "ro", "readonly")
    ),
    Action(
        "screenshot", "", "picture of the screen, as SVG", Place.EVERYWHERE, aliases=("S", "shot")
    ),
    Action("audit", "", "what is out of order", Place.EVERYWHERE, only_now=True, aliases=("A",)),
    Action(
        "schedules",
        "",
        "what the clock registers",
        Place.EVERYWHERE,
        only_now=True,
        aliases=("s", "cron"),
    ),
    Action(
        "report",
        "",
        "page about jobs for a colleague",
        Place.EVERYWHERE,
        only_now=True,
        aliases=("B", "page"),
    ),
    Action("log", "at", "what was done here", Place.EVERYWHERE),
    Action("back", "escape", "back", Place.EVERYWHERE),
    Action("last-view", "minus", "the view before", Place.EVERYWHERE),
    Action("suspend", "ctrl+z", "to the shell; fg comes back", Place.EVERYWHERE),
    Action("quit", "q", "quit", Place.EVERYWHERE, aliases=("q", "q!", "exit")),
)
