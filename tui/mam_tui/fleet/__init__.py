"""Which agents' screens the fleet shows, and where each stands."""
