"""Agents as programs: how each is started, and what its output means."""
