"""The registry as tools for agents: the Model Context Protocol on stdin and stdout."""
