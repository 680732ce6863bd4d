"""The versions of a served model, and rollback."""

from .manifest import Version
from .registry import VersionRegistry

__all__ = ["Version", "VersionRegistry"]
