"""Who should beat whom, as windows: O(n) memory, never O(n²) pairs."""

from .classes import classes_of
from .windows import EACH, Preferences, Triples

__all__ = ["EACH", "Preferences", "Triples", "classes_of"]
