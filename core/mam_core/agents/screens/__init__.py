"""What an agent's screen says: rules per agent as data, and the engine that reads a screen by them.

The screen is the last witness: words move from version to version, and a model can
print anything. So the rules look only at the bottom of the screen, stand in files
with a version, can be replaced by the user, and answer `unknown` rather than guess.
"""

from mam_core.agents.screens.answers import keys_for
from mam_core.agents.screens.loading import BadScreenRules, rules_for, rules_of
from mam_core.agents.screens.reading import ScreenReading, ScreenRules
from mam_core.agents.screens.rules import Choice, Meaning

__all__ = [
    "BadScreenRules",
    "Choice",
    "Meaning",
    "ScreenReading",
    "ScreenRules",
    "keys_for",
    "rules_for",
    "rules_of",
]
