"""What needs a person: kept in order, read in full, put into words, and called out."""
