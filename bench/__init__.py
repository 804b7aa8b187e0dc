"""The figures of mam, as ratios to yardsticks that are measured in the same run."""
