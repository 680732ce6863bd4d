"""The OpenAPI document holds: requests generated from it, right and wrong ones, are all answered as it says."""

from __future__ import annotations

import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.openapi import from_asgi

from sparserank.service.app import create_app
from sparserank.service.settings import Settings

from .conftest import TOKEN
