"""The composer against the real client and the local service, driven as its buttons and controls drive it."""

import json
import sys
from types import FrameType

import ipywidgets as widgets
import pytest

import famnb
from famnb.api import Client
from famnb.endpoints import ENDPOINTS
from famnb.widget import Composer
from tests.support.composers import (
    choose_endpoint,
    error_of,
    faults_of,
    panel_of,
    receive,
    send_prompt,
    texts_of,
    view_of,
    wait_until_idle,
    write_field,
)
from tests.support.waiting import wait_until


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_each_endpoint_is_chosen_sent_and_shown(client: Client, endpoint: str):
    composer = Composer(client, prompt="Say hello.", system="Be kind.")
    choose_endpoint(composer, endpoint)
    assert composer.request.endpoint == endpoint
    stream = composer.submit()
    wait_until_idle(composer, replies=1)
    assert composer.reply is stream.reply
    assert composer.replies == (stream.reply,)
    assert set(composer.saved()) == {"text/html", "text/markdown", "text/plain"}
    assert "Say hello." in composer.saved()["text/plain"]
    assert "Be kind." in composer.saved()["text/plain"]
    assert stream.reply.text.split("\n")[-1] in composer.saved()["text/plain"]


def test_a_fault_stands_at_its_control_and_keeps_send_from_sending(client: Client):
    composer = Composer(client, prompt="Hi")
    write_field(composer, "temperature", "3")
    assert view_of(composer).prompt.fault == "temperature: should be less than or equal to 2, got 3"
    assert faults_of(composer) == {"temperature": "should be less than or equal to 2, got 3"}
    with pytest.raises(famnb.InvalidRequest, match="temperature"):
        composer.submit()
    write_field(composer, "max_tokens", "many")
    assert set(faults_of(composer)) == {"max_tokens", "temperature"}
    write_field(composer, "max_tokens", "")
    write_field(composer, "temperature", "0.3")
    assert view_of(composer).prompt.fault == ""
    assert composer.request.body()["temperature"] == 0.3


def test_without_a_prompt_nothing_is_sent(client: Client):
    composer = Composer(client)
    with pytest.raises(famnb.InvalidRequest, match="write a prompt"):
        composer.submit()
    send_prompt(composer, "  ")
    assert "write a prompt" in error_of(composer)
    assert composer.reply is None


def test_another_endpoint_says_what_it_cannot_carry_and_gives_it_back(client: Client):
    composer = Composer(client, prompt="Hi")
    write_field(composer, "thinking.type", "enabled")
    write_field(composer, "thinking.budget_tokens", "256")
    write_field(composer, "max_tokens", "700")
    choose_endpoint(composer, "web")
    assert "nearest reasoning effort" in str(view_of(composer).prompt.remarks)
    assert composer.request.body()["max_new_tokens"] == 700
    assert composer.request.body()["reasoning"] == {"effort": "low"}
    choose_endpoint(composer, "messages")
    assert composer.request.body()["thinking"] == {"type": "enabled", "budget_tokens": 256}


def test_a_thinking_budget_turns_thinking_on(client: Client):
    """A budget without a type would be refused: the type is set, seen, and unset with the budget."""
    composer = Composer(client, prompt="Hi")
    write_field(composer, "thinking.budget_tokens", "256")
    assert texts_of(composer).get("thinking.type", "") == "enabled"
    assert composer.request.body()["thinking"] == {"type": "enabled", "budget_tokens": 256}
    write_field(composer, "thinking.budget_tokens", "")
    assert "thinking" not in composer.request.body()
    write_field(composer, "thinking.type", "disabled")
    for budget in ("256", ""):
        write_field(composer, "thinking.budget_tokens", budget)
        assert composer.request.body()["thinking"]["type"] == "disabled"


@pytest.mark.parametrize(("endpoint", "path"), [("web", "response_format"), ("responses", "text.format")])
def test_a_schema_asks_for_json_by_it(client: Client, endpoint: str, path: str):
    """A schema beside the type `text` would be ignored without a word."""
    composer = Composer(client, endpoint=endpoint, prompt="Hi")
    schema = ".json_schema.schema" if endpoint == "web" else ".schema"
    write_field(composer, path + schema, '{"type": "object"}')
    assert texts_of(composer).get(f"{path}.type", "") == "json_schema"


