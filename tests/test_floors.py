"""The floors of the house: imports point down only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_imports_point_down():
    """import-linter keeps the contract declared in pyproject.toml."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


def test_top_level_holds_only_what_belongs_there():
    """The tree explains the program: nothing but the six names and dotfiles stands at the top."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        top = {name.split("/")[0] for name in listed}
    else:  # a source archive, which holds what is tracked and PKG-INFO
        top = {path.name for path in ROOT.iterdir()} - {"PKG-INFO"}
    names = {name for name in top if not name.startswith(".")}
    assert names <= {"pyproject.toml", "README.md", "LICENSE", "famnb", "notebooks", "tests"}
