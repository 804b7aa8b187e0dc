"""No class of the console takes a private name of the library class that it derives from.

A library renames and adds such names in any release: `_arrange` of a screen was ours alone until
it was also Textual's, and every layout called it. So names are compared as the source has them,
attributes that are assigned to `self` among them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache

import mam_tui

_LIBRARIES = {"textual", "libtmux", "paho"}

#: What is overridden on purpose, where the library has no public door, and the test that notices
#: when the library goes another way.
_ON_PURPOSE = {
    # A traceback with all values is no way out: tests/console/test_crash.py.
    ("CarefulApp", "_fatal_error"),
    # Screens that nobody sees cost no frames: tests/console/test_attention_view.py.
    ("CarefulApp", "_background_screens"),
    # A size that a timer should have brought is brought after all: tests/console/test_soon.py.
    ("CarefulApp", "_resize_event"),
}


def test_nothing_private_of_a_library_is_shadowed() -> None:
    derived = [one for one in _our_classes() if any(map(_is_foreign, one.__mro__))]
    assert len(derived) > 50  # else they are looked for in the wrong place
    taken = {
        (ours.__name__, name): f"{ours.__module__}.{ours.__qualname__}.{name} of {theirs.__name__}"
        for one in derived
        for ours in one.__mro__
        for theirs in one.__mro__
        # A mixin of ours derives from nothing: it is the class made of both that counts.
        if _is_ours(ours) and _is_foreign(theirs)
        for name in _private_names(ours) & _private_names(theirs)
    }
    assert taken.keys() - _ON_PURPOSE == set(), "\n".join(sorted(taken.values()))
    assert taken.keys() >= _ON_PURPOSE, "what is no longer overridden needs no exception"


def _our_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(mam_tui.__path__, "mam_tui."):
        yield from _classes_in(importlib.import_module(module.name), module.name)


def _classes_in(place: object, module: str) -> Iterator[type]:
    for one in vars(place).values():
        if inspect.isclass(one) and one.__module__ == module:
            yield one
            yield from _classes_in(one, module)


def _is_ours(one: type) -> bool:
    return one.__module__.startswith("mam_tui.")


def _is_foreign(one: type) -> bool:
    return one.__module__.split(".")[0] in _LIBRARIES


@cache
def _private_names(one: type) -> frozenset[str]:
    """Of this class alone, with one underscore: what its body binds and its methods assign."""
    body = _bodies(one.__module__).get(one.__qualname__)
    if body is None:  # made by a call
        return frozenset()
    names = set(_bound_by(body))
    names |= {
        node.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return frozenset(name for name in names if name.startswith("_") and not name.startswith("__"))


def _bound_by(body: ast.ClassDef) -> Iterator[str]:
    for node in body.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def _bodies(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module by their qualified names."""
    found: dict[str, ast.ClassDef] = {}

    def look(node: ast.AST, before: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[before + child.name] = child
                look(child, f"{before}{child.name}.")
            elif isinstance(child, ast.If | ast.Try):
                look(child, before)

    look(ast.parse(inspect.getsource(sys.modules[module])), "")
    return found
