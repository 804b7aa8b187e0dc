"""Attempts over time: read once for the Gantt and the charts, and cut to what is seen."""
