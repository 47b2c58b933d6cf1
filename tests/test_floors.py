"""The layers of imports: they point down only, and the lower ones need no heavy library."""

import collections
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_imports_point_down():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


def test_no_two_classes_have_one_name():
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "famnb").rglob("*.py")]
    names = [name for module in modules for name in re.findall(r"^ *class (\w+)[(:]", module, re.MULTILINE)]
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
    ("modules", "libraries"),
    [
        (
            ["secret_patterns", "scrub", "client.exchange", "record", "frame", "plot"],
            ["aiohappyeyeballs", "httptools", "httpx", "tqdm", "starlette"],
        ),
        # Frames and statistics stay in the recording process; each worker would take a second longer to start.
        (["client.dask_worker"], ["pandas", "scipy", "matplotlib", "starlette"]),
    ],
    ids=["recorded calls are read without the network", "a Dask worker"],
)
def test_modules_import_without_libraries_that_they_do_not_need(modules: list[str], libraries: list[str]):
    """In one new interpreter, which says after each import what it has loaded."""
    code = f"""if True:
        import importlib, sys
        for module in {modules}:
            importlib.import_module(f"famnb.{{module}}")
            print(module, [name for name in {libraries} if name in sys.modules])
    """
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [f"{module} []" for module in modules]
