"""Roles: each has its own token and may do what the roles before it may."""

from __future__ import annotations

import http.client
import json

import pytest

from sparserank.errors import ConfigError
from sparserank.service.config import ServiceConfig

from .conftest import TOKEN
from .process import refused

ROLES = ("read", "click", "judge", "admin")
TOKENS = {role: f"the-token-of-the-role-{role}" for role in (*ROLES, "metrics")}
JUDGED = {"id": "g1", "kind": "judgment", "query": "red car", "document": "automobile-red"}
CLICKED = {"id": "g2", "kind": "click", "query": "red car", "document": "boat-red", "shown": ["boat-red"]}
REQUESTS = {
    "read": ("POST", "/search", {"query": "red"}),
    "click": ("POST", "/feedback", CLICKED),
    "judge": ("POST", "/feedback", JUDGED),
    "admin": ("POST", "/model/rollback", {"to": 1}),
}


def statuses(running, token: str | None) -> dict[str, int]:
    headers = {"Authorization": "" if token is None else f"Bearer {token}", "Host": "search.example.org"}
    return {
        role: running.client.request(method, path, json=body, headers=headers).status_code
        for role, (method, path, body) in REQUESTS.items()
    }


@pytest.fixture
def running(serve):
    return serve(host="0.0.0.0", tokens=TOKENS)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_what_the_roles_before_it_may(running, role):
    may = ROLES.index(role)
    found = statuses(running, TOKENS[role])
    for place, needed in enumerate(ROLES):
        assert found[needed] in ((200, 201) if place <= may else (403,)), (role, needed)


def test_no_token_and_a_wrong_one_are_401_and_the_main_token_may_everything(running):
    assert set(statuses(running, None).values()) == {401}
    assert set(statuses(running, "wrong-but-long-enough").values()) == {401}
    assert max(statuses(running, TOKEN).values()) < 300
    answer = running.client.post("/feedback", json=JUDGED, headers={"Authorization": f"Bearer {TOKENS['click']}"})
    assert answer.json()["detail"] == "the token of the role 'click' may not judge; use the token of the role 'judge'"


def test_metrics_have_a_token_of_their_own(running):
    for name, status in (("metrics", 200), ("admin", 200), ("judge", 403), ("read", 403)):
        headers = {"Authorization": f"Bearer {TOKENS[name]}"}
        assert running.client.get("/metrics", headers=headers).status_code == status, name
    assert statuses(running, TOKENS["metrics"]) == dict.fromkeys(ROLES, 403)
    assert running.client.get("/metrics", headers={"Authorization": ""}).status_code == 401


@pytest.mark.parametrize("options", [{"host": "0.0.0.0"}, {"trusted_proxies": ("127.0.0.1",)}])
def test_a_short_token_is_rejected_on_a_public_address(options):
    for tokens in ({"token": "x" * 15}, {"token": "", "tokens": {"click": "x" * 15}}):
        ServiceConfig("m", **tokens)
        with pytest.raises(ConfigError, match="at least 16 characters"):
            ServiceConfig("m", **tokens, **options)
    ServiceConfig("m", "x" * 16, **options)


def test_tokens_of_roles_are_checked():
    with pytest.raises(ConfigError, match="no role 'root'"):
        ServiceConfig("m", "", tokens={"root": "x"})
    with pytest.raises(ConfigError, match="the same token"):
        ServiceConfig("m", "x", tokens={"click": "x"})
    with pytest.raises(ConfigError, match="printable ASCII"):
        ServiceConfig("m", "x", tokens={"click": ""})


def test_the_command_takes_tokens_of_roles_from_files_and_the_environment(run, model, tmp_path):
    (tmp_path / "click").write_text(TOKENS["click"] + "\n")
    service = run("--no-learn", "--role-token-file", f"click={tmp_path / 'click'}",
                  env={"SPARSERANK_TOKEN": "", "SPARSERANK_JUDGE_TOKEN": TOKENS["judge"]})  # fmt: skip
    for role, status in (("click", 403), ("judge", 201)):
        headers = {"Authorization": f"Bearer {TOKENS[role]}"}
        assert service.client.post("/feedback", json=JUDGED, headers=headers).status_code == status
    assert "ROLE=FILE" in refused(model, "--role-token-file", "root=x")


@pytest.mark.parametrize("name", ["Host", "Authorization"])
def test_a_header_that_two_programs_may_read_differently_is_400(service, name):
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.putrequest("GET", "/health", skip_host=True)
    for value in ("localhost", "localhost"):
        connection.putheader(name, value)
    if name != "Host":
        connection.putheader("Host", "localhost")
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["detail"]) == (400, f"the header {name!r} was sent twice; send it once")
    connection.close()


def test_forwarded_addresses_are_read_from_a_trusted_proxy_only(serve):
    def limited(running) -> set[int]:
        named = [{"X-Forwarded-For": f"9.9.9.{number}"} for number in range(20)]
        return {running.client.get("/related/car", headers=headers).status_code for headers in named}

    assert limited(serve(rate=5)) == {200, 429}, "anybody can send the header"
    assert limited(serve(rate=5, trusted_proxies=("127.0.0.1",))) == {200}, "each address has its own rate"


def test_the_page_answers_head(service):
    for path in ("/", "/page/main.js"):
        plain = {"Accept-Encoding": "identity"}
        answer = service.client.head(path, headers=plain)
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) == len(service.client.get(path, headers=plain).content)
