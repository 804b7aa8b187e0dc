"""What became of jobs, gathered once and written as a page of HTML or Markdown."""
