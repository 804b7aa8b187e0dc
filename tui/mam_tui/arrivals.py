"""What comes over from the bridge's threads, as types."""

from __future__ import annotations

from typing import NamedTuple

from mam_core.events.feed import Item
from mam_core.operations.listing import Listing
from mam_tui.state_watch import States


class Loaded(NamedTuple):
    """Every job that there was when we began to listen."""

    jobs: Listing


class Removal(NamedTuple):
    """What a person must know about a registry that was here before."""

    text: str


class Trouble(NamedTuple):
    """What cannot be done, and why; it is tried again."""

    text: str
    is_blind: bool = True  #: the registry cannot be listened to; else only a duty is not done


Arrival = Item | Loaded | Removal | Trouble | States
