"""The live view of a run: what it says on the way, that Stop ends it, and what it leaves behind."""

import dataclasses
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets import HBox, Output

from famnb.experiment.budget import Budget, CallOutcome
from famnb.experiment.plan import Cell, plan_cells
from famnb.experiment.progress import SIMULATED, RunReport
from famnb.experiment.prompts import parse_prompts
from famnb.experiment.variants import parse_variants
from famnb.formatting import format_duration
from famnb.widget.experiment import run_view
from famnb.widget.experiment.run_view import RunView, ShownRun
from tests.support.waiting import wait_until
from tests.widget.conftest import send_message

WAIT_S = 20
VIEW = "application/vnd.jupyter.widget-view+json"
FORMS = {"text/html", "text/markdown", "text/plain"}
ANSWER = CallOutcome("completed", "call", Decimal("0.5"), 200, 1, None, simulated=True, ttft_s=0.25)
UNPRICED = CallOutcome("completed", "call", None, 200, 1, None, simulated=True)
REFUSED = CallOutcome("failed", "call", None, 400, 1, "BadRequestError")
BUSY = CallOutcome("failed", "call", None, 429, 1, "RateLimitError")
STOPPED = CallOutcome("cancelled", "call", None, None, 0, None)


class Script:
    """Carries calls until the test ends them; those that are stopped end by themselves."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[Cell, Callable[[CallOutcome], object]]] = {}

    def start(self, cell: Cell, *, labels: object, on_done: Callable[[CallOutcome], object]) -> Callable[[], object]:
        self.open[cell.key] = cell, on_done
        return lambda: self.end(cell.key, STOPPED)

    def limit(self, _cell: Cell) -> None:
        return None

    def end(self, key: str, outcome: CallOutcome) -> None:
        """One call ends so."""
        _, on_done = self.open.pop(key)
        on_done(outcome)

    def ends(self, *outcomes: CallOutcome) -> None:
        """The next calls in flight end, one after the other, each so."""
        for outcome in outcomes:
            wait_until(lambda: self.open)
            self.end(next(iter(self.open)), outcome)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def started(script: Script) -> Iterator[Callable[..., ShownRun]]:
    """Starts a run of six cells of two variants, `cold` and `warm`; each may cost 2 at worst."""
    runs: list[ShownRun] = []

    def start(*, name: str = "trip", limit: int | None = None, concurrency: int = 2, **variants: Any) -> ShownRun:
        grid = parse_variants(variants or {"cold": {}, "warm": {"temperature": 1}}, shared={})
        cells = plan_cells(parse_prompts(["a", "b", "c"]), grid, repeats=1, warmup=0, seed=0, shared={})
        budget = Budget(None if limit is None else Decimal(limit), lambda _: Decimal(2), spent=Decimal(3))
        report = RunReport(name=name, planned=len(cells) + 4, skipped=4)
        runs.append(ShownRun(cells, report, script, concurrency=concurrency, budget=budget))
        return runs[-1]

    yield start
    for run in runs:
        run.stop()
        run.join(WAIT_S)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A kernel's shell that keeps what is displayed."""
    shell = InteractiveShell.instance()
    monkeypatch.setattr(shell, "display_pub", CapturingDisplayPublisher())
    monkeypatch.setattr(shell, "kernel", SimpleNamespace(), raising=False)
    monkeypatch.setattr(run_view, "get_ipython", lambda: shell)
    yield shell
    InteractiveShell.clear_instance()


def displays_of(shell: InteractiveShell, *, updates: bool) -> list[dict[str, Any]]:
    """What was displayed anew, or what took the place of something."""
    return [output["data"] for output in shell.display_pub.outputs if bool(output["update"]) == updates]


def press_stop(view: RunView) -> None:
    """What the page sends for its button."""
    send_message(view, kind="intent", id=1, name="stop", args={})


def test_the_view_says_how_far_the_run_is(started: Callable[..., ShownRun], script: Script):
    run = started(limit=20)
    script.ends(ANSWER, ANSWER, REFUSED)
    wait_until(lambda: run.progress.failed == 1 and len(script.open) == 2)
    assert HBox([run.view]).children == (run.view,)
    view, report = run.view.view(), run_view.run_bundle(run)["text/plain"]
    assert (view.name, view.percent) == ("trip", 70.0)
    assert view.progress.startswith("7 of 10 · 1 failed · $1.00")
    assert "1 × BadRequestError" in view.report
    assert "2 answered, 1 failed, 4 left alone of 10 planned" in report
    assert "$4.00 of the budget of $20.00" in report
    assert SIMULATED in report
    assert "run() again" not in report


