"""Java and the master, tried within seconds before Spark starts: Spark itself would try for minutes."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ConfigError

OLDEST_JAVA = 17
REACH = 5.0
"""Seconds that a master has to answer in."""
MASTERS = "local[*], local[N], local-cluster[N,CORES,MEGABYTES], spark://HOST:PORT, k8s://https://HOST:PORT or yarn"
_NO_FILE = b"/files/sparserank"
_TLS_ALERT = 0x15


def java() -> int:
    """The major version of the Java that Spark would run on; none, or one before 17, is refused.

    JAVA_HOME is looked at first, then the PATH, as Spark does it.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    wanted = f"Spark needs Java {OLDEST_JAVA} or newer"
    if found is None:
        raise ConfigError(f"{wanted}, and there is no java on the PATH; install it, or set JAVA_HOME")
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise ConfigError(f"{wanted}, and {found} cannot be run ({error.strerror}); set JAVA_HOME") from None
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None:
        raise ConfigError(f"{wanted}, and {found} does not tell its version; set JAVA_HOME")
    if int(version[1]) < OLDEST_JAVA:
        raise ConfigError(f"{wanted}; {found} is Java {version[1]}; set JAVA_HOME to a newer one")
    return int(version[1])


def reached(master: str, seconds: float = REACH) -> None:
    """Refuse a master that is none, that does not answer, or that answers as something else does."""
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
            with socket.create_connection((host, port), timeout=seconds) as connection:
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
    """False where the other side speaks first, or answers a question of Spark's protocol with something else.

    Asked for a file that there is none of, a master says so in a frame that begins with its length in 8 bytes. One that
    wants to be spoken to in secret is silent, or sends an alert of TLS; Spark is left to find out about that.
    """
    question = b"\x06" + len(_NO_FILE).to_bytes(4, "big") + _NO_FILE
    try:
        connection.sendall((8 + len(question)).to_bytes(8, "big") + question)
        answer = connection.recv(4096)  # all of it: a connection closed on unread bytes is a warning there
    except OSError:
        return True
    return not answer or answer[0] in (0, _TLS_ALERT)
