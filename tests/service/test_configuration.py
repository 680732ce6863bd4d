"""Options from a TOML file, from the environment and from the command line; and the check of all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields

import pytest

from sparserank.service.config import ServiceConfig

from ..cli.calling import call

pytestmark = pytest.mark.usefixtures("logging_as_it_was")


def write(path, **options):
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items()))
    return path


@pytest.fixture
def seen(monkeypatch):
    """The configuration that the command would serve."""
    found = []
    monkeypatch.setattr(
        "sparserank.service.server.check",
        lambda config: found.append(config) or dict.fromkeys(config.by_collection, (1, 24)),
    )
    return found


def test_the_command_line_beats_the_environment_and_the_environment_the_file(model, tmp_path, seen, monkeypatch):
    file = write(tmp_path / "s.toml", model=str(model), rate=5.0, learn_every=6.0, drain=7.0, learn=False)
    monkeypatch.setenv("SPARSERANK_SERVE_LEARN_EVERY", "60")
    monkeypatch.setenv("SPARSERANK_SERVE_DRAIN", "70")
    assert call("serve", "--config", file, "--check", "--drain", "700") == 0
    (config,) = seen
    assert (config.rate, config.learn_every, config.drain, config.learn) == (5.0, 60.0, 700.0, False)
    assert config.model == str(model)


def test_every_option_can_be_in_the_file(model, tmp_path, seen):
    (tmp_path / "token").write_text("a-token-that-is-long-enough")
    (tmp_path / "click").write_text("another-that-is-long-enough")
    options = {
        "model": str(model), "index": f"{model}.index", "database": f"sqlite:///{tmp_path}/f.sqlite",
        "host": "0.0.0.0", "held_out": "pydocs", "held_out_split": "test", "learn": False, "learn_every": 1.0,
        "rate": 2.0, "open_reads": True, "unsigned_clicks": True, "clicks_per_visitor": 4, "clicks_per_address": 5,
        "drain": 6.0, "round_timeout": 7.0, "keep_versions": 8, "log_format": "json",
        "telemetry": True, "promote_after": 9, "promote_level": 0.5,
    }  # fmt: skip
    others = {
        "token_file": str(tmp_path / "token"), "role_token_file": [f"click={tmp_path / 'click'}"],
        "trusted_proxy": ["10.0.0.0/8"], "port": 9, "workers": 2,
    }  # fmt: skip
    assert call("serve", "--config", write(tmp_path / "s.toml", **options, **others), "--check") == 0
    (config,) = seen
    expected = {**options, "trusted_proxies": ("10.0.0.0/8",), "token": "a-token-that-is-long-enough"}
    expected["collections"] = ()
    expected["tokens"] = {"click": "another-that-is-long-enough"}
    assert {field.name: getattr(config, field.name) for field in fields(ServiceConfig)} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modell = 1", "there is no option 'modell'; the options are: as_json, clicks_per_address, "),
        ("rate = ", "not TOML: "),
        ('rate = "x"', "--rate"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(model, tmp_path, capsys, text, message):
    (tmp_path / "s.toml").write_text(text)
    assert call("serve", model, "--config", tmp_path / "s.toml", "--check") == 2
    told = capsys.readouterr().err.splitlines()
    assert message in told[-1]


def test_the_check_says_what_is_wrong_and_starts_nothing(model, tmp_path):
    def check(*words):
        command = [sys.executable, "-m", "sparserank", "serve", str(model), "--check", "--json", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)

    good = check("--no-learn")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout) == {
        "model": str(model), "version": 1, "documents": 24, "workers": 1, "ok": True,
        "database": f"sqlite:///{model}.feedback.sqlite",
    }  # fmt: skip
    bad = check("--database", f"sqlite:///{tmp_path}/nowhere/f.sqlite")
    assert bad.returncode == 2
    assert "nowhere" in bad.stderr


def test_json_logs_name_the_request_and_neither_its_words_nor_the_token(run):
    service = run("--no-learn", "--log-format", "json")
    first = service.client.post(
        "/search", json={"query": "a secret query"}, headers={"X-Request-ID": "from-the-proxy.1"}
    )
    second = service.client.get("/nowhere", headers={"X-Request-ID": "not valid\t{}"})
    assert first.headers["x-request-id"] == "from-the-proxy.1"
    assert len(second.headers["x-request-id"]) == 16
    service.end()
    text = service.said.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    found = {line["request_id"]: line for line in lines if line["logger"] == "sparserank.requests"}
    search = found["from-the-proxy.1"]
    assert (search["method"], search["route"], search["status"], search["level"]) == ("POST", "/search", 200, "INFO")
    assert found[second.headers["x-request-id"]]["status"] == 404
    assert "secret query" not in text
    assert "a-token-of-the-tests" not in text
