"""Text to numbers: what a word is (`Analyzer`) and how much it weighs (`TextFeatures`)."""

from .analyzer import Analyzer
from .features import Counts, TextFeatures

__all__ = ["Analyzer", "Counts", "TextFeatures"]