def test_a_pause_is_shown_with_how_long_and_why(started: Callable[..., ShownRun], script: Script):
    run = started(concurrency=1)
    script.ends(dataclasses.replace(BUSY, message="429: slow\u202edown", retry_after_s=7200))
    progress = wait_until(lambda: run.progress if run.progress.pause_s else None)
    view = RunView(run).view()
    assert f"paused for {format_duration(progress.pause_s, brief=True)[:4]}" in view.progress
    assert "RateLimitError: 429: slow" in view.progress
    assert "\u202e" not in view.progress
    run.stop()
    assert "Calls that no service took: 1; their cells were put back" in str(run.wait())


@pytest.mark.parametrize(
    ("outcomes", "head"),
    [
        ((UNPRICED,), "cost not known"),
        ((UNPRICED, ANSWER), "spent $0.50 plus the unknown cost of 1 other"),
    ],
)
def test_what_has_no_price_is_unknown_and_not_free(started, script, outcomes, head):
    run = started()
    script.ends(*outcomes)
    wait_until(lambda: run.progress.completed == len(outcomes))
    assert head in run_view.run_bundle(run)["text/plain"]


def test_a_stop_on_the_page_ends_the_run(started: Callable[..., ShownRun], script: Script):
    run = started()
    wait_until(lambda: len(script.open) == 2)
    view = RunView(run)
    assert view.view().is_stopping is False
    press_stop(view)
    assert view.view().is_stopping is True
    assert run.wait(WAIT_S).stopped_by == "stop"


def test_every_view_gives_way_to_ordinary_output(started, script, shell):
    run = started()
    for _ in range(2):
        run._ipython_display_()
    assert [VIEW in data for data in displays_of(shell, updates=False)] == [True, True]
    script.ends(ANSWER, REFUSED, *[ANSWER] * 4)
    wait_until(lambda: len(displays_of(shell, updates=True)) == 2)
    first, second = displays_of(shell, updates=True)
    assert first == second
    assert set(first) == FORMS
    for text in first.values():
        assert "5 answered, 1 failed, 4 left alone of 10 planned" in text
        assert "BadRequestError" in text
        assert "0.25 s" in text
        assert "nothing is billed" in text
    assert "| cold |" in first["text/markdown"]


def test_inside_an_output_widget_the_view_shows_the_end_itself(started, script, shell):
    """Such a widget never hears that something is to be replaced."""
    run, box = started(), Output()
    box.msg_id = "what a kernel sets inside `with box:`"
    run._ipython_display_()
    box.msg_id = ""
    run.stop()
    wait_until(lambda: "all that had come is kept" in run.view.view().report)
    assert displays_of(shell, updates=True) == []


def test_a_page_that_was_reloaded_is_told_what_it_cannot_do(started: Callable[..., ShownRun], shell: InteractiveShell):
    run = started()
    run._ipython_display_()
    send_message(run.view, kind="ready", page="1")
    send_message(run.view, kind="ready", page="1")
    run.stop()
    wait_until(lambda: displays_of(shell, updates=True))
    assert "was reloaded" not in run.view.view().report
    send_message(run.view, kind="ready", page="2")
    send_message(run.view, kind="ready", page="3")
    assert run.view.view().report.count("was reloaded") == 1


def test_closing_the_view_ends_the_looking_and_not_the_run(started, script, shell):
    run = started()
    run._ipython_display_()
    run.view.close()
    assert run.running
    script.ends(*[ANSWER] * 6)
    assert run.wait(WAIT_S).completed == 6
    assert displays_of(shell, updates=True) == []


def test_hostile_names_are_text(started: Callable[..., ShownRun]):
    run = started(name="<img src=x onerror=alert(1)>", **{"<script>alert(2)</script>": {}})
    bundle = run_view.run_bundle(run)
    assert "<img" not in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert "&lt;script&gt;" in bundle["text/html"]
    assert "<script" not in bundle["text/markdown"].replace("\\<", "")


def test_what_broke_a_run_stands_in_its_end(started, script, monkeypatch):
    def break_line(*_: object, **__: object) -> None:
        raise OSError("the line is cut")

    monkeypatch.setattr(script, "start", break_line)
    run = started()
    run.join(WAIT_S)
    assert "OSError: the line is cut" in run_view.run_bundle(run)["text/plain"]


def test_many_variants_are_cut_and_counted(started: Callable[..., ShownRun]):
    bundle = run_view.run_bundle(started(**{f"v{number:02}": {"temperature": number / 100} for number in range(15)}))
    assert bundle["text/markdown"].count("| v") == 13
    assert "and 3 more variants" in bundle["text/plain"]


def test_without_a_notebook_it_is_just_the_handle(started: Callable[..., ShownRun]):
    run = started()
    with pytest.raises(NotImplementedError):
        run._ipython_display_()
    assert repr(run).startswith("<Run trip: 4 of 10")
