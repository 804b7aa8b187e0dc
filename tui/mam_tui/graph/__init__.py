"""Which job waits for which: read, laid out and put into words, without Textual."""
