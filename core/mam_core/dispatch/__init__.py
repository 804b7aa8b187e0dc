"""The dispatch registry: one JSON file of tasks that several nodes share, in its document's shape.

The file is another view of jobs, not another engine: a task that is run becomes a
job, and what becomes of the job is written back into the file.
"""
