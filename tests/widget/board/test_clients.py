"""Boards over several services: each pane has the endpoints, fields and prices of its own client's."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.widget.board.board import Board
from tests.support.composers import receive, view_of

NAMES = ("openai", "anthropic", "openrouter")


@pytest.fixture
def clients(vendor_service: famnb.service.Server, tmp_path: Path) -> Iterator[dict[str, famnb.Client]]:
    """A client of each vendor's profile, all with one ledger."""
    options = {"base_url": vendor_service.url, "api_key": vendor_service.key, "ledger": tmp_path / "ledger.sqlite"}
    clients = {name: famnb.Client(profile=name, **options) for name in NAMES}
    yield clients
    for client in clients.values():
        client.close()


def test_each_pane_of_a_grid_asks_its_own_client(clients: dict[str, famnb.Client]):
    board = Board(variants=famnb.grid(client=clients, system="Be brief.", max_tokens=50))
    assert board.labels == NAMES
    for prompt in ("First?", "Second?"):
        board.say(prompt)
        replies = board.wait(60)
    assert [reply.error for reply in replies.values()] == [None] * 3
    assert [reply.endpoint for reply in replies.values()] == ["responses", "messages", "chat"]
    assert [type(reply.request) for reply in replies.values()] == [
        next(iter(client.endpoints.values())).request for client in clients.values()
    ]
    frame = board.frame()
    assert [*frame["profile"]] == [*frame["variant"]] == [*NAMES]


def test_the_frame_has_the_calls_of_every_client_s_ledger(vendor_service: famnb.service.Server, tmp_path: Path):
    options = {"base_url": vendor_service.url, "api_key": vendor_service.key}
    with (
        famnb.Client(profile="openai", ledger=tmp_path / "a.sqlite", **options) as client,
        famnb.Client(profile="anthropic", ledger=tmp_path / "b.sqlite", **options) as other,
    ):
        board = Board(client, {"b": {"client": other}, "a": {}}, prompt="Why?")
        assert board.frame().empty
        board.submit()
        board.wait(60)
        assert [*zip(board.frame()["variant"], board.frame()["profile"], strict=True)] == [
            ("b", "anthropic"),
            ("a", "openai"),
        ]


def test_each_pane_s_form_has_the_fields_of_its_own_service(clients: dict[str, famnb.Client]):
    board = Board(clients["openai"], {"own": {"endpoint": "chat"}, "other": {"client": clients["openrouter"]}})
    keys, other = ({field.key for group in pane.form.groups for field in group.fields} for pane in view_of(board).panes)
    assert "max_completion_tokens" in keys
    assert ("provider" in keys, "provider" in other) == (False, True)
    receive(board, "set_field", pane="p2", field="top_k", text="5")
    receive(board, "add")
    board.say("Why?")
    assert [reply.request.body().get("top_k") for reply in board.wait(60).values()] == [None, 5, 5]
    assert [*board.frame()["profile"]] == ["openai", "openrouter", "openrouter"]


def test_panes_without_labels_are_told_apart_by_their_clients(clients: dict[str, famnb.Client]):
    board = Board(variants=[{"client": client} for client in clients.values()])
    targets = [label.split(", ")[:2] for label in board.labels]
    assert targets == [["openai", "responses"], ["anthropic", "messages"], ["openrouter", "chat"]]
    with pytest.raises(InvalidRequest, match=r"variants\[0\]: client: expected a famnb.Client"):
        Board(clients["openai"], [{"client": "openai"}])
    with pytest.raises(InvalidRequest, match="no endpoint 'messages'"):
        Board(clients["openai"], [{"endpoint": "messages"}])


def test_the_experiment_s_code_carries_the_clients_by_name(clients, vendor_service, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(variable, vendor_service.key)
    monkeypatch.setenv("FAMNB_LEDGER", str(clients["anthropic"].ledger.path))
    board = Board(variants=famnb.grid(client=clients, max_tokens=50))
    board.say("Why?")
    sent = [reply.request.body() for reply in board.wait(60).values()]
    code = board.code
    assert vendor_service.key not in code
    assert "# Each reads its key from the variable of its profile" in code
    assert f"'anthropic': famnb.Client(profile='anthropic', base_url='{vendor_service.url}')" in code
    names: dict[str, object] = {}
    tree = ast.parse(code)
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    experiment = names["experiment"]
    assert isinstance(experiment, famnb.Experiment)
    planned = {str(cell.request.body()) for cell in experiment.cells}
    assert planned == {str(body) for body in sent}
    experiment.run()
    assert set(zip(experiment.frame()["variant"], experiment.frame()["profile"], strict=True)) == {
        (n, n) for n in NAMES
    }


def test_stop_and_seed_are_set_for_all_panes_that_have_them(clients: dict[str, famnb.Client]):
    """Under the name that each endpoint has, and one text to stop at as the list that it takes."""
    board = Board(variants={"chat": {"client": clients["openrouter"]}, "messages": {"client": clients["anthropic"]}})
    board.set_for_all(stop="END", seed=7)
    board.say("Why?")
    chat, messages = (reply.request.body() for reply in board.wait(60).values())
    assert (chat["stop"], messages["stop_sequences"]) == (["END"], ["END"])
    assert (chat["seed"], "seed" in messages) == (7, False)
    assert {field.key: field.text for field in view_of(board).shared if field.text} == {"stop": "END", "seed": "7"}
    board.set_for_all(stop=["END", "STOP"], seed=None)
    board.say("Why?")
    bodies = [reply.request.body() for reply in board.wait(60).values()]
    assert bodies[1]["stop_sequences"] == bodies[0]["stop"] == ["END", "STOP"]
    assert "seed" not in bodies[0]
    board.set_for_all(stop="\n")
    assert board.variants()["chat"]["stop"] == ["\n"]
