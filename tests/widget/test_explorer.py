"""The explorer: what its page gets, what a point says, what is brushed, and which call opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ipywidgets import HBox

import famnb
from famnb.service import Server
from famnb.widget import explorer as explorers
from famnb.widget.explorer import Explorer
from tests.support.plot_frames import START_US, calls, many_calls, priced_calls

HOSTILE = "<img src=x onerror=alert(1)>\n\u202eabc"


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What explorers send."""
    messages: list[dict[str, Any]] = []

    def send(_explorer: Explorer, message: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        assert json.loads(json.dumps(message)) == message
        messages.append({**message, "buffers": buffers})

    monkeypatch.setattr(Explorer, "send", send)
    return messages


def says(explorer: Explorer, **message: object) -> None:
    """What the page sends."""
    explorer._on_message(explorer, message, None)


def test_places_go_to_the_page_as_bytes(sent: list[dict[str, Any]]):
    """32-bit floats in the axis' unit, times from the first one on, groups as bytes; no row goes as JSON."""
    explorer = famnb.plot.explore(calls(model=["a", "b", "a"], ttft_s=[0.25, 0.5, 0.125]), y="ttft_s")
    says(explorer, kind="ready", page="1")
    [snapshot] = sent
    parts = dict(zip(snapshot["binary"], snapshot["buffers"], strict=True))
    assert list(np.frombuffer(parts["xs"], "<f4")) == [0, 1, 2]
    assert list(np.frombuffer(parts["ys"], "<f4")) == [250, 500, 125]
    assert list(parts["codes"]) == [0, 1, 0]
    plot = snapshot["plot"]
    assert (plot["x"]["label"], plot["x"]["kind"], plot["x"]["offset"]) == ("start (UTC)", "time", START_US / 1e6)
    assert [(group["label"], group["count"]) for group in plot["groups"]] == [("a", "2"), ("b", "1")]
    assert plot["title"] == "Time to first token against start by model"


def test_no_place_and_no_prompt_is_widget_state():
    """Front ends that save widget state save nothing of the frame."""
    explorer = famnb.plot.explore(calls(model=["a"], e2e_s=[0.5], prompt=["a secret of mine"]))
    traits = {name: value for name, value in explorer.get_state().items() if name not in ("_esm", "_css")}
    assert "secret" not in json.dumps(traits, default=str)


def test_what_is_said_of_points_follows_when_it_is_asked_for(sent: list[dict[str, Any]]):
    """Words by their number, each once; numbers and times as they are; what is missing is no word and no number."""
    frame = priced_calls(
        ["m", "m"], [0.25, 0.5], off=1.2, ttft_s=[0.25, None], prompt=["Why?", HOSTILE * 9], e2e_s=[2.0, 3.0]
    ).assign(cost_high_usd=[0.3, 9.0], status=["failed", None])
    says(famnb.plot.explore(frame, x="input_tokens"), kind="facts")
    [message] = sent
    facts = {fact["name"]: fact for fact in message["facts"]}
    parts = dict(zip(message["binary"], message["buffers"], strict=True))

    def part(name: str, what: str) -> bytes:
        return parts[f"{what}{facts[name]['number']}"]

    assert facts["status"]["role"] == "title"
    assert part("status", "words").decode().split("\n") == ["failed", ""]
    assert (facts["status"]["width"], list(part("status", "values"))) == (1, [0, 1])
    why, hostile, missing = part("prompt", "words").decode().split("\n")
    assert (why, missing, len(hostile)) == ("Why?", "", 120)
    assert "[U+202E]" in hostile
    assert np.frombuffer(part("started", "values"), "<f8").tolist() == [START_US / 1e6, START_US / 1e6 + 1]
    assert np.isnan(np.frombuffer(part("first token", "values"), "<f4")).tolist() == [False, True]
    # The second cost may be nine dollars: as in a table of calls it is not known but for its high end.
    assert np.frombuffer(part("cost", "values"), "<f4").tolist() == [0.25, 9.0]
    assert [facts["cost"]["marks"][mark] for mark in part("cost", "marks")] == ["≈", "at most "]


def test_of_very_many_prompts_fewer_characters_go_to_the_page(
    sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    """A frame of as many long prompts as calls is not sent whole."""
    monkeypatch.setattr(explorers, "MANY_WORDS", 3)
    says(famnb.plot.explore(many_calls(24).assign(prompt=[f"{n} {'long ' * 50}" for n in range(24)])), kind="facts")
    [message] = sent
    number = next(fact["number"] for fact in message["facts"] if fact["name"] == "prompt")
    words = message["buffers"][message["binary"].index(f"words{number}")].decode().split("\n")
    assert len(words) == 25
    assert {len(word) for word in words[:-1]} == {60}


def test_brushing_filters_the_frame():
    """All until something is brushed; then the rows inside, without hidden groups; observers hear of it."""
    frame = many_calls(200)
    explorer = famnb.plot.explore(frame, x="input_tokens", y="e2e_s")
    assert explorer.selection.equals(frame)
    heard: list[int] = []
    explorer.observe(lambda change: heard.append(len(change["new"])), "selection")
    says(explorer, kind="brush", x=[300, 100], y=[2, 3])
    inside = frame[frame["input_tokens"].between(100, 300) & frame["e2e_s"].between(2, 3)]
    assert explorer.selection.equals(inside)
    assert 0 < len(inside) < len(frame)
    says(explorer, kind="hide", groups=[0])
    assert explorer.selection.equals(inside[inside["model"] == "model-02"])
    chosen = explorer.describe()["chosen"]
    assert chosen["title"] == f"{len(explorer.selection)} of 200 rows chosen"
    assert [row["id"] for row in chosen["rows"]] == list(explorer.selection.index[::-1])
    says(explorer, kind="brush", x=None, y=None)
    says(explorer, kind="hide", groups=[])
    assert explorer.selection.equals(frame)
    assert heard == [len(inside), len(inside[inside["model"] == "model-02"]), 100, 200]


def test_the_list_is_as_long_as_one_reads():
    """The last hundred rows, and how many there are."""
    chosen = famnb.plot.explore(many_calls(300)).describe()["chosen"]
    assert chosen["title"] == "300 rows; the last 100"
    assert [row["id"] for row in chosen["rows"]] == list(range(299, 199, -1))


def test_a_point_and_a_row_open_their_call(client: famnb.Client):
    """As an inspector shows it, with its events; closing takes it away."""
    for prompt in ("one", "two", "three"):
        client.ask(prompt, model="fam-mini", endpoint="chat", max_tokens=50)
    explorer = famnb.plot.explore(famnb.calls(client), ledger=client.ledger)
    says(explorer, kind="open", number=1)
    parts = explorer.describe()
    assert parts["opened"] == 1
    assert "two" in parts["call"]["transcript"]
    says(explorer, kind="events", filter="no such text")
    assert explorer.describe()["events"]["summary"].startswith("None of the")
    says(explorer, kind="open", row=2)
    assert "three" in explorer.describe()["call"]["transcript"]
    says(explorer, kind="shut")
    assert explorer.describe()["call"] is None


def test_a_call_that_cannot_be_opened_is_said_under_the_plot(client: famnb.Client):
    """Of another ledger, with what to do; of a frame that names no calls."""
    explorer = famnb.plot.explore(many_calls(3), ledger=client)
    says(explorer, kind="open", number=0)
    assert "give that one as `ledger=`" in explorer._trouble
    says(explorer, kind="facts")
    assert explorer._trouble == ""
    nameless = famnb.plot.explore(many_calls(3).drop(columns="call_id"), ledger=client)
    says(nameless, kind="open", number=0)
    assert "names no call" in nameless._trouble


def test_an_explorer_is_a_widget_that_leaves_a_picture():
    """It can stand in a box; without a kernel a picture is left, its text, and how to get the widget back."""
    explorer = famnb.plot.explore(many_calls(50))
    assert HBox([explorer]).children == (explorer,)
    bundle, _ = explorer._repr_mimebundle_()
    assert '<img src="data:image/png;base64,' in bundle["text/html"]
    assert "Time to the end of the reply against start by model" in bundle["text/plain"]
    assert bundle["text/plain"].endswith("run this cell to use them.")


def test_an_empty_frame_says_why():
    """In words, on the page and in what is saved."""
    for frame, why in ((calls(), "there are no calls in this frame"), (calls(model=["a"]), "none of these 1 call has")):
        explorer = famnb.plot.explore(frame)
        assert why in explorer.describe()["plot"]["empty"]
        assert why in explorer.snapshot()["text/plain"]
        assert len(explorer.selection) == 0
