"""The composer's conversations, tools and answers of a type, against the real client and the local service."""

import dataclasses
import json
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import pydantic
import pytest

import famnb
from famnb.api import Client
from famnb.endpoints import ENDPOINTS
from famnb.events import Delta
from famnb.widget import Composer
from famnb.widget.composer.turns import TurnCall, TurnPane
from famnb.widget.live.reply_pane import UNFINISHED
from tests.support.composers import (
    calls_of,
    choose_endpoint,
    error_of,
    receive,
    send_prompt,
    texts_of,
    view_of,
    wait_for_pending_call,
    wait_until_idle,
    write_field,
)
from tests.support.scripted_stream import ScriptedStream
from tests.support.waiting import wait_until


class Trip(pydantic.BaseModel):
    title: str
    nights: int


@pytest.fixture
def ran() -> list[str]:
    """The cities that the tool was run for."""
    return []


@pytest.fixture
def weather(ran: list[str]) -> Callable[..., Any]:
    """A tool, as a user writes one."""

    @famnb.tool
    def weather(city: str) -> dict[str, Any]:
        """The weather of a city right now."""
        ran.append(f"{city} on {threading.current_thread().name}")
        return {"city": city, "celsius": 4}

    return weather


@pytest.fixture
def tides(ran: list[str]) -> Callable[..., Any]:
    """A second one."""

    @famnb.tool
    def tides(city: str) -> str:
        """The tides of a city."""
        ran.append(city)
        return "high"

    return tides


def prompts(composer: Composer) -> list[Any]:
    """What the user says on the branch in view."""
    return [turn.prompt for turn in composer.turns]


def with_two_turns(client: Client, **settings: Any) -> Composer:
    """A composer with two turns."""
    composer = Composer(client, prompt="My name is Ada.", **settings)
    composer.submit()
    wait_until_idle(composer).say("What is my name?")
    return wait_until_idle(composer)


# Conversations


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_reply_is_continued_and_a_turn_is_edited_on_every_endpoint(client: Client, endpoint: str):
    composer = with_two_turns(client, endpoint=endpoint, system="Be brief.")
    assert prompts(composer) == ["My name is Ada.", "What is my name?"]
    assert "“My name is Ada.”" in composer.reply.text
    body = composer.reply.request.body()
    assert ("previous_response_id" in body) == (endpoint == "responses")
    assert "Be brief." in str(body)
    composer.edit(0, "My name is Grace.")
    assert prompts(wait_until_idle(composer)) == ["My name is Grace."]
    composer.switch(0, 0)
    assert prompts(composer) == ["My name is Ada.", "What is my name?"]
    composer.switch(0, 1)
    composer.say("And now?")
    assert "“My name is Grace.”" in wait_until_idle(composer).reply.text
    assert "Ada" not in composer.reply.text


def test_a_turn_is_asked_again_with_the_form_as_it_is_now(client: Client):
    composer = with_two_turns(client, endpoint="messages")
    choose_endpoint(composer, "responses")
    composer.regenerate()
    wait_until_idle(composer)
    assert prompts(composer) == ["My name is Ada.", "What is my name?"]
    assert [reply.endpoint for reply in composer.replies] == ["messages", "messages", "responses"]
    assert "“My name is Ada.”" in composer.reply.text


def test_while_a_turn_is_answered_no_other_is_asked(client: Client):
    composer = with_two_turns(client)
    stream = composer.say("Count to 300.")
    assert composer.submit() is stream
    receive(composer, "regenerate", turn=0)
    assert composer.edit(0, "Hm") is stream
    send_prompt(composer, "And?")
    assert "not sent, since an answer is still being written" in error_of(composer)
    composer.stop()
    assert prompts(wait_until_idle(composer))[-1] == "Count to 300."
    assert len(composer.replies) == 3


def test_a_failed_turn_is_a_version_and_the_talk_goes_on_before_it(client: Client, server: famnb.service.Server):
    composer = with_two_turns(client)
    with Client(base_url=server.url, api_key="wrong-key") as locked_out:
        composer._client = locked_out
        composer.say("Me?")
        assert wait_until_idle(composer).reply.status == "failed"
    composer._client = client
    composer.say("And now?")
    assert prompts(wait_until_idle(composer)) == ["My name is Ada.", "What is my name?", "And now?"]
    assert (view_of(composer).turns[-1].version, view_of(composer).turns[-1].version_count) == (1, 2)


