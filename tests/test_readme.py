"""README and what it promises."""

import inspect
import os
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import famnb

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CODE = (ROOT / "famnb" / "README.md").read_text()


def test_readme_and_ci_give_the_same_commands():
    """What README promises is what is run; a source archive has README alone."""
    assert 'pip install -e ".[lab]" && famnb lab' in README
    assert 'pip install -e ".[test]" && pytest' in README
    if not (ROOT / ".ci").exists():
        return
    ci = (ROOT / ".ci" / "run").read_text()
    assert re.search(r'^pip install .*-e "\.\[test\]"$', ci, re.MULTILINE)
    command = 'pytest -m "not conformance"'
    assert re.search(f"^{command}$", ci, re.MULTILINE)
    assert command in README


@pytest.mark.full
def test_the_tour_runs_as_it_is_written(tmp_path: Path):
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    script = tmp_path / "tour.py"
    script.write_text("\n".join([*blocks, "print(len(famnb.calls()), exp.frame()['status'].eq('completed').sum())"]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAM_")}
    with famnb.serve(time_scale=0) as server:
        environment |= {"FAMNB_SERVICE_URL": server.url, "FAMNB_SERVICE_KEY": server.key}
        environment |= {"FAMNB_LEDGER": str(tmp_path / "ledger.sqlite"), "MPLBACKEND": "agg"}
        tour = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=600
        )
    assert tour.returncode == 0, tour.stderr
    calls, answered = map(int, tour.stdout.split()[-2:])
    assert answered == 2 * 4 * 3
    assert calls > answered + 8
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_where_each_thing_is_explained_is_there():
    table = README.partition("## Where each thing is explained")[2].partition("## Commands")[0]
    notebooks = set(re.findall(r"`(\d\d-[a-z-]+)`", table))
    assert notebooks == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    names = re.findall(r"help\(famnb\.([\w.]+)\)", table)
    assert len(names) > 15
    # A value such as `famnb.prices` has the docstring of its class, which is what `help` shows.
    documented = {name: inspect.getdoc(attrgetter(name)(famnb)) or "" for name in names}
    assert [name for name, text in documented.items() if len(text) < 150] == []
    assert all((ROOT / picture).exists() for picture in re.findall(r'(?:src|srcset)="([^"]+)"', README))


def test_the_tree_has_every_folder_and_file():
    """In the order of the floors, which `test_floors.py` keeps; what all of Python has at its door is left out."""
    table = CODE.partition("## The floors")[2].partition("## One call")[0]
    names = [name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)]
    entries = [path for path in (ROOT / "famnb").iterdir() if not path.name.startswith(("_", "py.typed", "README"))]
    assert sorted(names) == sorted(f"{path.name}/" if path.is_dir() else path.name for path in entries)


def test_the_code_that_contributors_are_sent_to_is_there():
    ways = re.findall(r"^    ([a-z_/]+(?:\.py|/))(?:, ([a-z_]+\.py))?  ", CODE, re.MULTILINE)
    files = [first for first, _ in ways] + [f"{first.rpartition('/')[0]}/{other}" for first, other in ways if other]
    files += re.findall(r"^\| an? .+? \| `(.+?)`", CODE, re.MULTILINE)
    assert len(files) > 20
    assert [file for file in files if not (ROOT / "famnb" / file).exists()] == []
