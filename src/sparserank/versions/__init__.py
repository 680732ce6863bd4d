"""The versions of a served model, and rollback."""

from ..deprecated import renamed_names
from .manifest import Version
from .registry import VersionRegistry

__all__ = ["Version", "VersionRegistry"]

__getattr__ = renamed_names(__name__, {"Versions": "VersionRegistry"})
