"""A session is tried before work starts, and each thing that can be wrong with it is one sentence."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from contextlib import suppress
from threading import Thread
from time import sleep

import pytest

from sparserank.errors import ConfigError, NotInstalled
from sparserank.spark import session
from sparserank.spark.masters import check_master, java_version
from sparserank.spark.session import _check_executors, _executor_version, _start

from .cluster import MASTER


@pytest.fixture
def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]


def test_two_worker_processes_run_this_package(spark):
    def who(_):
        from time import sleep

        import sparserank

        sleep(0.2)
        yield os.getppid(), sparserank.__file__

    found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(who).collect()
    assert len({parent for parent, _ in found}) == 2
    assert {file for _, file in found} == {sys.modules["sparserank"].__file__}


def test_the_same_master_gives_the_same_session_and_another_raises_an_error(spark):
    assert session(MASTER) is spark
    with pytest.raises(ConfigError, match=r"a Spark session on 'local-cluster\[2,1,1024\]' runs in this process alr"):
        session("local[1]")


def test_executors_with_another_version_of_this_package_raise_an_error(spark, monkeypatch):
    monkeypatch.setattr(sys.modules["sparserank.spark.session"], "__version__", "9.9")
    assert _executor_version(spark) != "9.9"
    with pytest.raises(ConfigError, match=r"they need sparserank 9\.9, as here: install it on every node"):
        _check_executors(spark, MASTER)


def test_executors_that_do_not_answer_in_time_raise_an_error(spark, monkeypatch):
    """Both have something else to do for longer than that."""
    context = spark.sparkContext

    def keep_busy():
        context.addJobTag("busy")
        with suppress(Exception):  # it is cancelled
            context.parallelize(range(2), 2).foreach(lambda _: sleep(300))

    monkeypatch.setattr(sys.modules["sparserank.spark.session"], "EXECUTOR_TIMEOUT_S", 1.0)
    other = Thread(target=keep_busy)
    other.start()
    while running_tasks(context) < 2:
        sleep(0.05)
    try:
        with pytest.raises(
            ConfigError, match=r"no executor of 'local-cluster.+' has answered in 1 s; has it workers with"
        ):
            _check_executors(spark, MASTER)
        assert other.is_alive()
    finally:
        context.cancelJobsWithTag("busy")
        other.join()


def running_tasks(context):
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def test_what_spark_says_of_a_failed_start_is_one_line(spark, monkeypatch):
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError

    def fails(*_, **__):
        raise PySparkRuntimeError("SparkException: Asked to launch cluster\nat line 1\n\n\tat line 2")

    monkeypatch.setattr(SparkContext, "getOrCreate", fails)
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", None)
    with pytest.raises(ConfigError, match="no Spark session on 'local': SparkException: Asked to") as refused:
        _start("local", "sparserank", True, {})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("local[0]", "there is no master 'local[0]'; it must be local[*]"),
        ("localhost:7077", "there is no master 'localhost:7077'"),
        ("mesos://host:5050", "there is no master 'mesos://host:5050'"),
        ("spark://host", "'spark://host' names no host and port"),
        ("spark://host:7077:1", "names no host and port"),
        ("k8s://", "names no host and port"),
    ],
)
def test_an_invalid_master_raises_an_error(master, said):
    with pytest.raises(ConfigError) as refused:
        check_master(master)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "form", ["spark://127.0.0.1:{0}", "spark://127.0.0.1:{0},127.0.0.1:{0}", "k8s://127.0.0.1:{0}"]
)
def test_a_master_that_does_not_answer_raises_an_error(form, closed_port):
    with pytest.raises(ConfigError, match=r"cannot be reached \(127\.0\.0\.1:\d+: .+\); is it running there\?"):
        check_master(form.format(closed_port))


def test_a_master_that_answers_is_check_master():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.3)
        check_master(f"k8s://https://127.0.0.1:{listener.getsockname()[1]}")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Illegal character\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_a_server_that_is_no_spark_master_raises_an_error_at_once(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = Thread(target=lambda: _say(listener, answer))
        other.start()
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"something answers at 127\.0\.0\.1:{port}, but it is no Spark master"):
            check_master(f"spark://127.0.0.1:{port}")
        other.join()


def _say(listener, answer):
    connection, _ = listener.accept()
    with connection:
        connection.sendall(answer)
        connection.recv(4096)


def test_a_real_master_is_accepted_and_its_web_page_is_not(spark):
    virtual = spark.sparkContext._jvm
    conf = virtual.org.apache.spark.SparkConf()
    running = virtual.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)
    try:
        check_master(f"spark://127.0.0.1:{running._1().address().port()}")
        with pytest.raises(ConfigError, match="it is no Spark master"):
            check_master(f"spark://127.0.0.1:{running._2()}")
    finally:
        running._1().shutdown()
        running._1().awaitTermination()


def test_yarn_needs_the_settings_of_its_cluster(monkeypatch, tmp_path):
    for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="needs HADOOP_CONF_DIR or YARN_CONF_DIR to name the folder"):
        check_master("yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    check_master("yarn")


def test_no_java_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigError, match="Spark needs Java 17 or newer, and there is no java on the PATH; install it"):
        java_version()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"cannot be run \(No such file or directory\); set JAVA_HOME"):
        java_version()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ('openjdk version "1.8.0_392"', "is Java 8; set JAVA_HOME to a newer one"),
        ('openjdk version "11.0.21" 2023-10-17', "is Java 11; set"),
        ("no idea", "does not print its version"),
    ],
)
def test_an_old_java_raises_an_error_with_its_version(monkeypatch, tmp_path, version, said):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=said):
        java_version()


def test_without_pyspark_the_error_has_the_command_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"this needs pyspark; install it with: pip install 'sparserank\[spark\]'"):
        session()


def test_the_package_offers_its_names_and_no_others():
    from sparserank import spark as package

    assert "fit_features" in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
