"""The manifests for Kubernetes and the compose file: valid, and in agreement with the image and the command line."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from .test_container import of

ROOT = Path(__file__).parent.parent
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))


def resources() -> list[dict]:
    return [resource for path in MANIFESTS for resource in yaml.safe_load_all(path.read_text())]


def one(kind: str) -> dict:
    (found,) = [resource for resource in resources() if resource["kind"] == kind]
    return found


def pod() -> dict:
    return one("Deployment")["spec"]["template"]["spec"]


@pytest.mark.parametrize("resource", resources(), ids=lambda resource: resource["kind"])
def test_kubernetes_accepts_every_resource(resource):
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_a_manifest_with_a_mistake_is_found():
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    wrong = one("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_the_options_of_the_manifest_are_options_of_the_command():
    from typer.main import get_command

    from sparserank.cli.app import app
    from sparserank.service.config import ServiceConfig

    options = tomllib.loads(one("ConfigMap")["data"]["service.toml"])
    known = {parameter.name for parameter in get_command(app).commands["serve"].params}
    assert set(options) <= known
    ServiceConfig(options["model"], "x" * 16, host=options["host"], drain=options["drain"],
                  trusted_proxies=tuple(options["trusted_proxy"]), log_format=options["log_format"])  # fmt: skip
    mounted = {mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]}
    files = [options["model"], options["token_file"], *(one.partition("=")[2] for one in options["role_token_file"])]
    assert all(f"/{Path(file).parts[1]}" in mounted for file in files)


def test_the_pod_runs_as_the_user_of_the_image_and_has_time_to_drain():
    (made,) = [run for run in of("RUN") if "useradd" in run]
    assert pod()["securityContext"]["runAsUser"] == int(re.search(r"--uid (\d+)", made)[1])
    options = tomllib.loads(one("ConfigMap")["data"]["service.toml"])
    assert pod()["terminationGracePeriodSeconds"] > options["drain"] + 20
    (container,), (check,) = pod()["containers"], pod()["initContainers"]
    for confined in (container, check):
        assert confined["securityContext"]["readOnlyRootFilesystem"]
        assert not confined["securityContext"]["allowPrivilegeEscalation"]
    assert check["command"] == [*container["command"], "--check"]


def test_probes_ask_for_what_needs_no_token_and_liveness_no_database():
    (container,) = pod()["containers"]
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/ready", "readinessProbe": "/ready", "livenessProbe": "/"}
    from sparserank.service.middleware import OPEN_PATHS

    assert set(paths.values()) <= OPEN_PATHS
    assert container["ports"][0]["containerPort"] == int(of("EXPOSE")[0])
    assert one("Service")["spec"]["selector"] == one("Deployment")["spec"]["selector"]["matchLabels"]


def test_the_compose_file_names_what_is_there_and_options_that_exist():
    from typer.main import get_command

    from sparserank.cli.app import app

    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    service, serve = compose["services"]["sparserank"], get_command(app).commands["serve"]
    assert (ROOT / "deploy" / service["build"] / "Dockerfile").exists()
    options = {option for parameter in serve.params for option in parameter.opts}
    assert {word for word in service["command"] if word.startswith("--")} <= options
    variables = {f"SPARSERANK_SERVE_{parameter.name.upper()}" for parameter in serve.params}
    assert set(service["environment"]) <= variables
    assert set(service["secrets"]) <= set(compose["secrets"])
    named = {volume.split(":")[0] for one in compose["services"].values() for volume in one["volumes"]}
    assert {name for name in named if not name.startswith(".")} <= set(compose["volumes"])
    assert set(service["depends_on"]) <= set(compose["services"])
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert json.loads(of("CMD")[0])[0] == service["command"][0]