@pytest.mark.filterwarnings("ignore:the service has not stored")
def test_what_the_service_has_forgotten_is_sent_again(client: Client):
    composer = with_two_turns(client, endpoint="responses")
    with famnb.serve(time_scale=0) as other, Client(base_url=other.url, api_key=other.key) as elsewhere:
        composer._client = elsewhere
        composer.say("And now?")
        wait_until_idle(composer)
    assert "“My name is Ada.”" in composer.reply.text
    notes = calls_of(composer)[-1].pane.notes
    assert "the service has not stored the turn before: the whole conversation is sent again" in notes


def test_a_picture_goes_along_once_and_to_other_endpoints(client: Client):
    composer = Composer(client, endpoint="chat", prompt="What is it?")
    composer.load(famnb.compose("chat", "-").replace(messages=[{"role": "user", "content": PICTURED}]))
    composer.submit()
    wait_until_idle(composer).say("Which colour?")
    messages = wait_until_idle(composer).reply.request.body()["messages"]
    assert [isinstance(message["content"], list) for message in messages] == [True, False, False]
    composer.regenerate(0)
    assert wait_until_idle(composer).reply.request.body()["messages"] == messages[:1]
    choose_endpoint(composer, "responses")
    composer.say("Which shape?")
    first = wait_until_idle(composer).reply.request.body()["input"][0]
    assert [part["type"] for part in first["content"]] == ["input_text", "input_image"]


PICTURED = [
    {"type": "text", "text": "What is it?"},
    {"type": "image_url", "image_url": {"url": "http://127.0.0.1/dot.png"}},
]


def test_every_branch_and_every_conversation_is_in_the_saved_output(client: Client):
    composer = with_two_turns(client)
    composer.regenerate()
    wait_until_idle(composer).edit(0, "My name is Grace.")
    wait_until_idle(composer).new_talk()
    receive(composer, "set_prompt", text="Something else.")
    composer.submit()
    wait_until_idle(composer).say("More of it.")
    wait_until_idle(composer)
    for kind in ("text/html", "text/markdown", "text/plain"):
        text = composer.saved()[kind]
        places = [text.index(words) for words in ("Something else.", "More of it.", "My name is Grace.")]
        assert places == sorted(places)
        assert "another version of turn 1" in text
        assert "another version of turn 2" in text
    html = composer.saved()["text/html"]
    assert html.count("<details") == 3
    assert "Something else.” · 2 turns" not in html, "what is in view needs no title"


def test_what_is_saved_while_an_answer_streams_has_its_prompt_and_says_where_the_answer_is():
    with famnb.serve(time_scale=5) as service, famnb.Client(base_url=service.url, api_key=service.key) as client:
        composer = Composer(client, prompt="Write a long text.")
        composer.submit()
        wait_until(lambda: "Write a long text." in composer.saved()["text/plain"])
        assert UNFINISHED in composer.saved()["text/plain"]
        composer.stop()
        wait_until_idle(composer)
        assert UNFINISHED not in composer.saved()["text/plain"]


def test_a_turn_that_cannot_be_drawn_for_the_file_is_answered_all_the_same(client: Client):
    composer = with_two_turns(client)
    with mock.patch.object(composer, "update_saved", side_effect=[ZeroDivisionError, None]):
        with pytest.raises(ZeroDivisionError):
            composer.say("And now?")
        wait_until_idle(composer)
    assert [reply.status for reply in composer.replies] == ["completed"] * 3
    assert prompts(composer)[-1] == "And now?"


def test_an_answer_is_edited_and_the_chat_goes_on_from_that(client: Client):
    """Sent in place of what came, also where the service has stored that; the answer as it came stays as a version."""
    composer = Composer(client, endpoint="responses", prompt="Who are you?")
    composer.submit()
    answer = wait_until_idle(composer).reply.text
    receive(composer, "edit_answer", turn=0, text="I am **Ada**.")
    assert (composer.read_answer(0), view_of(composer).turns[0].version_count) == ("I am **Ada**.", 2)
    assert "edited by hand" in composer.saved()["text/plain"]
    composer.say("Who?")
    body = wait_until_idle(composer, replies=2).reply.request.body()
    assert "previous_response_id" not in body
    assert "I am **Ada**." in str(body["input"])
    composer.switch(0, 0)
    assert composer.reply.text == answer


