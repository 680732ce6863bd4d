"""Who should beat whom, as windows: O(n) memory, never O(n²) pairs."""

from .clicks import ClickLog, Propensity
from .labels import classes_of
from .preferences import EACH, Preferences, Triples
from .win_rates import won_shares

__all__ = ["EACH", "ClickLog", "Preferences", "Propensity", "Triples", "classes_of", "won_shares"]
