"""Files that are shipped as they are."""
