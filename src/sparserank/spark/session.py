"""A Spark session that is known to work before anything is computed.

Java, the master and the executors are tried in this order, each for a limited time, and each failure is one sentence.
On a machine's own masters (`local[…]`, `local-cluster[…]`) executors get this Python and this package, and everything
binds to the loopback address; on a cluster both are its own matter, and `session` only looks whether they fit.
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
from .frames import reason
from .masters import java, reached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = 300.0
"""Seconds that a master has to start the first executor in, and that one to answer."""
LOOPBACK = "127.0.0.1"
_OWN = re.compile(r"local(\[(\*|[1-9]\d*)(, *\d+)?\])?|local-cluster\[ *[1-9]\d* *, *[1-9]\d* *, *[1-9]\d* *\]")


def session(master: str = "local[*]", *, app: str = "sparserank", **conf: Any) -> SparkSession:
    """The session of this process on `master`, started where there is none yet.

    conf : settings of Spark by their full names, `**{"spark.executor.memory": "4g"}`; they win over the defaults here.
    Where a session runs already (a notebook of Databricks, `spark-submit`) pass that one to the functions of this
    package, or ask for its own master.
    """
    validation.installed("pyspark", extra="spark")
    validation.installed("pandas", extra="spark")
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
    validation.installed("pyspark", extra="spark")
    from pyspark import SparkContext

    there = SparkContext._active_spark_context is not None
    spark = session(master, **conf)
    try:
        yield spark
    finally:
        if not there:
            spark.stop()


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

    settings = _defaults(master, own) | conf
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _environment({"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK} if own else {}):
            _start_java({"spark.master": master} | settings)
            found = builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        why = reason(error)
        if master.startswith("spark://") and "stopped SparkContext" in why:
            why = "something answers there, but takes no application; is it a Spark master, of this version?"
        raise ConfigError(f"no Spark session on {master!r}: {why}") from None
    if master.startswith("local-cluster"):
        atexit.register(_clear, found.sparkContext.applicationId)
    return found


def _start_java(settings: dict[str, str]) -> None:
    """As pyspark does it, but for what Java says on stderr of its modules, which tells a user nothing."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    there, here = os.pipe()
    threading.Thread(target=_pass_on, args=(there,), daemon=True).start()
    try:
        conf = SparkConf().setAll(list(settings.items()))
        gateway = launch_gateway(conf, {"stderr": here})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    finally:
        os.close(here)


def _pass_on(there: int) -> None:
    """All lines that Java writes, to stderr as it is there, but for that one."""
    with open(there, "rb", buffering=0) as lines:
        for line in lines:
            if not line.startswith(b"WARNING: Using incubator modules"):
                os.write(2, line)


def _clear(application: str) -> None:
    """Remove what the workers of this machine leave: in Spark's own folder, whatever spark.local.dir says."""
    import pyspark

    running = pyspark.SparkContext._active_spark_context
    if running is not None and running.applicationId == application:
        running.stop()
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    shutil.rmtree(home / "work" / application, ignore_errors=True)


def _defaults(master: str, own: bool) -> dict[str, str]:
    """Quiet, and without a web page; on this machine's own masters also where to write and what to import."""
    # options are split at spaces, which an URI has none of
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
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
    context, tag = spark.sparkContext, f"sparserank-{uuid4().hex}"
    late = threading.Event()

    def give_up() -> None:
        late.set()
        context.cancelJobsWithTag(tag)

    timer = threading.Timer(EXECUTORS, give_up)
    timer.start()
    context.addJobTag(tag)
    try:
        found = _version_there(spark)
    except ConfigError:
        if not late.is_set():
            raise
        raise ConfigError(
            f"no executor of {master!r} has answered in {EXECUTORS:.0f} s; has it workers with "
            f"{context.getConf().get('spark.executor.memory', '1g')} of memory to give, and are they free?"
        ) from None
    finally:
        timer.cancel()
        context.removeJobTag(tag)
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
