"""What a tool is: a name, what it takes, what it does; arguments are checked before a call.

An argument that is wrong is told to the model in one sentence, as the result of the call: that
is how it learns to do better. So this is no error of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mam_core.config import Config
from mam_core.errors import InvalidField
from mam_core.registry import Registry


class Ground(NamedTuple):
    """What a call works on. It has a registry of its own, so that calls can run side by side."""

    registry: Registry
    registry_path: str
    config: Config
    is_stopped: Callable[[], bool]  #: the client does not want the answer any more


class Argument(NamedTuple):
    """One thing that a tool takes."""

    kind: str  #: as JSON Schema names it: string, integer, number, boolean or array (of strings)
    meaning: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def schema(self) -> dict[str, Any]:
        known: dict[str, Any] = {"type": self.kind, "description": self.meaning}
        if self.kind == "array":
            known["items"] = {"type": "string"}
        if self.choices:
            known["enum"] = list(self.choices)
        if self.least is not None:
            known["minimum"] = self.least
        if self.most is not None:
            known["maximum"] = self.most
        return known

    def checked(self, name: str, value: Any) -> Any:
        if self.kind == "array":
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise InvalidField(f"{name} must be a list of strings")
            return value
        if not _KINDS[self.kind](value):
            raise InvalidField(f"{name} must be of type {self.kind}")
        if self.choices and value not in self.choices:
            raise InvalidField(f"{name} must be one of {', '.join(self.choices)}")
        if self.least is not None and value < self.least:
            raise InvalidField(f"{name} must be at least {self.least:g}")
        if self.most is not None and value > self.most:
            raise InvalidField(f"{name} must be at most {self.most:g}")
        return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_whole,
    "number": lambda value: _is_whole(value) or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
}

#: A JSON value for the model; raises `MamError` with a sentence for it.
Call = Callable[[Ground, Mapping[str, Any]], Any]


class Tool(NamedTuple):
    """`changes`: only there when the operator allowed it."""

    name: str
    title: str
    meaning: str
    arguments: Mapping[str, Argument]
    call: Call
    changes: bool = False
    destroys: bool = False

    def to_dict(self) -> dict[str, Any]:
        required = [name for name, one in self.arguments.items() if one.required]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: one.schema() for name, one in self.arguments.items()},
            "additionalProperties": False,
        }
        if required:
            schema["required"] = required
        hints = {"readOnlyHint": not self.changes, "openWorldHint": False}
        if self.changes:
            hints["destructiveHint"] = self.destroys
        return {
            "name": self.name,
            "title": self.title,
            "description": self.meaning,
            "inputSchema": schema,
            "annotations": hints,
        }

    def checked(self, given: Any) -> dict[str, Any]:
        """Raises `InvalidField`."""
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise InvalidField("the arguments must be an object")
        for name in given:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "no argument at all"
                raise InvalidField(f"{self.name} has no argument {name[:40]!r}; it takes {known}")
        for name, one in self.arguments.items():
            if one.required and given.get(name) is None:
                raise InvalidField(f"{self.name} needs {name}: {one.meaning}")
        told = {name: value for name, value in given.items() if value is not None}
        return {name: self.arguments[name].checked(name, value) for name, value in told.items()}
