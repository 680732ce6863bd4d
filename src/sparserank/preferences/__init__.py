"""Preferences between items, stored as windows in O(n) memory, and judgments from clicks and triples."""

from ..deprecated import renamed_names
from .clicks import ClickLog, ClickPreferences, Propensity, search_grades
from .preferences import Preferences, Triples, classes_of
from .win_rates import win_rates
from .windows import EACH

__all__ = [
    "EACH", "ClickLog", "ClickPreferences", "Preferences", "Propensity", "Triples", "classes_of",
    "search_grades", "win_rates",
]  # fmt: skip

__getattr__ = renamed_names(__name__, {"won_shares": "win_rates"})