# Calls of before


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_recorded_call_opens_as_its_chat_and_goes_on(tmp_path: Any, server: famnb.service.Server, endpoint: str):
    """In another kernel, from the ledger: the turns with their replies, an empty prompt, and the settings."""
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    with Client(base_url=server.url, api_key=server.key, ledger=ledger) as client:
        talk = with_two_turns(client, endpoint=endpoint, system="Be brief.")
    with Client(base_url=server.url, api_key=server.key, ledger=famnb.Ledger(ledger.path)) as client:
        composer = Composer(client, prompt="left over")
        composer.load(talk.reply.call_id)
        assert [turn.prompt for turn in composer.turns] == ["My name is Ada.", "What is my name?"]
        assert [turn.reply.call_id for turn in composer.turns] == [reply.call_id for reply in talk.replies]
        assert (view_of(composer).prompt.text, view_of(composer).system) == ("", "Be brief.")
        assert composer.request.body() == talk.reply.request.body()
        send_prompt(composer, "And in capitals?")
        body = wait_until_idle(composer, replies=1).reply.request.body()
        talk._client = client
        talk.say("And in capitals?")
        assert body == wait_until_idle(talk, replies=3).reply.request.body()
        for text in ("My name is Ada.", "And in capitals?"):
            assert text in composer.saved()["text/plain"]


def test_a_loaded_chat_is_edited_and_retried_as_if_it_had_been_held_here(client: Client):
    composer = with_two_turns(client)
    other = Composer(client)
    other.load(composer.reply)
    other.submit()
    assert (view_of(wait_until_idle(other, replies=1)).turns[1].version_count) == 2
    assert other.reply.request == composer.reply.request
    other.edit(0, "My name is Grace.")
    assert "Grace" in str(wait_until_idle(other, replies=2).reply.request.body())
    other.load(composer.reply)
    assert "Grace" in other.saved()["text/plain"], "what was said before is kept"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_tools_of_a_loaded_chat_are_sent_back_as_they_were(client: Client, weather: Any, is_recorded: bool):
    """On its own endpoint in full, on another one as far as their texts go; a recorded reply has no `rounds`."""
    composer = Composer(client, tools=[weather], auto=True, prompt="What is the weather in Oslo?")
    composer.submit()
    composer.wait(30)
    reply = wait_until_idle(composer).reply
    if is_recorded:
        reply = dataclasses.replace(reply, rounds=())
    other = Composer(client)
    other.load(reply)
    assert [turn.prompt for turn in other.turns] == ["What is the weather in Oslo?"]
    other.say("And tomorrow?")
    sent = wait_until_idle(other, replies=1).reply.request.body()["messages"]
    composer.say("And tomorrow?")
    assert sent == wait_until_idle(composer, replies=2).reply.request.body()["messages"]
    other.load(reply)
    choose_endpoint(other, "chat")
    other.say("And tomorrow?")
    assert "Oslo" in str(wait_until_idle(other, replies=2).reply.request.body()["messages"])


def test_a_call_that_failed_opens_with_its_prompt_to_be_sent_again(client: Client, server: famnb.service.Server):
    composer = with_two_turns(client)
    with Client(base_url=server.url, api_key="wrong-key") as locked_out:
        composer._client = locked_out
        composer.say("Me?")
        failed = wait_until_idle(composer, replies=3).reply
    other = Composer(client)
    other.load(failed)
    assert [turn.prompt for turn in other.turns] == ["My name is Ada.", "What is my name?"]
    assert view_of(other).prompt.text == "Me?"
    assert other.request == failed.request


def test_a_conversation_written_as_json_goes_on_with_what_is_typed(client: Client):
    """It becomes the chat in view, whether it ends with an answer or with a question."""
    for end in ([], [{"role": "user", "content": "Bye."}]):
        composer = Composer(client, endpoint="web", rows=[{"word": "there"}])
        talk = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello, Ada."}, *end]
        write_field(composer, "messages", json.dumps(talk))
        send_prompt(composer, "Still {word}?")
        messages = wait_until_idle(composer, replies=1).reply.request.body()["messages"]
        assert messages == [*talk, {"role": "user", "content": "Still there?"}]
        assert texts_of(composer).get("messages") is None


def test_a_note_on_a_text_is_no_block_of_its_turn():
    stream = ScriptedStream(endpoint="chat").add(Delta((0, 0), "text", "Yes."), Delta((0, 1), "logprobs", "{}"))
    pane = TurnPane(TurnCall(stream=stream.end(status="completed")), key="0", prompts=[])
    assert [block.kind for block in pane.call_view().pane.blocks] == ["text"]


