"""The operator console: a Textual app that shows the registry live and acts on it by key."""
