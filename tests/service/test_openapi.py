"""The OpenAPI document holds: requests generated from it, right and wrong ones, are all answered as it says."""

from __future__ import annotations

import shutil

import pytest
import schemathesis
from benchmarks.soak.fuzz import config, with_known_documents
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.python.asgi import get_client

from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig

from .conftest import TOKEN

EXAMPLES = {
    "POST /search": 110,
    "POST /explain": 90,
    "POST /compare": 90,
    "POST /feedback": 110,
    "POST /model/rollback": 30,
    "POST /model/promote": 10,
    "POST /model/withdraw": 10,
    "GET /related/{word}": 40,
    "GET /documents/{id}": 40,
    "GET /changes": 40,
    "GET /judgments": 20,
    "GET /model": 5,
    "GET /health": 5,
    "GET /ready": 5,
    "GET /metrics": 5,
}
REQUESTS = 500
"""At least so many in all; schemathesis adds some of its own to check methods and tokens."""


@pytest.fixture
def app(small_model, tmp_path):
    for ending in ("", ".index"):
        shutil.copy(f"{small_model}{ending}", tmp_path)
    path = str(tmp_path / small_model.name)
    # for any host name: schemathesis calls it 'testserver'
    made = create_app(ServiceConfig(path, TOKEN, learn=False, rate=1e9, host="0.0.0.0", open_reads=True))
    yield made
    made.state.service.store.close()


@pytest.mark.slow
def test_every_generated_request_is_answered_as_the_document_says(app):
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=SchemathesisConfig.from_dict(config(TOKEN)))
    schema.hook("map_body")(with_known_documents)
    operations = {found.ok().label: found.ok() for found in schema.get_all_operations()}
    assert set(operations) == set(EXAMPLES)
    statuses: dict[int, int] = {}
    with get_client(app) as client:
        for name, operation in operations.items():

            @settings(
                max_examples=EXAMPLES[name],
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                deadline=None,
                derandomize=True,
                database=None,
            )
            @given(case=operation.as_strategy())
            def check(case):
                response = case.call_and_validate(session=client)
                statuses[response.status_code] = statuses.get(response.status_code, 0) + 1

            check()
    assert sum(statuses.values()) >= REQUESTS
    assert {200, 201, 404, 422} <= set(statuses), "right and wrong ones, known and unknown documents"
    assert max(statuses) < 500


def test_every_status_of_an_error_is_one_sentence(app):
    for path, operations in app.openapi()["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    problem = answer["content"]["application/json"]["schema"]
                    assert problem == {"$ref": "#/components/schemas/Problem"}, (path, status)


def test_writes_are_told_to_need_the_token_and_reads_not_to(app):
    document = app.openapi()
    needs = {path for path, operations in document["paths"].items() for one in operations.values() if "security" in one}
    assert needs == {"/feedback", "/judgments", "/model/rollback", "/model/promote", "/model/withdraw"}
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
