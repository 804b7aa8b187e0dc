"""What `mam doctor` looks at: one module for each area, one small function for each question."""
