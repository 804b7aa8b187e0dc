"""Jobs that are registered by the clock: when they are due, and that each is made once."""
