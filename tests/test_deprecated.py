from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparserank as sr
from sparserank import deprecated
from sparserank.errors import ConfigError

ROOT = Path(__file__).parent.parent


class Old:
    @deprecated.renamed_parameters({"start": "init", "rate": "schedule"})
    def __init__(self, init="identity", *, schedule=None):
        self.init, self.schedule = init, schedule

    begin = deprecated.renamed_attribute("begin", "init")


def test_an_old_keyword_warns_at_the_line_of_the_call_and_is_taken_as_the_new_one():
    with pytest.warns(DeprecationWarning, match=r"The 'start' parameter of Old .* 0\.3; use 'init' instead") as caught:
        assert Old(start="zero").init == "zero"
    assert caught[0].filename == __file__
    assert list(inspect.signature(Old).parameters) == ["init", "schedule"]
    assert Old("zero", schedule=1).schedule == 1, "new names do not warn"


def test_an_old_and_a_new_name_of_one_parameter_are_an_error():
    with pytest.raises(ConfigError, match="Old got both 'init' and its old name 'start'; give 'init' only"):
        Old(start="zero", init="zero")


def test_an_old_attribute_warns():
    with pytest.warns(DeprecationWarning, match=r"Old.begin is deprecated .* use Old.init instead"):
        assert Old().begin == "identity"


def test_an_old_field_of_a_dataclass_warns():
    documents = sr.data.Documents.of({"d": "text"})
    with pytest.warns(DeprecationWarning, match="'drop_self' parameter of Collection .* use 'exclude_self'"):
        collection = sr.data.Collection("c", documents, {}, {}, drop_self=True)
    with pytest.warns(DeprecationWarning, match=r"Collection.drop_self .* use Collection.exclude_self instead"):
        assert collection.drop_self is collection.exclude_self is True


def test_an_old_name_of_a_module_warns_and_another_is_an_attribute_error():
    find = deprecated.renamed_names("math", {"squareroot": "sqrt", "cut": "textwrap:shorten"})
    with pytest.warns(DeprecationWarning, match=r"math.squareroot .* use math.sqrt instead"):
        assert find("squareroot")(4) == 2
    with pytest.warns(DeprecationWarning, match=r"math.cut .* use textwrap.shorten instead"):
        assert find("cut").__name__ == "shorten"
    with pytest.raises(AttributeError, match="module 'math' has no attribute 'cube'"):
        find("cube")


@pytest.mark.parametrize("old", [*deprecated.MODULES, "sparserank.rankers.pamir", "sparserank.solvers.rbf"])
def test_an_old_module_is_the_new_one_and_warns(old, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    new = deprecated.new_module(old)
    with pytest.warns(DeprecationWarning, match=rf"{old} is deprecated .* use {new} instead") as caught:
        module = importlib.import_module(old)
    assert caught[-1].filename == __file__
    assert module is importlib.import_module(new)
    assert module.__spec__.name == module.__name__ == new


def test_old_modules_import_in_every_way():
    code = (
        "import sparserank as sr, sparserank.penalties; from sparserank.rankers.pamir import PAMIR; "
        "import sparserank.losses; "
        "assert sr.PAMIR is PAMIR and sparserank.penalties.L1(1.0) and sr.losses.Hinge() and sr.measures.per_query "
        "and sr.evaluate is sr.evaluation"
    )
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"<string>:1: DeprecationWarning: (\S+)", done.stderr)) >= {
        "sparserank.penalties", "sparserank.rankers.pamir", "sparserank.losses", "sparserank.measures",
        "sparserank.evaluate",
    }  # fmt: skip


def test_other_names_are_not_found():
    assert deprecated.new_module("numpy.check") is None
    with pytest.raises(AttributeError, match="module 'sparserank' has no attribute 'no_such_name'"):
        sr.no_such_name  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sparserank.no_such_module")


def test_the_migration_guide_lists_every_old_module():
    guide = (ROOT / "docs/migration.md").read_text()
    for old, new in deprecated.MODULES.items():
        assert re.search(rf"^\| `{re.escape(old)}` \| `{re.escape(new)}`", guide, re.M), old
