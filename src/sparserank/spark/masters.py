"""Checks of Java and of the master, within seconds and before Spark starts: Spark itself would try for minutes."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ConfigError

MIN_JAVA_VERSION = 17
MASTER_TIMEOUT_S = 5.0
MASTERS = "local[*], local[N], local-cluster[N,CORES,MEGABYTES], spark://HOST:PORT, k8s://https://HOST:PORT or yarn"
_MISSING_FILE = b"/files/sparserank"
_TLS_ALERT = 0x15


def java_version() -> int:
    """The major version of the Java that Spark would use; raise ConfigError without Java 17 or newer.

    Like Spark, this looks at JAVA_HOME first and then at the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    need = f"Spark needs Java {MIN_JAVA_VERSION} or newer"
    if program is None:
        raise ConfigError(f"{need}, and there is no java on the PATH; install it, or set JAVA_HOME")
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise ConfigError(f"{need}, and {program} cannot be run ({error.strerror}); set JAVA_HOME") from None
    version = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    if version is None:
        raise ConfigError(f"{need}, and {program} does not print its version; set JAVA_HOME")
    if int(version[1]) < MIN_JAVA_VERSION:
        raise ConfigError(f"{need}; {program} is Java {version[1]}; set JAVA_HOME to a newer one")
    return int(version[1])


def check_master(master: str, timeout_s: float = MASTER_TIMEOUT_S) -> None:
    """Raise ConfigError for a master that is not valid, does not answer, or is no Spark master."""
    if master == "yarn":
        folder = os.environ.get("YARN_CONF_DIR") or os.environ.get("HADOOP_CONF_DIR")
        if folder is None or not Path(folder).is_dir():
            raise ConfigError(
                "master 'yarn' needs HADOOP_CONF_DIR or YARN_CONF_DIR to name the folder of the cluster's settings; "
                f"got {folder!r}"
            )
        return
    failures = []
    for host, port in _addresses(master):
        try:
            with socket.create_connection((host, port), timeout=timeout_s) as connection:
                if not master.startswith("spark://") or _may_be_spark(connection):
                    return
            failures.append(f"something answers at {host}:{port}, but it is no Spark master")
        except OSError as error:
            failures.append(f"{host}:{port}: {error.strerror or error}")
    raise ConfigError(f"the master {master!r} cannot be reached ({'; '.join(failures)}); is it running there?")


def _addresses(master: str) -> list[tuple[str, int]]:
    if master.startswith("spark://"):
        urls = [f"spark://{part}" for part in master.removeprefix("spark://").split(",")]
    elif master.startswith("k8s://"):
        rest = master.removeprefix("k8s://")
        urls = [rest if "://" in rest else f"https://{rest}"]
    else:
        raise ConfigError(f"there is no master {master!r}; it must be {MASTERS}")
    out = []
    for url in urls:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        except ValueError:
            host, port = None, None
        if not host or not port:
            raise ConfigError(f"the master {master!r} names no host and port; it must be {MASTERS}")
        out.append((host, port))
    return out


def _may_be_spark(connection: socket.socket) -> bool:
    """False if the other side speaks first, or answers a request of Spark's protocol with something else.

    A master answers a request for a missing file with a frame that starts with its length in 8 bytes. A master that
    requires encryption is silent or sends a TLS alert; Spark itself reports that.
    """
    request = b"\x06" + len(_MISSING_FILE).to_bytes(4, "big") + _MISSING_FILE
    try:
        connection.sendall((8 + len(request)).to_bytes(8, "big") + request)
        answer = connection.recv(4096)  # read all: closing on unread bytes logs a warning there
    except OSError:
        return True
    return not answer or answer[0] in (0, _TLS_ALERT)
