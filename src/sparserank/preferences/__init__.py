"""Who should beat whom, as windows: O(n) memory, never O(n²) pairs."""

from .classes import classes_of
from .clicks import ClickLog, Propensity
from .windows import EACH, Preferences, Triples
from .won import won_shares

__all__ = ["EACH", "ClickLog", "Preferences", "Propensity", "Triples", "classes_of", "won_shares"]
