"""What every front end shows of the jobs, worked out without a screen, a disk or a clock."""
