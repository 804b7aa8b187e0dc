"""mam's core: jobs as contracts on disk, and everything that happens to them."""
