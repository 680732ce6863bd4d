"""The learner for real: processes that contend for one lock, are killed, and take over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.service.config import ServiceConfig
from sparserank.service.feedback import Feedback
from sparserank.service.learning.learner import ROUND_NICENESS, Learner, run
from sparserank.service.store import FeedbackStore
from sparserank.versions import VersionRegistry

from ...text_ranker.test_learning import world

QUERY = "red car of wood"
PATIENCE = 90.0

WORKER = """
import json, sys, time
from sparserank.service.config import ServiceConfig
from sparserank.service.learning.learner import Learner
learner = Learner(ServiceConfig(sys.argv[1], "token", database=sys.argv[2], held_out=sys.argv[3], learn_every=0.2))
learner.start()
while True:
    print(json.dumps(learner.state() | {"holder": learner.is_holder}), flush=True)
    time.sleep(0.02)
"""


class Worker:
    """A process that serves, as far as the learner is concerned; it and its children are a session of their own."""

    def __init__(self, place):
        command = [sys.executable, "-c", WORKER, str(place.model), place.database, str(place.held_out)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.state = {}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self):
        with self.process.stdout as lines, suppress(ValueError):  # the last line may be half of one
            for line in lines:
                self.state = json.loads(line)

    def is_holder(self):
        return self.process.poll() is None and self.state.get("holder", False)

    def rounds(self):
        """The processes that it has started."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def kill(self):
        """With all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._listener.join()


class Place:
    """A model, held-out judgments and a database."""

    def __init__(self, folder):
        self.model, self.held_out = folder / "model", folder / "judged"
        self.database = f"sqlite:///{folder}/feedback.sqlite"
        self.versions, self.store = VersionRegistry.open(self.model), FeedbackStore(self.database)

    def say(self, number, query=QUERY, document="boat-red", grade=1.0):
        assert self.store.add(Feedback(f"id-{number}", "judgment", query, document, grade=grade))

    def rank(self, document="boat-red", query=QUERY):
        return [hit.id for hit in self.versions.load().search(query, 100)].index(document)

    def config(self, **other):
        options = {"model": str(self.model), "database": self.database, "held_out": str(self.held_out)}
        return ServiceConfig(token="token", **options | {"learn_every": 0.05} | other)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the model and the judgments."""
    folder = tmp_path_factory.mktemp("trained")
    docs, queries, qrels = world()
    sr.TextRanker(max_pairs=200).fit(docs, queries, qrels).save(folder / "model")
    write_beir(folder / "judged", Collection("judged", Documents.of(docs), queries, {"dev": qrels}))
    return folder


