"""Panes that are edited in place, talks that go on in each of them, and the experiment that is made of a board."""

from typing import Any

import pytest

import famnb
from famnb.widget.board.board import Board
from famnb.widget.board.panes import read_variants
from famnb.widget.form.python_code import variant_fields
from tests.support.composers import receive, view_of

PAIR = {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro"}}


def bodies_of(board: Board) -> list[Any]:
    """The bodies of the latest round."""
    return [reply.request.body() for reply in board.wait(60).values()]


def test_a_follow_up_goes_on_with_every_pane_s_own_chat(client: famnb.Client):
    board = Board(client, {**PAIR, "lost": {"endpoint": "responses", "previous_response_id": "resp_of_nobody"}})
    board.say("First?")
    first = board.wait(60)
    board.say("Second?")
    small, large, lost = bodies_of(board)
    for body, label in ((small, "small"), (large, "large")):
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert body["messages"][1]["content"][0]["text"] == first[label].text
        assert "Second?" in str(body["messages"][2])
    assert "First?" not in str(lost)
    board.new_talk()
    board.say("Third?")
    assert [len(body["messages"]) for body in bodies_of(board)[:2]] == [1, 1]


def test_a_pane_that_is_edited_sends_what_its_form_says_and_is_called_so(client: famnb.Client):
    board = Board(client, [{"model": "fam-2-5-mini"}, {"model": "fam-2-5-pro", "label": "mine"}], system="Be kind.")
    receive(board, "choose_endpoint", pane="p1", endpoint="web")
    receive(board, "set_field", pane="p1", field="max_new_tokens", text="77")
    receive(board, "set_field", pane="p2", field="model", text="fam-2-5-mini")
    assert board.labels == ("web, max_tokens=77", "mine")
    board.say("Hi?")
    web, mine = bodies_of(board)
    assert (web["max_new_tokens"], mine["model"]) == (77, "fam-2-5-mini")
    assert all("Be kind." in str(body) for body in (web, mine))
    receive(board, "set_field", pane="p2", field="temperature", text="9")
    assert view_of(board).prompt.fault.startswith("mine: temperature")
    with pytest.raises(famnb.InvalidRequest, match="pane 'mine': temperature"):
        board.say("Again?")
    assert len(famnb.calls(client)) == 2


def test_the_code_makes_an_experiment_of_the_same_prompts_and_variants(client, server, monkeypatch):
    monkeypatch.setenv("FAM_API_KEY", server.key)
    board = Board(client, {**PAIR, "thinker": {"endpoint": "messages", "thinking": 64, "system": "Be kind."}})
    for prompt in ("First?", 'Say "no"\nin {city}.'):
        board.say(prompt)
        board.wait(60)
    scope: dict[str, Any] = {"famnb": famnb}
    exec(board.code.replace("experiment.forecast()", ""), scope)
    experiment = scope["experiment"]
    assert [prompt.text for prompt in experiment.prompts] == ["First?", 'Say "no"\nin {city}.']
    assert [variant.label for variant in experiment.variants] == ["small", "large", "thinker"]
    assert experiment.variants[2].fields["thinking"] == 64
    assert experiment.variants[2].fields["system"] == "Be kind."
    # What was answered and graded is not asked again, wherever it is kept.
    assert experiment.client.ledger.path == client.ledger.path
    rows = {city: famnb.compose("messages", f"Hello {city}", max_tokens=9) for city in ("Oslo", "Rome")}
    scope = {"famnb": famnb}
    exec(Board(client, rows).code.replace("experiment.forecast()", ""), scope)
    assert [prompt.text for prompt in scope["experiment"].prompts] == ["Hello Oslo", "Hello Rome"]
    assert len(scope["experiment"].variants) == 1


def test_fields_that_ask_has_no_argument_for_are_fields_of_the_variant():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    request = famnb.compose("web", "Hi", tools=[tool], max_tokens=5)
    assert variant_fields(request)["tools"] == [tool]


def test_what_a_grid_has_and_a_whole_request_are_variants():
    grid = famnb.grid(model="fam-mini", temperature=0.0)
    panes = read_variants([*grid, famnb.compose("messages", "Own?", system="Brief.", max_tokens=9)])
    first, second = (pane.request("Asked?") for pane in panes)
    assert (first.endpoint, first.temperature, first.stream) == ("chat", 0.0, True)
    assert second.max_tokens == 9
    assert "Asked?" in str(second.body()["messages"])
    assert "Brief." in str(second.body()["system"])
    assert "Own?" in str(panes[1].request("").body())
    assert "is carried as the nearest" in str(read_variants([{"endpoint": "web", "thinking": 64}])[0].view().remarks)
