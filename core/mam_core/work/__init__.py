"""Running jobs: what is checked before one may be called completed."""
