"""One verb, one file: what an operator can do, for the console, the command line and scripts."""
