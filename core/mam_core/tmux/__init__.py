"""The agents' sessions in tmux: a private server, acted on, looked at and typed into."""
