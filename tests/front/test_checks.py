"""What is written twice agrees: types in Python and on the page, classes in style sheets and in what uses them."""

import json
import re
from pathlib import Path

from famnb.widget.runtime.front_end import FRONT, read_loader, read_modules
from famnb.widget.runtime.tool import BaseTool
from famnb.widget.runtime.view import View
from tests.front.protocol import TARGET, subclasses, write_protocol

HERE = Path(__file__).parent
CLASS = re.compile(r"famnb-[a-z]\w*(?:-\w+)*")
COMPOSED = {"famnb-badge-": ("plain", "warn", "error"), "famnb-": ("text", "thinking", "code")}
"""Classes whose end is a value of the view."""
NOT_CLASSES = {"famnb-tabs-", "famnb-control"}
"""Beginnings of ids."""
HOOKS = {"famnb-text", "famnb-stop", "famnb-flow", "famnb-frozen", "famnb-form"}
"""Classes by which the page finds its elements, or tests do."""


def test_the_types_of_the_page_are_those_of_python():
    assert TARGET.read_text(encoding="utf-8") == write_protocol(), "run `python -m tests.front.protocol`"


def test_every_class_is_used_and_has_a_style():
    sheets = "".join(path.read_text(encoding="utf-8") for path in (FRONT / "style").glob("*.css"))
    styled = set(re.findall(r"\.(famnb-[\w-]+)", sheets))
    modules = [path for folder in ("runtime", "parts", "tools") for path in (FRONT / folder).glob("*.js")]
    used = {name for path in modules for name in CLASS.findall(path.read_text(encoding="utf-8"))}
    python = "".join(path.read_text(encoding="utf-8") for path in FRONT.parent.rglob("*.py"))
    used |= set(re.findall(r'class="(famnb-[\w-]+)', python))
    used |= {f"{stem}{end}" for stem, ends in COMPOSED.items() for end in ends}
    used -= {name for name in used if any(name.startswith(stem) for stem in NOT_CLASSES)}
    assert styled - used == set(), "styled and never used"
    assert {name for name in used - styled if name not in python} - HOOKS == set(), "used and never styled"


def test_the_lock_file_names_no_registry():
    assert "resolved" not in (HERE / "package-lock.json").read_text(encoding="utf-8")


def test_modules_are_sent_after_what_they_import():
    modules = dict(json.loads(read_modules("tools/live.js")))
    names = list(modules)
    assert names[-1] == "tools/live.js"
    for name, source in modules.items():
        for imported in re.findall(r'from "front:([^"]+)"', source):
            assert names.index(imported) < names.index(name)
        assert not re.search(r'^import .*from "\.', source, re.MULTILINE)


def test_where_modules_are_not_shared_the_loader_has_them():
    assert "const MODULES = null;" in read_loader()
    assert "const MODULES = [[" in read_loader("tools/live.js")


def test_no_tool_has_a_synced_trait_that_could_hold_a_text():
    """Widget state may be saved in the notebook, in clear."""
    # Each anywidget makes a class of its own, with traits for its modules.
    tools = [tool for tool in subclasses(BaseTool) if "entry" in vars(tool)]
    assert len(tools) > 5
    assert {name for tool in tools for name in tool.class_traits(sync=True)} == set(BaseTool.class_traits(sync=True))


def test_every_view_is_frozen():
    assert all(view.__struct_config__.frozen for view in subclasses(View))
