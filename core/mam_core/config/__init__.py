"""``mam.toml`` and the environment: every setting, and where its value came from."""

from mam_core.config.loading import CONFIG_VARIABLE, VARIABLES, Config, Entry, Value, load

__all__ = ["CONFIG_VARIABLE", "VARIABLES", "Config", "Entry", "Value", "load"]
