"""A Spark session that is checked before anything is computed.

Java, the master and the executors are checked in this order, each with a time limit; each failure is one sentence. On
local masters (`local[…]`, `local-cluster[…]`) executors get this Python and this package, and everything binds to the
loopback address. A cluster brings its own Python and package, and `session` only checks that they fit.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .. import __version__, validation
from ..errors import ConfigError
from .errors import first_cause
from .masters import check_master, java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTOR_TIMEOUT_S = 300.0
"""Time for the master to start the first executor and for that one to answer."""
LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(, *\d+)?\])?|local-cluster\[ *[1-9]\d* *, *[1-9]\d* *, *[1-9]\d* *\]")


def session(master: str = "local[*]", *, app: str = "sparserank", **conf: Any) -> SparkSession:
    """Return the Spark session of this process on `master`; start it if there is none.

    If a session is already running (in a Databricks notebook, under `spark-submit`), pass that one to the functions of
    this package, or give its master here.

    Parameters
    ----------
    master : str, default "local[*]"
        `local[N]`, `local-cluster[N,CORES,MEGABYTES]`, `spark://HOST:PORT`, `k8s://https://HOST:PORT` or `yarn`.
    app : str, default "sparserank"
        Name of the application.
    **conf
        Settings of Spark by their full names, `**{"spark.executor.memory": "4g"}`; they override the defaults.

    Returns
    -------
    SparkSession
        Its executors run Python and this version of SparseRank.

    Raises
    ------
    ConfigError
        If Java, the master or the executors do not work.

    Examples
    --------
    The other examples of this package use `spark`, the session of

    >>> spark = session("local[2]")  # doctest: +SKIP
    >>> spark.range(3).count()
    3
    """
    validation.installed("pyspark", extra="spark")
    validation.installed("pandas", extra="spark")
    local = _LOCAL.fullmatch(master) is not None
    if not local:
        check_master(master)
    running = _running_context()
    if running is not None and running.master != master:
        raise ConfigError(
            f"a Spark session on {running.master!r} runs in this process already; stop it before one on {master!r}"
        )
    java_version()
    spark = _start(master, app, local, {name: str(value) for name, value in conf.items()})
    try:
        if not master.startswith("local["):
            _check_executors(spark, master)
    except BaseException:
        spark.stop()
        raise
    return spark


@contextmanager
def temporary_session(master: str = "local[*]", **conf: Any) -> Iterator[SparkSession]:
    """`session` as a context manager, which stops the session at the end if it was started here."""
    validation.installed("pyspark", extra="spark")
    running = _running_context()
    spark = session(master, **conf)
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def _running_context() -> Any:
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _start(master: str, app: str, local: bool, conf: dict[str, str]) -> SparkSession:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    settings = _defaults(master, local) | conf
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _environment({"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK} if local else {}):
            _start_java({"spark.master": master} | settings)
            spark = builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        cause = first_cause(error)
        if master.startswith("spark://") and "stopped SparkContext" in cause:
            cause = "something answers there, but accepts no application; is it a Spark master, of this version?"
        raise ConfigError(f"no Spark session on {master!r}: {cause}") from None
    if master.startswith("local-cluster"):
        atexit.register(_remove_work_folder, spark.sparkContext.applicationId)
    return spark


def _start_java(settings: dict[str, str]) -> None:
    """Start Java as pyspark does, without the warning of Java about its modules on stderr."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    reader, writer = os.pipe()
    threading.Thread(target=_forward_lines, args=(reader,), daemon=True).start()
    try:
        conf = SparkConf().setAll(list(settings.items()))
        gateway = launch_gateway(conf, {"stderr": writer})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    finally:
        os.close(writer)


def _forward_lines(reader: int) -> None:
    """Forward what Java writes to the current stderr, without that warning."""
    with open(reader, "rb", buffering=0) as lines:
        for line in lines:
            if not line.startswith(b"WARNING: Using incubator modules"):
                os.write(2, line)


def _remove_work_folder(application: str) -> None:
    """Remove the files of local workers in Spark's own folder, which spark.local.dir does not change."""
    import pyspark

    running = _running_context()
    if running is not None and running.applicationId == application:
        running.stop()
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    shutil.rmtree(home / "work" / application, ignore_errors=True)


def _defaults(master: str, local: bool) -> dict[str, str]:
    """No log lines and no web page; for local masters also the folder to write to and the import path."""
    # Spark splits options at spaces, which a URI does not contain
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    out = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
    }
    if master == "yarn":  # the default is 15 minutes
        return out | {"spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "20000"}
    if not local:
        return out
    if master.startswith("local-cluster"):  # more Python workers than cores would each open the same rows
        out["spark.python.factory.idleWorkerMaxPoolSize"] = master.split(",")[1].strip()
    folder = tempfile.mkdtemp(prefix="sparserank-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return out | {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.executor.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables that Spark reads when it starts; variables that the user has set stay."""
    added = [name for name in variables if name not in os.environ]
    os.environ.update({name: variables[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _check_executors(spark: SparkSession, master: str) -> None:
    """Run an empty task: the executors exist, run a Python like this one and have the same SparseRank."""
    context, tag = spark.sparkContext, f"sparserank-{uuid4().hex}"
    timed_out = threading.Event()

    def cancel() -> None:
        timed_out.set()
        context.cancelJobsWithTag(tag)

    timer = threading.Timer(EXECUTOR_TIMEOUT_S, cancel)
    timer.start()
    context.addJobTag(tag)
    try:
        version = _executor_version(spark)
    except ConfigError:
        if not timed_out.is_set():
            raise
        raise ConfigError(
            f"no executor of {master!r} has answered in {EXECUTOR_TIMEOUT_S:.0f} s; has it workers with "
            f"{context.getConf().get('spark.executor.memory', '1g')} of memory to give, and are they free?"
        ) from None
    finally:
        timer.cancel()
        context.removeJobTag(tag)
    if version != __version__:
        raise ConfigError(
            f"executors of {master!r} have {version}; they need sparserank {__version__}, as here: install it on every "
            "node, or send an environment that has it (spark.archives)"
        )


def _executor_version(spark: SparkSession) -> str:
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
        raise ConfigError(f"executors cannot run Python as it is here: {first_cause(error)}") from None
