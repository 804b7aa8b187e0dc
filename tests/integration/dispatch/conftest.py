"""Nodes that share a dispatch registry: folders with names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dispatching import Node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "mac1", "mac1")


@pytest.fixture
def other(node: Node, tmp_path: Path) -> Node:
    """A second node, with a registry of its own, on the same file."""
    return Node(tmp_path / "mac2", "mac2", node.path)


@pytest.fixture(autouse=True)
def _nobody_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that a command leaves behind would outlive the test."""
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: None)
