"""Forms: what an operator fills in instead of typing a command."""
