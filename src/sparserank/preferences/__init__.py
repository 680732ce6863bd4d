"""Who should beat whom, as windows: O(n) memory, never O(n²) pairs."""

from .windows import EACH, Preferences, Triples

__all__ = ["EACH", "Preferences", "Triples"]
