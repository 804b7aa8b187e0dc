"""The agent sessions as rows: looked at, laid out, and what can be done to them."""
