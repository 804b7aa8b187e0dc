"""A demonstration: a registry of its own in a folder of its own, with agents that are simulated.

Nothing here talks to a model. Everything else is real: records, workers, supervisors,
sessions in tmux, the broker. `operations/demo` puts it together.
"""
