"""The ballot: blind, kept at once, taken up where it was left, hostile answers harmless, its result ordinary output."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import HBox

import famnb
from famnb.errors import InvalidRequest
from famnb.widget.experiment.ballot import Ballot, PairView, results_bundle
from famnb.widget.runtime.view import Encoder
from tests.support import wire_payloads
from tests.support.fault_server import FaultServer, Received, whole
from tests.widget.conftest import send_message

Make = Callable[..., famnb.Experiment]


def answer_with(answer: Callable[[str, str], str]) -> FaultServer:
    """A service that answers as a function of the system text and the prompt says."""

    def choose(request: Received) -> Any:
        system, prompt = (message["content"] for message in json.loads(request.body)["messages"])
        return whole(wire_payloads.body("chat", answer(system, prompt)))

    return FaultServer(choose=choose)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Runs an experiment of two variants, `one` and `two`, told apart by their system text."""
    with ExitStack() as stack:

        def make(
            prompts: list[str],
            answer: Callable[[str, str], str] = lambda system, prompt: f"{prompt} by {system}",
            **more: Any,
        ) -> famnb.Experiment:
            server = stack.enter_context(answer_with(answer))
            client = famnb.Client(base_url=server.url, api_key="k" * 20, ledger=tmp_path / "ballot.sqlite")
            stack.enter_context(client)
            variants = {name: {"model": "fam-mini", "system": name} for name in ("one", "two")}
            exp = famnb.Experiment(prompts, variants, name="ballot", client=client, stream=False, **more)
            exp.run(progress=False)
            return exp

        yield make


def press(ballot: Ballot, choice: str, *, turn: int | None = None) -> None:
    """What the page sends for a key or a button."""
    turn = ballot.view().turn if turn is None else turn
    send_message(ballot, kind="intent", id=1, name="choose", args={"choice": choice, "turn": turn})


def pair(ballot: Ballot) -> PairView:
    """The pair that the page is given."""
    view = ballot.view().pair
    assert view is not None
    return view


def status(ballot: Ballot) -> str:
    """How far the ballot says it is."""
    return ballot.view().status


def words_of(ballot: Ballot) -> str:
    """All words that the page is given."""
    return re.sub(r"<[^>]+>", " ", f"{Encoder().encode(ballot.view())} {ballot.error}")


def test_a_pair_is_shown_without_a_word_on_whose_it_is(make: Make):
    ballot = make(["Why?"], lambda system, _: "sooner" if system == "one" else "later").vote()
    assert status(ballot) == "0 of 1 voted on"
    shown = {re.sub(r"<[^>]+>", "", getattr(pair(ballot), side)).strip() for side in ("left", "right")}
    assert shown == {"sooner", "later"}
    assert "Why?" in pair(ballot).prompt
    assert not re.search(r"\b(one|two|fam-mini|tokens|s)\b|\$", words_of(ballot))


def test_every_vote_is_kept_at_once_and_a_ballot_goes_on_where_it_was_left(make: Make):
    exp = make(["a", "b", "c"])
    first = exp.vote(seed=3)
    press(first, "left")
    press(first, "tie")
    assert list(exp.votes()["winner"]) == ["left", "tie"]
    second = exp.vote(seed=3)
    assert (second.progress, pair(second).left) == ((2, 3), pair(first).left)
    press(second, "skip")
    assert status(second) == "All 3 voted on"
    assert second.view().choices == ("undo", "results")
    assert "2 votes count" in second.saved()["text/plain"]
    assert exp.vote(seed=3, voter="ann").progress == (0, 3)
    assert exp.vote(seed=4).progress == (3, 3)


def test_undo_takes_the_latest_vote_back_and_shows_its_pair(make: Make):
    exp = make(["a", "b"])
    ballot = exp.vote()
    pairs = [pair(ballot).left]
    press(ballot, "left")
    pairs.append(pair(ballot).left)
    press(ballot, "right")
    again = exp.vote()
    press(again, "undo")
    assert pair(again).left == pairs[1]
    press(again, "undo")
    assert (pair(again).left, again.progress, len(exp.votes())) == (pairs[0], (0, 2), 0)
    assert "undo" not in again.view().choices
    with pytest.raises(InvalidRequest, match="no vote to take back"):
        again.undo()


def test_a_choice_made_for_a_pair_that_is_gone_is_no_vote(make: Make):
    exp = make(["a", "b"])
    ballot = exp.vote()
    turn = ballot.view().turn
    press(ballot, "left", turn=turn)
    press(ballot, "left", turn=turn)
    assert ballot.progress == (1, 2)


