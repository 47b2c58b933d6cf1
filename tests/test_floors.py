"""The layers of imports: they point down only, and the lower ones need no heavy library."""

import ast
import collections
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("httpx", "pandas", "matplotlib", "ipywidgets", "starlette")
NETWORK = ("aiohappyeyeballs", "httptools", "httpx", "tqdm", "starlette")


def test_imports_point_down():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


def test_no_two_classes_have_one_name():
    modules = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "famnb").rglob("*.py")]
    names = [node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    assert [name for name, count in collections.Counter(names).items() if count > 1] == []


def test_top_level_holds_only_what_belongs_there():
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        top = {name.split("/")[0] for name in listed}
    else:  # a source archive, which holds what is tracked and PKG-INFO
        top = {path.name for path in ROOT.iterdir()} - {"PKG-INFO"}
    names = {name for name in top if not name.startswith(".")}
    assert names <= {"pyproject.toml", "README.md", "LICENSE", "famnb", "notebooks", "tests"}


@pytest.mark.parametrize(
    "module",
    ["errors", "events", "timing", "reply", "request", "wire.chat", "wire.responses", "wire.messages", "wire.errors"],
)
def test_a_lower_floor_imports_without_heavy_libraries(module: str):
    assert loaded_by(module, HEAVY) == "[]"


@pytest.mark.parametrize("module", ["record", "frame", "plot", "scrub", "secret_patterns", "client.exchange"])
def test_what_reads_recorded_calls_imports_without_the_network(module: str):
    assert loaded_by(module, NETWORK) == "[]"


@pytest.mark.parametrize("module", ["widget.board", "widget.dashboard"])
def test_a_tool_opens_without_what_computes(module: str):
    """A form says what its request can cost before anything has to be computed of recorded calls."""
    assert loaded_by(module, ("numpy", "pandas", "scipy", "matplotlib")) == "[]"


def test_a_dask_worker_imports_only_what_makes_calls():
    """Frames and statistics stay in the recording process; each worker would take a second longer to start."""
    assert loaded_by("client.dask_worker", ("pandas", "scipy", "matplotlib", "starlette")) == "[]"


def loaded_by(module: str, libraries: tuple[str, ...]) -> str:
    """Those of some libraries that a new interpreter has loaded once it has imported a module, as a list is printed."""
    code = f"import sys, famnb.{module}; print([name for name in {libraries} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
