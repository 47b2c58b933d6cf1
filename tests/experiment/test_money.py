"""What is said of money when calls fail or do not report their usage, held against a service whose bill is known."""

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest

import famnb
from famnb.errors import BudgetExceeded
from famnb.experiment.summary import summary
from famnb.record.price_book import ceiling
from tests.plot.plot_figures import figure_text
from tests.support.experiment_frames import frame
from tests.support.fault_server import Action, FaultServer, chunked, event

CAP = 500
PRICE = {"input": 1, "output": 4}
PROMPT_TOKENS = 10


class HidingService(FaultServer):
    """Answers with a word after reasoning that it bills and never reports; breaks off before or after the word."""

    def __init__(self, breaks: float) -> None:
        self.bill = 0.0
        """USD so far."""
        self._chance, self._breaks = random.Random(1), breaks
        super().__init__(choose=self._answer)

    def _answer(self, _request: object) -> list[object]:
        tokens = self._chance.randrange(1, CAP + 1)
        self.bill += (PROMPT_TOKENS * PRICE["input"] + tokens * PRICE["output"]) / 1e6
        role, word = ({"choices": [{"delta": delta}]} for delta in ({"role": "assistant"}, {"content": "yes"}))
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        if self._chance.random() < self._breaks:
            events = [role] if self._chance.random() < 0.5 else [role, word]
            return [*chunked(*map(event, events), end=False, content_type="text/event-stream"), Action.CLOSE]
        steps = [*map(event, (role, word, end)), b"data: [DONE]\n\n"]
        return chunked(*steps, content_type="text/event-stream")


@pytest.fixture
def prices():
    famnb.prices.set("m", **PRICE)
    yield
    famnb.prices.unset("m")


def experiment(service: HidingService, tmp_path: Path, prompts: int) -> famnb.Experiment:
    client = famnb.Client(
        profile="open", base_url=f"{service.url}/v1", api_key="k" * 20, ledger=tmp_path / "ledger.sqlite"
    )
    variants = {"m": {"endpoint": "chat", "model": "m", "max_tokens": CAP, "stream": True}}
    return famnb.Experiment([f"Question {n}" for n in range(prompts)], variants, name="hidden", client=client)


def test_a_budget_is_not_passed_by_more_than_what_was_in_flight(tmp_path, prices):
    with HidingService(breaks=0.4) as service:
        exp = experiment(service, tmp_path, 200)
        worst = float(ceiling(exp.cells[0].request, exp.cells[0].profile).usd)
        report = exp.run(budget_usd="0.10", concurrency=32, progress=False)
        assert report.stopped_by == "budget"
        assert service.bill <= float(report.counted_usd) <= 0.10 + 32 * worst
        with contextlib.suppress(BudgetExceeded):
            exp.run(budget_usd="0.10", concurrency=32, progress=False)
        assert service.bill <= 0.10 + 32 * worst
        assert "stream_options" in str(report)


def test_what_was_not_reported_is_bounded_by_the_cap_alone(tmp_path, prices):
    with HidingService(breaks=0.0) as service:
        exp = experiment(service, tmp_path, 12)
        exp.run(progress=False)
        calls = exp.frame()
        assert calls["cost_low_usd"].sum() < service.bill <= calls["cost_high_usd"].sum()
        assert set(calls["output_tokens_high"]) == {CAP}
        check = exp.check(max={"cost_usd": 0.0005})
        assert check.outcome == "unknown"
        found = exp.summary()
        assert any("did not report their tokens" in note and "stream_options" in note for note in found.notes)
        assert found.text_columns()["cost"][0].startswith("at most $0.02")
        more = famnb.Experiment(["One more"], exp.variants, name="more", client=exp.client).forecast()
        assert more.total.output_tokens.high == CAP


def dear_when_it_fails(n: int = 60):
    """B's calls cost 0.9 times A's, and 26 of its 60 streams are cut off and billed: 1.59 times an answer."""
    cut = np.arange(n) % 30 < 13
    cost = np.linspace(0.9e-3, 1.1e-3, n)
    return frame(
        n,
        cost_usd=(cost, 0.9 * cost),
        score_exact=(np.ones(n), np.where(cut, np.nan, 1.0)),
        status=("completed", np.where(cut, "interrupted", "completed")),
        error=(None, np.where(cut, "StreamInterrupted", None)),
        http_status=(200, 200),
        e2e_s=(1.0, 1.0),
    )


def test_failed_calls_make_the_answers_dearer_in_every_sentence():
    found = summary(dear_when_it_fails(), primary="cost_usd")
    pair = found.pairs.set_index("metric").loc["cost_usd"]
    assert pair["ratio"] == pytest.approx(0.9 * 60 / 34)
    assert pair["clear"]
    assert found.verdict[0].startswith("Success rate: B fails 43.3 points more often than A")
    assert found.verdict[1].startswith("Cost: B costs 1.59 times as much as A ($0.00159 against $0.001;")
    costs = found.table[["cost_per_call_mean", "cost_per_answer_mean", "cost_per_right_mean"]]
    assert costs.loc["A"].tolist() == pytest.approx([0.001] * 3)
    assert costs.loc["B"].tolist() == pytest.approx([0.0009, *[0.0009 * 60 / 34] * 2])


def test_the_front_has_the_numbers_of_the_table():
    rows = dear_when_it_fails()
    columns = summary(rows).text_columns()
    shown = figure_text(famnb.plot.pareto(rows, by="variant", score="score_exact"))
    for head in ("cost an answer", "exact"):
        assert columns[head][1].partition(" (")[0] in shown, (head, columns[head], shown)


def test_a_failed_call_whose_cost_nobody_knows_leaves_the_bill_open():
    rows = dear_when_it_fails()
    rows.loc[rows["status"] == "interrupted", ["cost_usd", "cost_low_usd", "cost_high_usd"]] = np.nan
    found = summary(rows, primary="cost_usd")
    assert not found.pairs.set_index("metric").loc["cost_usd", "clear"]
    assert found.text_columns()["cost an answer"][1].startswith("≥ $0.0")
    # The figure has it where it is at least, with an arrow to what it may be.
    axes = famnb.plot.pareto(rows, by="variant", score="score_exact").axes[0]
    assert [text.xy[0] for text in axes.texts if text.arrow_patch] == [found.table.loc["B", "cost_per_answer_low"]]