# Tools


def test_a_tool_runs_once_it_is_approved(client: Client, weather: Any, ran: list[str]):
    composer = Composer(client, tools=[weather], prompt="What is the weather in Oslo?")
    composer.submit()
    pane = wait_for_pending_call(composer)
    assert ran == []
    assert pane.pane.status == "weather waits for your approval"
    assert [block.label for block in pane.pane.blocks] == ["calls weather"]
    assert pane.tools[0].key == pane.pane.blocks[0].key
    receive(composer, "decide", pane=pane.key, call=0, isApproved=True)
    wait_until_idle(composer)
    assert ran == ["Oslo on famnb-turn"]
    assert '"celsius":4' in composer.reply.text
    assert calls_of(composer)[0].tools[0].result.label == "weather returned"
    assert len(composer.replies) == 1
    assert composer.reply.rounds[0].results[0].value == {"city": "Oslo", "celsius": 4}


def test_a_click_that_comes_too_late_decides_nothing(client: Client, weather: Any, ran: list[str]):
    composer = Composer(client, tools=[weather], prompt="What is the weather in Oslo?")
    composer.submit()
    pane = wait_for_pending_call(composer)
    for wrong in ({"pane": "another", "call": 0}, {"pane": pane.key, "call": 7}, {"pane": pane.key, "call": -1}):
        receive(composer, "decide", isApproved=True, **wrong)
    receive(composer, "decide", pane=pane.key, call=0, isApproved="yes")
    assert wait_for_pending_call(composer).key == pane.key
    receive(composer, "decide", pane=pane.key, call=0, isApproved=False)
    receive(composer, "decide", pane=pane.key, call=0, isApproved=True)
    assert "declined this call" in wait_until_idle(composer).reply.text
    assert "weather did not return; the model is told" in composer.saved()["text/plain"]
    assert ran == []


def test_stop_ends_a_turn_that_waits_for_approval(client: Client, weather: Any, ran: list[str]):
    composer = Composer(client, tools=[weather], prompt="What is the weather in Oslo?")
    composer.submit()
    wait_for_pending_call(composer)
    receive(composer, "stop")
    assert wait_until_idle(composer).reply.warnings == ("stopped: the tools that it called were not all run",)
    assert ran == []
    composer.say("Never mind.")
    assert len(wait_until_idle(composer).turns) == 2


def test_a_result_is_shown_before_the_next_call_is_decided(client: Client, weather: Any, tides: Any):
    composer = Composer(client, tools=[weather, tides], prompt="What are the weather and the tides in Oslo?")
    composer.submit()
    pane = wait_for_pending_call(composer)
    receive(composer, "decide", pane=pane.key, call=0, isApproved=True)
    weather_call, tides_call = wait_until(lambda: (calls := calls_of(composer)[0].tools)[1].is_pending and calls)
    assert weather_call.result.label == "weather returned"
    assert tides_call.name == "tides"
    composer.stop()
    assert 'weather had returned {"city":"Oslo","celsius":4}' in wait_until_idle(composer).reply.warnings


def test_a_cell_waits_for_a_turn_but_never_for_a_click(client: Client, weather: Any):
    composer = Composer(client, tools=[weather], prompt="What is the weather in Oslo?")
    composer.submit()
    with pytest.raises(famnb.InvalidRequest, match="weather waits for your approval: press Approve or Decline"):
        composer.wait()
    composer.stop()
    wait_until_idle(composer)
    quick = Composer(client, tools=[weather], auto=True, prompt="What is the weather in Oslo?")
    quick.submit()
    assert quick.wait() is quick.turns[-1].reply
    assert quick.wait(0) is quick.reply


# Answers of a type


def test_an_answer_becomes_an_instance_or_says_why_not(client: Client):
    composer = Composer(client, schema=Trip, prompt="Plan a trip.")
    write_field(composer, "max_output_tokens", "4")
    composer.submit()
    assert wait_until_idle(composer).reply.parsed is None
    assert "`reply.parsed` is None: the answer was cut short" in composer.saved()["text/plain"]
    write_field(composer, "max_output_tokens", "")
    composer.say("Once more.")
    assert len(wait_until_idle(composer).turns) == 2
    assert isinstance(composer.reply.parsed, Trip)
    assert all(words in composer.saved()["text/plain"] for words in ('{\n  "title": ', "`reply.parsed` is the Trip"))
