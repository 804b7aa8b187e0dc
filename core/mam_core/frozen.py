"""A frozen record without the price of a data class.

``dataclasses`` writes and compiles the methods of a class anew at every start:
5 ms for the forty fields of a job, in commands that take 60. To the type
checker this decorator is the same; at run time it shares a few plain methods.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar, dataclass_transform

_Record = TypeVar("_Record")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[_Record]) -> type[_Record]:
    """Fields are the annotated names, in order; a value beside one is its default."""
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}

    def __init__(self: _Record, *args: Any, **given: Any) -> None:
        values = defaults | dict(zip(names, args, strict=False)) | given
        if len(args) > len(names) or values.keys() != set(names):
            wrong = sorted(values.keys() ^ set(names)) or ["too many"]
            raise TypeError(f"{cls.__name__}: missing or unknown: {', '.join(wrong)}")
        self.__dict__.update(values)

    methods: dict[str, Any] = {
        "__init__": __init__,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__eq__": _equal,
        "__repr__": _show,
    }
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise AttributeError(f"a {type(self).__name__} is frozen: {name} cannot be changed")


def _equal(self: object, other: object) -> bool:
    return type(self) is type(other) and self.__dict__ == other.__dict__


def _show(self: object) -> str:
    values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
    return f"{type(self).__name__}({values})"
