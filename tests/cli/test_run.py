"""`famnb run`: pass, fail and not enough to tell, each by its exit status, of experiments and of loads."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import famnb
from famnb.cli import main
from famnb.cli.run_file import RunFile, make_experiment, read_run_file
from famnb.experiment import schedule
from famnb.service import Server
from tests.support.experiment_fixtures import client, connect, prices
from tests.support.queue_server import serve_queue

__all__ = ["client", "connect", "prices"]

EXPERIMENT = """
name = "ci"
prompts = "q.csv"
repeats = 2
scorers = [{ contains = { expected = "e", name = "has_e" } }]
[fields]
max_tokens = 32
model = "fam-mini"
[client]
base_url = "URL"
"""


@pytest.fixture
def run(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a file's text by the command, at the service unless the text names another."""
    monkeypatch.setenv("FAM_API_KEY", server.key)
    (tmp_path / "q.csv").write_text("id,prompt\n" + "".join(f"p{n},Question {n}?\n" for n in range(8)))

    def run_text(text: str, *arguments: str) -> int:
        file = tmp_path / "exp.toml"
        file.write_text(text.replace("URL", server.url))
        return main(["run", os.fspath(file), *arguments])

    return run_text


@pytest.mark.parametrize(
    ("limit", "status", "words"),
    [
        ("max = { output_tokens = 1000 }", 0, "pass    default: output_tokens"),
        ("max = { output_tokens = 1 }", 1, "fail    default: output_tokens"),
        ("min = { score_has_e = 0.95 }", 2, "not enough to tell"),
    ],
)
def test_limits_decide_the_exit_status(run, capsys, limit, status, words):
    assert run(f"{EXPERIMENT}[check]\n{limit}\n") == status
    assert words in capsys.readouterr().out


def test_outcomes_are_written_for_machines(run: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path):
    files = ["--junit", os.fspath(tmp_path / "o.xml"), "--report", os.fspath(tmp_path / "r.html")]
    limits = "[check]\nmax = { output_tokens = 1 }\nmin = { score_has_e = 0.95 }\n"
    assert run(EXPERIMENT + limits, "--json", "-", *files) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["outcome"] == "fail"
    assert {row["metric"]: row["outcome"] for row in outcome["rows"]} == {
        "output_tokens": "fail",
        "score_has_e": "unknown",
    }
    suite = ElementTree.parse(tmp_path / "o.xml").getroot()[0]
    # What is not known is no pass to a reader of JUnit either.
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    assert "ci" in (tmp_path / "r.html").read_text()


def test_a_run_is_held_against_its_baseline(run, capsys, tmp_path):
    assert run(EXPERIMENT, "--save-baseline", os.fspath(tmp_path / "b.json")) == 0
    against = '[against]\nbaseline = "b.json"\nmargin = { score_has_e = 0.5 }\n'
    assert run(EXPERIMENT + against) == 0
    assert "score has_e changed by 0" in capsys.readouterr().out
    worse = EXPERIMENT.replace('expected = "e"', 'expected = "never said"').replace('"ci"', '"later"')
    assert run(worse + against) == 1
    assert "fail    default: score_has_e" in capsys.readouterr().out


def test_a_service_that_is_down_is_no_pass(run, capsys, monkeypatch):
    monkeypatch.setattr(schedule, "PAUSE_S", 0.01)
    status = run(EXPERIMENT.replace("URL", "http://127.0.0.1:9").replace("repeats = 2", "repeats = 1"))
    assert status == 2
    assert "none of 8 calls was answered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "this is not TOML"),
        (EXPERIMENT.replace("repeats", "repeets"), "repeets: there is no such field"),
        (EXPERIMENT.replace("contains =", "holds ="), "scorers: expected one of"),
        (EXPERIMENT + 'api_key = "k"', "a key does not belong into a file"),
        (EXPERIMENT + "[grid]\nmodel = ['a']\n[variants.x]\nmodel = 'a'\n", "not both"),
        (EXPERIMENT + "[load]\nrate = 1\n[check]\nmax = { e2e_s = 1 }\n", "check, repeats, scorers: not of a load"),
    ],
)
def test_a_file_that_cannot_be_run_says_why_and_is_no_failed_limit(run, capsys, text, words):
    assert run(text) == 2
    assert words in capsys.readouterr().err


