"""What a vendor sent with an answer and wants back goes back as it came: three rounds of tools, and a second turn."""

from pathlib import Path
from typing import Any

import pytest

import famnb
from tests.support.strict_vendors import strict_vendor


@famnb.tool
def look_up(city: str) -> str:
    """The weather of a city."""
    return f"4 degrees in {city}"


def call(number: int, **fields: Any) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": f'{{"city":"Oslo {number}"}}'}
    return {"id": f"call_{number}", "type": "function", "function": function, **fields}


def chat_answers(wanted: Any) -> list[dict[str, Any]]:
    """Three rounds of calls and an answer; `wanted` returns the fields of the message and of its call, by number."""
    rounds = []
    for number in range(3):
        message, of_call = wanted(number)
        rounds.append({"role": "assistant", **message, "tool_calls": [call(number, **of_call)]})
    message, _ = wanted(3)
    return [*rounds, {"role": "assistant", "content": "It is cold.", **message}]


def signature(text: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": text}}}


def reasoning_details(number: int) -> list[dict[str, Any]]:
    thought = {"type": "reasoning.text", "index": 0, "text": f"Thought {number}.", "signature": f"sig_{number}"}
    return [thought, {"type": "reasoning.encrypted", "index": 1, "id": f"rs_{number}", "data": f"data_{number}"}]


def claude_answers() -> list[dict[str, Any]]:
    """Thinking, what compaction left, a search of the vendor's own and a call through MCP with results, and calls."""
    rounds = []
    for number in range(3):
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": f"Thought {number}.", "signature": f"sig_{number}"},
            {"type": "redacted_thinking", "data": f"data_{number}"},
            {"type": "compaction", "content": "Earlier.", "encrypted_content": f"enc_{number}"},
            {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {"query": "Oslo"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": f"srv_{number}",
                "content": [{"type": "web_search_result", "url": "https://a.example", "encrypted_content": "E"}],
            },
            {"type": "mcp_tool_use", "id": f"mcp_{number}", "name": "f", "server_name": "s", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": f"mcp_{number}", "is_error": False, "content": []},
            {"type": "text", "text": "So far.", "citations": [{"type": "web_search_result_location", "index": "I"}]},
            {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": "look_up",
                "input": {"city": f"Oslo {number}"},
                "caller": {"type": "direct"},
            },
        ]
        rounds.append({"content": blocks})
    return [*rounds, {"content": [{"type": "text", "text": "It is cold."}]}]


def item_answers() -> list[dict[str, Any]]:
    rounds = []
    for number in range(3):
        items: list[dict[str, Any]] = [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"enc_{number}"},
            {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": {"type": "search"}},
            {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "look_up"},
        ]
        items[-1] |= {"arguments": f'{{"city":"Oslo {number}"}}', "status": "completed"}
        rounds.append({"output": items})
    content = [{"type": "output_text", "text": "It is cold.", "annotations": [], "logprobs": []}]
    last = {"type": "message", "id": "msg_3", "role": "assistant", "status": "completed", "phase": "final_answer"}
    reasoning = {"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": "enc_3"}
    return [*rounds, {"output": [reasoning, {**last, "content": content}]}]


VENDORS: dict[str, tuple[str, str, list[dict[str, Any]], dict[str, Any]]] = {
    "gemini": ("gemini", "chat", chat_answers(lambda n: (signature(f"text_{n}"), signature(f"call_{n}"))), {}),
    "deepseek": ("open", "chat", chat_answers(lambda n: ({"reasoning_content": f"Thought {n}."}, {})), {}),
    "openrouter": ("openrouter", "chat", chat_answers(lambda n: ({"reasoning_details": reasoning_details(n)}, {})), {}),
    "anthropic": ("anthropic", "messages", claude_answers(), {"max_tokens": 2000}),
    "openai": ("openai", "responses", item_answers(), {}),
    "openai, not stored": (
        "openai",
        "responses",
        item_answers(),
        {"store": False, "include": ["reasoning.encrypted_content"]},
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("vendor", VENDORS)
def test_three_rounds_of_tools_and_a_second_turn_keep_what_the_vendor_wants_back(vendor, stream, tmp_path):
    profile, endpoint, answers, fields = VENDORS[vendor]
    again = [*answers, answers[-1]]
    with (
        strict_vendor(endpoint, again) as server,
        famnb.Client(profile=profile, base_url=server.url, api_key="key-0123456789", ledger=tmp_path / "l") as client,
    ):
        options = {"model": "m", "tools": [look_up], "auto": True, "stream": stream, **fields}
        reply = client.ask("How cold is it?", endpoint=endpoint, **options)
        assert (reply.text, len(reply.rounds)) == ("It is cold.", 3)
        talk = client.conversation(endpoint, **options)
        talk.say("How cold is it?")
        if not (profile == "openai" and fields.get("store") is not False):
            assert talk.say("Really?").text == "It is cold."
        else:
            # The vendor keeps the conversation: the second turn names it, and repeats nothing.
            assert talk.request("Really?").body()["previous_response_id"] == "resp_1"


def test_a_turn_that_the_vendor_has_paused_goes_on_by_itself(tmp_path: Path):
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "Oslo"}}
    answers = [{"content": [search]}, {"content": [{"type": "text", "text": "It is cold."}]}]
    with (
        strict_vendor("messages", answers) as server,
        famnb.Client(
            profile="anthropic", base_url=server.url, api_key="key-0123456789", ledger=tmp_path / "l"
        ) as client,
    ):
        assert client.ask("How cold is it?", model="claude-haiku-4-5", stream=True).text == "It is cold."
        assert len(server.requests) == 2


def test_what_one_vendor_wants_back_is_not_sent_to_another(tmp_path: Path):
    answers = VENDORS["deepseek"][2][-1:]
    with (
        strict_vendor("chat", answers) as server,
        famnb.Client(profile="open", base_url=server.url, api_key="key-0123456789", ledger=tmp_path / "l") as client,
    ):
        reply = client.send(client.compose("chat", "How cold is it?", model="m"))
        vendor = client.endpoints["chat"].request
        other = famnb.profiles.find_profile("openai").endpoints["chat"].request
        assert vendor.answer_messages(reply)[0]["reasoning_content"] == "Thought 3."
        assert other.answer_messages(reply) == [{"role": "assistant", "content": "It is cold."}]
        assert famnb.ChatRequest.answer_messages(reply) == [{"role": "assistant", "content": "It is cold."}]
