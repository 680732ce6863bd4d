"""A Spark session that is known to work before anything is computed.

Java, the master and the executors are tried in this order, each within seconds, and each failure is one sentence. On a
machine's own masters (`local[…]`, `local-cluster[…]`) executors get this Python and this package, and everything binds
to the loopback address; on a cluster both are the cluster's own matter, and `session` only looks whether they fit.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import __version__, check
from ..errors import ConfigError
from .frames import reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
REACH = 5.0
"""Seconds that a master has to answer in."""
EXECUTORS = 120.0
"""Seconds that a master has to start the first executor in."""
DRIVER = 1
"""Members of a cluster that are no executors."""
LOOPBACK = "127.0.0.1"
_OWN = re.compile(r"local(\[(\*|[1-9]\d*)(, *\d+)?\])?|local-cluster\[ *[1-9]\d* *, *[1-9]\d* *, *[1-9]\d* *\]")
_MASTERS = "local[*], local[N], local-cluster[N,CORES,MEGABYTES], spark://HOST:PORT, k8s://https://HOST:PORT or yarn"


def session(master: str = "local[*]", *, app: str = "sparserank", **conf: Any) -> SparkSession:
    """The session of this process on `master`, started where there is none yet.

    conf : settings of Spark by their full names, `**{"spark.executor.memory": "4g"}`; they win over the defaults here.
    Where a session runs already (a notebook of Databricks, `spark-submit`) pass that one to the functions of this
    package, or ask for its own master.
    """
    check.installed("pyspark", extra="spark")
    check.installed("pandas", extra="spark")
    own = _OWN.fullmatch(master) is not None
    if not own:
        reached(master)
    _refuse_another(master)
    java()
    started = _started(master, app, own, {name: str(value) for name, value in conf.items()})
    try:
        if not master.startswith("local["):
            _executors_answer(started, master)
    except BaseException:
        started.stop()
        raise
    return started


@contextmanager
def opened(master: str = "local[*]", **conf: Any) -> Iterator[SparkSession]:
    """`session`, stopped at the end where it was started here."""
    check.installed("pyspark", extra="spark")
    from pyspark import SparkContext

    there = SparkContext._active_spark_context is not None
    spark = session(master, **conf)
    try:
        yield spark
    finally:
        if not there:
            spark.stop()


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
    """Refuse a master that is none, or that does not answer: Spark itself would try for minutes."""
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
            socket.create_connection((host, port), timeout=seconds).close()
            return
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
        raise ConfigError(f"there is no master {master!r}; it must be {_MASTERS}")
    out = []
    for url in urls:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        except ValueError:
            host, port = None, None
        if not host or not port:
            raise ConfigError(f"the master {master!r} names no host and port; it must be {_MASTERS}")
        out.append((host, port))
    return out


def _refuse_another(master: str) -> None:
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    if running is not None and running.master != master:
        raise ConfigError(
            f"a Spark session on {running.master!r} runs in this process already; stop it before one on {master!r}"
        )


def _started(master: str, app: str, own: bool, conf: dict[str, str]) -> SparkSession:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app)
    for name, value in (_defaults(master, own) | conf).items():
        builder = builder.config(name, value)
    try:
        with _environment({"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK} if own else {}):
            return builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"no Spark session on {master!r}: {reason(error)}") from None


def _defaults(master: str, own: bool) -> dict[str, str]:
    """Quiet, and without a web page; on this machine's own masters also where to write and what to import."""
    quiet = Path(__file__).with_name("log4j2.properties")
    out = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
    }
    if master == "yarn":  # the default is to try for a quarter of an hour
        return out | {"spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "20000"}
    if not own:
        return out
    room = tempfile.mkdtemp(prefix="sparserank-spark-")
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    package = str(Path(__file__).parents[2])
    found = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return out | {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": room,
        "spark.sql.warehouse.dir": f"{room}/warehouse",
        "spark.executor.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(dict.fromkeys(found)),
    }


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Variables that are read once, when Spark starts; those the user has set are left alone."""
    added = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _executors_answer(spark: SparkSession, master: str) -> None:
    """One task of nothing: the executors are there, run a Python like this one and have the same SparseRank."""
    context = spark.sparkContext
    scheduler: Any = context._jsc.sc()
    grows = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if not grows and master.startswith(("spark:", "local-cluster")):
        until = monotonic() + EXECUTORS
        while scheduler.getExecutorMemoryStatus().size() <= DRIVER:
            if monotonic() > until:
                raise ConfigError(
                    f"the master {master!r} has started no executor in {EXECUTORS:.0f} s; has it workers with "
                    f"{context.getConf().get('spark.executor.memory', '1g')} of memory to give?"
                )
            sleep(0.05)
    found = _version_there(spark)
    if found != __version__:
        raise ConfigError(
            f"executors of {master!r} have {found}; they need sparserank {__version__}, as here: install it on every "
            "node, or send an environment that has it (spark.archives)"
        )


def _version_there(spark: SparkSession) -> str:
    def look(_: Any) -> str:
        from importlib import import_module

        try:
            return str(import_module("sparserank").__version__)
        except ImportError as error:
            return f"no sparserank ({error})"

    from py4j.protocol import Py4JJavaError

    try:
        return spark.sparkContext.parallelize([0], 1).map(look).first()
    except Py4JJavaError as error:
        raise ConfigError(f"executors cannot run Python as it is here: {reason(error)}") from None