@pytest.fixture(scope="module")
def queue() -> Iterator[str]:
    """A service whose answers take so long that this process's own lateness is little of it."""
    with serve_queue(100, 0.5) as url:
        yield url


LOAD = """
name = "ci"
prompts = "q.csv"
[fields]
max_tokens = 32
model = "fam-mini"
[client]
base_url = "URL"
connections = 200
[load]
duration = "1s"
"""


@pytest.mark.parametrize(
    ("load", "status", "words"),
    [
        pytest.param(
            "rate = 20\nslo = { e2e_s = 60 }\nshare = 0.5", 0, "pass    20/s: objective", marks=pytest.mark.full
        ),
        ('rate = 2\narrivals = "closed"\nslo = { e2e_s = 1e-6 }', 1, "fail    2 at once: objective"),
        pytest.param(
            "rate = 1\nwarmup = 0\nslo = { e2e_s = 60 }\nshare = 0.99", 2, "not enough to tell", marks=pytest.mark.full
        ),
        ('trace = "trace.csv"', 0, "pass    trace: objective: measured"),
        ("rates = [1]", 2, "load.rates: there is no such field"),
    ],
)
def test_a_load_of_a_file_is_held_to_its_objective(run, queue, capsys, tmp_path, load, status, words):
    (tmp_path / "trace.csv").write_text("timestamp,input_tokens,output_tokens\n0,5,5\n0.1,5,5\n")
    report = tmp_path / "r.html"
    file = f"{LOAD}{load}".replace('base_url = "URL"', f'profile = "open"\nbase_url = "{queue}"')
    assert run(file, "--report", os.fspath(report)) == status
    out, err = capsys.readouterr()
    assert words in out + err
    assert not report.exists() or "Load report" in report.read_text()


@pytest.mark.parametrize("objective", ["", "slo = { e2e_s = 60 }"])
def test_a_service_that_is_down_passes_no_load(run, capsys, objective):
    assert run(f"{LOAD}rate = 20\n{objective}".replace("URL", "http://127.0.0.1:9")) == 2
    assert re.search(r"unknown 20/s: objective: none of \d+ calls was answered", capsys.readouterr().out)


@pytest.mark.usefixtures("prices")
def test_a_load_that_its_budget_ended_is_no_pass(run, capsys):
    load = LOAD.replace("fam-mini", "fam-2-5-pro").replace("max_", 'endpoint = "responses"\nmax_') + "rate = [40, 50]"
    assert run(load, "--budget", "0.001") == 2
    assert "unknown ci: steps: 1 of 2 were measured" in capsys.readouterr().out


def test_an_experiment_of_a_notebook_is_the_same_from_its_file(client: famnb.Client, tmp_path: Path):
    settings: dict[str, Any] = {"model": "fam-mini", "max_tokens": 16}
    exp = famnb.Experiment(
        [{"prompt": "Name a dish of Lyon.", "id": "l", "expected": "quenelle"}],
        {"cold": {"temperature": 0}, "warm": {"temperature": 0.7}},
        scorers=[famnb.scorers.exact(casefold=True), famnb.scorers.numeric(tolerance=2)],
        name="dishes",
        client=client,
        **settings,
    )
    again = make_experiment(read_run_file(exp.to_toml(tmp_path / "exp.toml")), client)
    assert again.plan().equals(exp.plan())
    assert again.scorers == exp.scorers
    with pytest.raises(famnb.InvalidRequest, match="scorer 'has' cannot stand in a file"):
        famnb.Experiment("Hi.", scorers=[famnb.scorers.regex("a", name="has")], name="x", client=client).to_toml(
            "x.toml"
        )


def test_editors_get_a_schema(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == RunFile.model_json_schema()
