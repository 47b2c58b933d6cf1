"""HTML in widgets is built from `SafeHtml` templates, so that no text can get into it unescaped."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import famnb.widget

WIDGETS = Path(famnb.widget.__file__).parent
_TAG = re.compile(r"</?[a-z]")
CLEANED = {"html/sanitize.py", "html/highlight.py"}
"""What makes HTML for nh3 to clean: spans of code, a link in the place of an image."""


def fstrings(node: ast.AST) -> Iterator[ast.JoinedStr]:
    """Yield the f-strings with tags in them, except those that are the template of a SafeHtml."""
    match node:
        case ast.Call(func=ast.Name(id="SafeHtml")):
            return
        case ast.JoinedStr(values=values):
            if any(isinstance(value, ast.Constant) and _TAG.search(str(value.value)) for value in values):
                yield node
        case _:
            for child in ast.iter_child_nodes(node):
                yield from fstrings(child)


@pytest.mark.parametrize("path", sorted(WIDGETS.rglob("*.py")), ids=lambda path: str(path.relative_to(WIDGETS)))
def test_no_f_string_holds_a_tag(path: Path):
    """In an f-string a text would be put between tags as it is."""
    lines = [node.lineno for node in fstrings(ast.parse(path.read_text()))]
    assert not lines or path.relative_to(WIDGETS).as_posix() in CLEANED
