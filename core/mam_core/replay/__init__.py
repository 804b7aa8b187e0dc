"""The registry as it was at any moment, made from the audit log alone."""
