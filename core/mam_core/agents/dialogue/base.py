"""A dialogue: a stream that is read, and that can be answered.

Bytes and messages in, bytes and facts out; no pipe and no clock of its own, so
that every step can be replayed from a recording.
"""

from __future__ import annotations

from typing import Protocol

from mam_core.agents.streams.base import Happening, StreamParser
from mam_core.messages import Message, Receipt


class Dialogue(StreamParser, Protocol):
    """One attempt's output, and what is said to it."""

    def begin(self, prompt: str) -> None:
        """The first turn. Raises `InvalidField` for a prompt that cannot be said."""

    def offer(self, message: Message) -> None:
        """Say it, or refuse it; what comes of it is among the receipts."""

    def spoken(self) -> bytes:
        """What is to be written to its input, since the last call."""

    def was_read(self) -> None:
        """The agent has read everything that was written."""

    def receipts(self) -> list[Receipt]:
        """What became known about messages, since the last call."""

    def news(self) -> list[Happening]:
        """How its state changed by what was said to it, since the last call."""

    @property
    def waits_for_person(self) -> bool:
        """It stands still until somebody answers."""

    @property
    def is_resting(self) -> bool:
        """Its turn is over: that it says nothing is our doing."""

    def may_hang_up(self, now: float) -> bool:
        """Nothing more is to come: its input may be closed, and it will end."""
