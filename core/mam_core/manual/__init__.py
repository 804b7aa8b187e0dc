"""The manual: the pages of ``docs/``, found where mam is installed and drawn in a terminal."""