def test_a_form_asks_a_stream_for_its_usage_and_shows_that(client: Client):
    composer = Composer(client, endpoint="web", prompt="Hi")
    assert texts_of(composer)["stream_options.include_usage"] == "true"
    assert composer.request.body()["stream_options"] == {"include_usage": True}
    assert view_of(composer).prompt.remarks == ()
    write_field(composer, "stream", "false")
    assert "stream_options" not in composer.request.body()
    write_field(composer, "stream", "true")
    for _ in range(2):
        choose_endpoint(composer, "messages")
        assert view_of(composer).prompt.remarks == ()
        choose_endpoint(composer, "web")
        assert composer.request.body()["stream_options"] == {"include_usage": True}
    composer.submit()
    wait_until_idle(composer, replies=1)
    assert composer.replies[0].usage.source("output_tokens") == "reported"
    receive(composer, "new_talk")
    write_field(composer, "stream_options.include_usage", "")
    for name in ("messages", "web"):
        choose_endpoint(composer, name)
        assert "stream_options" not in composer.request.body()


def test_the_chosen_model_goes_along_and_comes_back(client: Client):
    composer = Composer(client, prompt="Hi")
    models = []
    write_field(composer, "model", "fam-2-5-mini")
    for name in ("web", "chat", "web"):
        choose_endpoint(composer, name)
        models.append(composer.request.model)
    assert models == ["fam-2-5-mini", "fam-mini", "fam-2-5-mini"]


def test_a_refused_call_is_shown_with_its_error(server: famnb.service.Server):
    with Client(base_url=server.url, api_key="wrong-key") as client:
        composer = Composer(client, prompt="Hi")
        composer.submit()
        wait_until_idle(composer, replies=1)
    assert "AuthenticationError" in composer.saved()["text/plain"]
    assert "failed" in composer.saved()["text/html"]


def test_an_unknown_field_is_named_with_those_there_are(client: Client):
    composer = Composer(client, prompt="Hi")
    write_field(composer, "temprature", "1")
    assert "temprature: messages has no such field; it has model, messages" in error_of(composer)
    write_field(composer, "temperature", "1")
    assert error_of(composer) == ""


def test_it_is_one_widget_that_composes_without_a_key_in_it(client: Client, server: famnb.service.Server):
    composer = Composer(client, prompt="Say hello.", system="Be kind.")
    composer.submit()
    wait_until_idle(composer, replies=1)
    assert widgets.HBox([composer]).children == (composer,)
    state = {name: value for name, value in composer.get_state().items() if name not in ("_esm", "_css")}
    assert len(json.dumps(state, default=str)) < 2_000
    assert not any(words in str(state) for words in ("Say hello", "Be kind"))
    data, _ = composer._repr_mimebundle_()
    assert data["text/plain"].endswith("A famnb.Composer: run this cell to use it.")
    assert "Say hello." in data["text/html"]
    assert composer.reply.text.split("\n")[-1].split("`")[0] in data["text/html"]
    panel = panel_of(composer, "Code")
    assert server.key not in str(widgets.Widget.get_manager_state()) + str(view_of(composer)) + str(panel)


def test_request_reply_and_turns_can_be_observed(client: Client):
    composer = Composer(client)
    seen: dict[str, list[object]] = {name: [] for name in ("request", "reply", "turns")}
    composer.observe(lambda change: seen[change["name"]].append(change["new"]), list(seen))
    receive(composer, "set_prompt", text="Hi")
    write_field(composer, "temperature", "x")
    assert seen["request"] == [famnb.compose("messages", "Hi", model="fam-2-5-pro", stream=True), None]
    write_field(composer, "temperature", "")
    send_prompt(composer, "Hi")
    wait_until_idle(composer, replies=1)
    assert seen["reply"] == [composer.reply]
    assert seen["turns"] == [composer.turns]
    assert Composer.request.help.startswith("The request that `submit` would send now")


