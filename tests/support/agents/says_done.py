"""A stand-in agent that says that it is done and has made nothing."""

print("stand-in agent: this one only says so", flush=True)
print("All done! I have written report.md and every test passes.")
