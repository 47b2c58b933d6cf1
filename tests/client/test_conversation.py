"""Conversations: a tree of turns on every endpoint, which failures and stops leave intact."""

import asyncio
import contextlib
import json
from collections.abc import Callable

import pytest

import famnb
from famnb.api import Client
from famnb.client.conversation import Turn, turn_messages
from famnb.client.live_call import Stream
from famnb.endpoints import ENDPOINTS
from tests.support.fault_server import FaultServer, Received, chunked, event, whole
from tests.support.wire_payloads import body


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_talk_remembers_what_was_said(client: famnb.Client, endpoint: str):
    talk = client.conversation(endpoint, system="Be kind.")
    talk.say("My name is Ada.")
    reply = talk.say("What is my name?")
    assert "My name is Ada." in reply.text
    assert "Be kind." in reply.text
    assert [turn.prompt for turn in talk.turns] == ["My name is Ada.", "What is my name?"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_edited_turn_is_a_branch_and_the_old_one_stays(client: famnb.Client, endpoint: str):
    talk = client.conversation(endpoint, max_tokens=300)
    talk.say("One")
    talk.say("Two")
    reply = talk.edit(0, "Uno")
    assert [turn.prompt for turn in talk.turns] == ["Uno"]
    assert "Two" not in reply.text
    talk.regenerate()
    assert [[turn.prompt for turn in branch] for branch in talk.branches] == [["One", "Two"], ["Uno"], ["Uno"]]
    assert talk.branch == 2
    assert "Earlier" in talk.switch(0).say("Three").text
    assert [turn.prompt for turn in talk.turns] == ["One", "Two", "Three"]


def test_a_fork_goes_its_own_way(client: famnb.Client):
    talk = client.conversation("messages", max_tokens=50)
    talk.say("One")
    talk.say("Two")
    fork, early = talk.fork(), talk.fork(after=0)
    fork.say("Three")
    early.say("Other")
    assert [len(branch) for branch in (talk, fork, early)] == [2, 3, 2]
    assert fork.turns[:2] == talk.turns


def test_responses_are_continued_by_id_with_their_instructions(client: famnb.Client):
    """Only the new prompt is sent, and the instructions again, which the service does not carry over."""
    talk = client.conversation(system="Be brief.", max_tokens=50)
    first = talk.say("One")
    body = talk.say("Two").request.body()
    assert talk.endpoint == "responses"
    assert (body["input"], body["instructions"], body["previous_response_id"]) == ("Two", "Be brief.", first.id)


def test_a_forgotten_response_is_made_up_for(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    """The service no longer has the response before: the whole conversation is sent instead, and that is said."""
    gone = {"error": {"message": "gone", "type": "invalid_request_error", "code": "previous_response_not_found"}}
    server = serve(whole(body("responses", "Fine.")), whole(gone, 400), whole(body("responses", "Fine.")))
    talk = connect(server).conversation("responses", stream=False)
    talk.say("One")
    with pytest.warns(UserWarning, match="sent again"):
        talk.say("Two")
    by_id, in_full = (json.loads(request.body) for request in server.requests[1:])
    assert by_id["previous_response_id"] == "resp_1"
    assert "previous_response_id" not in in_full
    assert [item["role"] for item in in_full["input"]] == ["user", "assistant", "user"]
    assert [turn.prompt for turn in talk.turns] == ["One", "Two"]


def test_thinking_goes_back_as_it_came(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Yes."}]
    reply = {"id": "m", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
    server = serve(whole(reply))
    talk = connect(server).conversation("messages", stream=False)
    talk.say("One")
    talk.say("Two")
    sent = json.loads(server.requests[1].body)["messages"]
    assert sent[1] == {"role": "assistant", "content": content}


def test_what_cannot_be_carried_back_is_said(client: famnb.Client):
    thought = client.ask("Why?", endpoint="messages", thinking=64)
    turn = Turn("Why?", thought)
    messages, losses = turn_messages("web", [turn])
    assert messages == [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": thought.text}]
    assert "thinking of turn 0" in losses[0]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_failed_turn_leaves_the_talk_where_it_was(serve, connect, endpoint):
    bodies: list[dict] = []

    def choose(received: Received) -> list:
        bodies.append(json.loads(received.body))
        return whole({"error": {"message": "no"}}, 400) if b"Bad" in received.body else whole(body(endpoint, "Fine."))

    client = connect(serve(choose=choose))
    talk = client.conversation(endpoint, stream=False)
    talk.say("One")
    with pytest.raises(famnb.BadRequestError):
        talk.say("Bad")
    talk.say("Two")
    assert [turn.prompt for turn in talk.turns] == ["One", "Two"]
    assert [turn.prompt for turn in talk.failures] == ["Bad"]
    assert b"Bad" not in json.dumps(bodies[-1]).encode()


def test_a_stopped_turn_goes_on_with_what_had_come(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    started = event({"type": "response.created", "response": {"id": "r1", "status": "in_progress"}})
    delta = event({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Half"})
    server = serve(chunked(started, delta, 30.0), whole(body("responses", "Fine.")))
    client = connect(server)

    def stop(stream: Stream):
        for _ in stream:
            if stream.reply.text:
                stream.stop()
        return contextlib.nullcontext()

    client.engine.viewer = stop
    talk = client.conversation("responses")
    assert talk.say("One").status == "cancelled"
    client.engine.viewer = None
    talk.say("Two", stream=False)
    sent = json.loads(server.requests[1].body)
    assert sent["input"][1] == {"role": "assistant", "content": {"type": "output_text", "text": "Half"}}


def test_one_turn_at_a_time(client: famnb.Client, server: famnb.service.Server):
    async def both() -> list[object]:
        async with famnb.AsyncClient(base_url=server.url, api_key=server.key) as client:
            talk = client.conversation("web", max_tokens=20)
            await talk.say("One")
            return [len(talk), *await asyncio.gather(talk.say("Two"), talk.say("Three"), return_exceptions=True)]

    before, second, third = asyncio.run(both())
    assert before == 1
    assert second.text
    assert isinstance(third, famnb.InvalidRequest)
    assert "fork" in str(third)


def test_each_call_of_a_talk_is_labelled(client: famnb.Client):
    talk = client.conversation("web", max_tokens=20, labels={"tag": "lesson"})
    talk.say("One")
    talk.say("Two")
    labels = [client.ledger.call(turn.reply.call_id).labels for turn in talk.turns]
    assert [row["turn"] for row in labels] == ["1", "2"]
    assert {row["talk"] for row in labels} == {talk.labels["talk"]}
    assert {row["tag"] for row in labels} == {"lesson"}


def test_a_turn_that_is_not_there_is_refused(client: famnb.Client):
    talk = client.conversation("web")
    with pytest.raises(famnb.InvalidRequest, match="among 0"):
        talk.edit(0, "x")


def test_the_request_can_be_seen_before_it_is_sent(client: famnb.Client):
    talk = client.conversation("messages", max_tokens=20)
    reply = talk.say("One")
    shown = talk.request("Two")
    assert talk.say("Two").request == shown
    assert shown.body()["messages"][1]["content"] == [{"type": "text", "text": reply.text}]


def test_a_turn_sent_by_other_means_is_taken_in(client: famnb.Client):
    talk = client.conversation("web", max_tokens=20)
    talk.add("One", client.send(talk.request("One")))
    talk.add("Uno", client.send(talk.request("Uno", at=0)), at=0)
    assert [[turn.prompt for turn in branch] for branch in talk.branches] == [["One"], ["Uno"]]
    assert [message.content for message in talk.request("Two").messages][::2] == ["Uno", "Two"]


def test_a_talk_may_be_held_to_a_schema(client: famnb.Client):
    talk = client.conversation("responses", schema=dict[str, int])
    assert isinstance(talk.say("Count.").parsed, dict)


def test_an_interrupted_tool_leaves_its_turn(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    @famnb.tool
    def endless() -> str:
        """Run for ever."""
        raise KeyboardInterrupt

    call = {"id": "c1", "type": "function", "function": {"name": "endless", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    server = serve(whole({"id": "c", "object": "chat.completion", "choices": [choice]}), whole(body("web", "Fine.")))
    talk = connect(server).conversation(tools=[endless], auto=True, stream=False)
    with pytest.raises(KeyboardInterrupt):
        talk.say("Run it.")
    talk.say("Never mind.")
    assert [turn.prompt for turn in talk.turns] == ["Run it.", "Never mind."]
    assert "not run" in json.loads(server.requests[1].body)["messages"][2]["content"]
