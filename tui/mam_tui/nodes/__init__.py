"""The hosts as rows: heard of, laid out, and what can be done to them."""
