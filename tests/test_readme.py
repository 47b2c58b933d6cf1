"""README and what it promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_readme_and_ci_give_the_same_two_commands():
    """What README promises is what is run; a source archive has README alone."""
    readme = (ROOT / "README.md").read_text()
    assert 'pip install -e ".[lab]" && famnb lab' in readme
    assert 'pip install -e ".[test]" && pytest' in readme
    if not (ROOT / ".ci").exists():
        return
    ci = (ROOT / ".ci" / "run").read_text()
    assert re.search(r'^pip install .*-e "\.\[test\]"$', ci, re.MULTILINE)
    assert re.search(r"^pytest$", ci, re.MULTILINE)
