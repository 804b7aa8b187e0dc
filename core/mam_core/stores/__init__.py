"""Where records live: one protocol, one contract suite, several stores."""
