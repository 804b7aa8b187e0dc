"""The console in the past: every view as it was at a moment, made from the audit log."""