def test_hostile_answers_are_shown_as_text(make: Make):
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script> ![x](http://127.0.0.1/x.png)"
    exp = make(["<b>bold?</b>"], lambda system, _: hostile + system)
    ballot = exp.vote()
    html = "".join(getattr(pair(ballot), name) for name in ("prompt", "left", "right"))
    assert not re.search(r"<(img|script|b)\b", html)
    assert "&lt;img src=x" in html


def test_equal_answers_are_ties_that_nobody_is_shown(make: Make):
    exp = make(["same", "other"], lambda system, prompt: "same" if prompt == "same" else system)
    ballot = exp.vote()
    assert exp.votes().empty
    press(ballot, "left")
    for ballot_now in (ballot, exp.vote()):
        assert status(ballot_now) == "All 1 voted on; ties because the answers are equal: 1"
    assert sorted(exp.votes()["winner"]) == ["left", "tie"]
    press(ballot, "undo")
    assert exp.votes()["winner"].tolist() == ["tie"]


def test_another_pair_takes_the_place_of_one_with_equal_answers(make: Make):
    exp = make(
        [f"same {n}" for n in range(9)] + ["other"], lambda system, prompt: prompt[:4] + system * ("o" in prompt)
    )
    ballot = exp.vote(1)
    assert "other" in words_of(ballot)
    press(ballot, "left")
    assert ballot.progress == (1, 1)
    assert exp.vote(1).progress == (1, 1)
    alike = make(["same"], lambda system, prompt: prompt, warmup=1).vote()
    assert status(alike) == "There is nothing to vote on; ties because the answers are equal: 1"


def test_the_result_is_ordinary_output(make: Make):
    exp = make([f"q{n}" for n in range(12)])
    ballot = exp.vote()
    while ballot.progress[0] < 12:
        press(ballot, "left" if "by one" in pair(ballot).left else "right")
    bundle = ballot.saved()
    assert set(bundle) == {"text/html", "text/markdown", "text/plain"}
    for text in bundle.values():
        assert "one is chosen over two in" in text
        assert "strength (95% interval)" in text.replace("\\", "")
    assert "half a win both ways" in bundle["text/plain"]


def test_a_result_without_votes_says_what_is_missing(make: Make):
    exp = make(["a"])
    press(ballot := exp.vote(), "results")
    assert "No ranking yet: there are no votes yet" in ballot.saved()["text/plain"]
    assert results_bundle(exp, progress="so far")["text/html"].startswith("<div")


def test_what_cannot_be_voted_on_is_refused(make: Make):
    exp = make(["a"])
    alone = famnb.Experiment(["a"], [{"model": "fam-mini"}], name="alone", client=exp.client)
    with pytest.raises(InvalidRequest, match="there is no pair to vote on"):
        alone.vote()
    with pytest.raises(InvalidRequest, match="since those are judges'"):
        exp.vote(voter="judge:me")
    with pytest.raises(InvalidRequest, match="n: expected an integer of at least 1, got 0"):
        exp.vote(0)
    with pytest.raises(InvalidRequest, match=r"voter: expected a name.*got None"):
        exp.vote(voter=None)
    with pytest.raises(InvalidRequest, match="seed: expected an integer, got 'x'"):
        exp.vote(seed="x")
    ballot = exp.vote()
    with pytest.raises(InvalidRequest, match="winner: expected one of left"):
        ballot.vote("both")
    ballot.vote("tie")
    with pytest.raises(InvalidRequest, match="no pair left"):
        ballot.vote("tie")


def test_trouble_in_a_callback_is_shown_in_the_ballot(make: Make, monkeypatch: pytest.MonkeyPatch):
    ballot = make(["a", "b"]).vote()
    monkeypatch.setattr("famnb.widget.experiment.ballot.ratings.save", lambda *_: 1 / 0)
    press(ballot, "left")
    assert ballot.error == "ZeroDivisionError: division by zero"
    assert ballot.progress == (0, 2)


def test_the_result_says_that_all_answers_were_simulated(client: famnb.Client):
    variants = {name: {"model": f"fam-2-5-{name}"} for name in ("mini", "pro")}
    exp = famnb.Experiment(["Why?"], variants, name="simulated", client=client, max_tokens=200)
    exp.run(progress=False)
    press(ballot := exp.vote(), "tie")
    assert "These answers were simulated; a decision needs real ones." in ballot.saved()["text/plain"]


def test_a_ballot_is_a_widget_that_leaves_its_result(make: Make):
    ballot = make(["a"]).vote()
    assert HBox([ballot]).children == (ballot,)
    bundle, _ = ballot._repr_mimebundle_()
    assert "0 of 1 voted on" in bundle["text/html"]
    assert bundle["text/plain"].endswith("A ballot: run this cell to vote.")
    press(ballot, "tie")
    assert "1 vote" in ballot._repr_mimebundle_()[0]["text/html"]


def test_a_reloaded_page_is_told_what_it_cannot_do(make: Make):
    ballot = make(["a"]).vote()
    press(ballot, "tie")
    for page in ("1", "1"):
        send_message(ballot, kind="ready", page=page)
    assert "was reloaded" not in ballot.view().results
    for page in ("2", "3"):
        send_message(ballot, kind="ready", page=page)
    assert ballot.view().results.count("was reloaded") == 1
