"""Events: the news about jobs. Fast, signed where asked for, and never needed to be right."""