def test_tokens_and_the_most_it_costs_are_said_before(client: Client):
    composer = Composer(client, endpoint="chat", prompt="Why is the sky blue?")
    prompt = view_of(composer).prompt
    text, help = prompt.estimate, prompt.estimate_help
    assert text.startswith("≈ 9 tokens in · at most $0.01")
    assert "16,384 tokens" in help
    write_field(composer, "max_tokens", "100")
    assert view_of(composer).prompt.estimate.endswith("at most $0.000128")
    choose_endpoint(composer, "messages")
    prompt = view_of(composer).prompt
    text, help = prompt.estimate, prompt.estimate_help
    assert text.endswith("cost unknown")
    assert "famnb.prices.set('fam-2-5-pro'" in help
    send_prompt(composer, "Why is the sky blue?")
    wait_until_idle(composer, replies=1)
    receive(composer, "set_prompt", text="Why?")
    assert int(view_of(composer).prompt.estimate.split()[1]) > 50


def test_variables_are_filled_in_from_the_chosen_row(client: Client):
    composer = Composer(client, prompt="Hello {city} in {season}, {x}", system="Speak {language}.")
    assert view_of(composer).prompt.variables.names == ("city", "season", "x", "language")
    rows = [{"city": "Oslo", "season": "May", "language": "Norwegian"}, {"city": "Rome"}]
    receive(composer, "set_rows", rows=rows, row=0)
    body = str(composer.request.body())
    assert "Hello Oslo in May, {x}" in body
    assert "Speak Norwegian." in body
    receive(composer, "set_rows", rows=rows, row=1)
    send_prompt(composer, "Hello {city}")
    assert wait_until_idle(composer, replies=1).turns[0].prompt == "Hello Rome"
    receive(composer, "set_rows", rows=[{"city": "Oslo"}] * 101, row=0)
    assert "make an experiment of them" in error_of(composer)
    assert view_of(composer).prompt.variables.rows == tuple(rows)


def test_all_rows_are_run_as_a_matrix(client: Client):
    composer = Composer(client, prompt="Hello {city}")
    receive(composer, "run_all_rows")
    assert "write a variable such as {city}" in error_of(composer)
    receive(composer, "set_rows", rows=[{"city": "Oslo"}, {"city": "Rome"}, {}], row=0)
    write_field(composer, "max_tokens", "9")
    receive(composer, "run_all_rows")
    matrix = composer.matrix
    assert matrix is not None
    wait_until(lambda: list(matrix.experiment.frame()["status"]) == ["incomplete"] * 2)
    assert [row.prompt for row in view_of(matrix).rows] == ["Hello Oslo", "Hello Rome"]


def test_compare_on_a_reloaded_page_says_where_the_board_is(client: Client):
    composer = Composer(client, prompt="Hi")
    composer._ipython_display_()
    for page, is_shown in (("first", True), ("reloaded", False)):
        composer.receive({"kind": "ready", "page": page})
        board = composer.compare()
        assert board.is_shown == is_shown
        assert ("composer.board" in str(view_of(composer).prompt.remarks)) != is_shown


def test_without_a_client_it_is_the_one_that_was_connected(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("famnb.client.connected.client", client)
    assert Composer()._client is client


def test_the_old_names_say_the_new_ones(client: Client):
    composer = Composer(client, prompt="Hi")
    with pytest.raises(famnb.errors.InvalidArgument, match=r"by submit\(\)"):
        composer.send()
    with pytest.raises(famnb.errors.InvalidArgument, match=r"by load\(\)"):
        composer.open(composer.request)
    composer.send({"kind": "anything"})


def test_one_enter_composes_once(client: Client):
    composer = Composer(client)
    prompts: list[str] = []

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is famnb.compose.__code__:
            prompts.append(frame.f_locals["prompt"])

    sys.setprofile(count)
    try:
        receive(composer, "set_prompt", text="Hi")
        view_of(composer)
        send_prompt(composer, "Hi")
    finally:
        sys.setprofile(None)
    wait_until_idle(composer, replies=1)
    assert prompts.count("Hi") == 1