@pytest.fixture
def place(trained, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    made = Place(tmp_path)
    yield made
    made.store.close()


@contextmanager
def workers(place, number=2):
    made = [Worker(place) for _ in range(number)]
    try:
        yield made
    finally:
        for worker in made:
            worker.kill()


def until(claim):
    """Wait for something that must become true."""
    end = time.monotonic() + PATIENCE
    while not (found := claim()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_one_of_two_learns_and_both_know(place):
    place.say(1)
    before = place.rank()
    with workers(place) as both:
        until(lambda: all(worker.state.get("last", {}).get("outcome") == "learned" for worker in both))
        assert sorted(worker.is_holder() for worker in both) == [False, True]
    assert [version.number for version in place.versions.list()] == [1, 2]
    assert place.versions.current().learned_through == 1
    assert place.rank() < before


def test_who_is_killed_while_learning_is_followed_by_the_other_and_nothing_is_lost_or_learned_twice(place):
    with workers(place) as both:
        holder = until(lambda: next((worker for worker in both if worker.is_holder()), None))
        (other,) = (worker for worker in both if worker is not holder)
        place.say(1)
        until(holder.rounds)
        holder.kill()
        until(other.is_holder)
        until(lambda: place.versions.current().learned_through == 1)
        place.say(2, "blue car of wood", "boat-blue")
        until(lambda: place.versions.current().learned_through == 2)
        until(lambda: other.state["last"]["seen"] == 2 and not other.state["working"])
    learned = [version.learned_through for version in place.versions.list()]
    assert learned == [0, 1, 2], "each was learned once, and in order"


def test_a_round_whose_parent_was_killed_holds_the_lock_until_it_has_ended(place):
    with workers(place) as both:
        holder = until(lambda: next((worker for worker in both if worker.is_holder()), None))
        (other,) = (worker for worker in both if worker is not holder)
        place.say(1)
        (child,) = until(holder.rounds)
        until(lambda: os.getpriority(os.PRIO_PROCESS, child) == ROUND_NICENESS)  # it knows what to do
        os.kill(holder.process.pid, signal.SIGKILL)
        holder.process.wait()
        while is_alive(child):
            held = other.is_holder()
            assert not (held and is_alive(child))
        until(other.is_holder)
        until(lambda: place.versions.current().learned_through == 1)
    assert [version.number for version in place.versions.list()] == [1, 2]


def test_a_round_that_is_killed_is_begun_again(place):
    with workers(place, 1) as (worker,):
        until(worker.is_holder)
        place.say(1)
        (child,) = until(worker.rounds)
        os.kill(child, signal.SIGKILL)
        until(lambda: place.versions.current().learned_through == 1)
    assert [version.number for version in place.versions.list()] == [1, 2]


@pytest.mark.slow
def test_kills_at_any_moment_leave_whole_versions_and_every_feedback_learned_once(place):
    """Killed six times, a little later each time: before, within and after a round."""
    for turn in range(6):
        place.say(turn, f"{('red', 'green', 'blue', 'white', 'black')[turn % 5]} car of wood {turn}", "boat-red")
        with workers(place, 1) as (worker,):
            until(worker.is_holder)
            until(lambda worker=worker: worker.rounds() or not worker.state["working"])
            time.sleep(0.25 * turn)
        versions = VersionRegistry.open(place.model)
        for version in versions.list():
            versions.load(version.number)
    with workers(place, 1) as (worker,):
        until(lambda: worker.state.get("last", {}).get("seen") == 6)
    learned = [version.learned_through for version in place.versions.list()]
    assert learned == sorted(set(learned)), "no feedback was learned twice"


def test_stop_ends_the_round_and_frees_the_lock(place):
    place.say(1)
    first, second = (Learner(place.config()) for _ in range(2))
    first.start()
    until(lambda: first.state()["working"])
    second.start()
    time.sleep(0.2)
    assert not second.is_holder
    first.stop()
    assert not first.is_holder
    assert not first.state()["working"]
    until(lambda: place.versions.current().number == 2)
    until(lambda: second.state()["last"]["outcome"] == "learned")
    second.stop()
    assert not second.is_holder


def test_a_round_that_takes_longer_than_the_operator_allows_is_given_up(place, caplog):
    place.say(1)
    learner = Learner(place.config(round_timeout=0.01))
    learner.start()
    until(lambda: "killed a learning round that took more than" in caplog.text)
    learner.stop()
    assert place.versions.current().number == 1


def test_a_learner_that_was_never_started_can_be_stopped(place):
    Learner(place.config()).stop()


def test_where_no_version_can_be_added_nothing_is_learned(place):
    (place.model.parent / "elsewhere.versions").write_text("no folder")
    place.model.rename(place.model.parent / "elsewhere")
    learner = Learner(place.config(model=str(place.model.parent / "elsewhere"), learn_every=0.01))
    learner.start()
    time.sleep(0.1)
    assert learner.state()["learning"] is False
    assert not learner.is_holder
    learner.stop()


def test_what_goes_wrong_is_said_and_looked_at_again(place):
    place.say(1)
    done = run(place.config(held_out=str(place.held_out / "absent")))
    assert done.outcome == "failed"
    assert "no such file or folder" in done.said
    learner = Learner(place.config())
    assert learner.state()["last"] == done.to_dict()
    assert run(place.config()).outcome == "learned"


def test_a_damaged_version_is_named_and_nothing_is_learned(place):
    place.say(1)
    place.versions.path(1).write_bytes(b"noise")
    done = run(place.config())
    assert done.outcome == "failed"
    assert "000001.safetensors: damaged" in done.said


def test_a_learner_whose_database_cannot_be_read_goes_on_trying(place, caplog):
    """It makes none: that is for the service, and one that is gone shall be missed."""
    file = place.model.parent / "nowhere" / "feedback.sqlite"
    file.parent.mkdir()
    learner = Learner(place.config(database=f"sqlite:///{file}", learn_every=0.01))
    learner.start()
    until(lambda: "the learner failed: " in caplog.text)
    assert "Traceback" not in caplog.text
    assert not file.exists()
    FeedbackStore(f"sqlite:///{file}").close()
    until(lambda: learner._store is not None)
    learner.stop()


def test_a_round_takes_another_index_and_no_judgments(place):
    sr.load(place.model).index_.save(place.model.parent / "other.index")
    place.say(1)
    done = run(place.config(held_out=None, index=str(place.model.parent / "other.index")))
    assert done.outcome == "waiting"


def test_a_round_that_is_told_nothing_does_nothing(place):
    """Its parent was killed before it could say what to do."""
    command = [sys.executable, "-m", "sparserank.service.learning.learner"]
    ended = subprocess.run(command, input="", capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_password_is_on_no_command_line(place):
    place.say(1)
    learner = Learner(place.config())
    learner.start()
    child = until(lambda: learner._child)
    command = Path(f"/proc/{child.pid}/cmdline").read_bytes().split(b"\0")
    learner.stop()
    assert command[1:-1] == [b"-m", b"sparserank.service.learning.learner"]
