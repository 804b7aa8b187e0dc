"""What the view of groups shows, without Textual."""
