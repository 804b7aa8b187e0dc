"""Every job that ever was: read page by page, and two attempts compared."""
