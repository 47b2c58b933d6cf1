"""What servers say beside the text: usage in its many places, attachments, unexpected ends, odd failures."""

import json
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from famnb.record.price_book import PriceBook
from famnb.reply import Reply, fold
from famnb.wire import chat, messages, responses, sse
from tests.support.strategies import DIALECTS, NAMES, read, written
from tests.wire.bodies import (
    END,
    block_delta,
    chunk,
    completion,
    fold_stream,
    fold_whole,
    message,
    response,
    terminal,
    text_delta,
    text_item,
)

YES = {"role": "assistant", "content": "Yes."}
YES_BLOCK = {"type": "text", "text": "Yes."}
YES_DELTA = block_delta(0, "text_delta", text="Yes.")


def read_usage(usage: Any) -> Reply:
    """A whole chat completion with this usage."""
    return fold_whole(chat, completion(YES, usage=usage))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'error: {"code": 500, "message": "out of memory", "type": "server_error"}\n\n', "out of memory"),
        (b"error: no room for the context\n\n", "no room for the context"),
        (b'error: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        (b'{"error": {"message": "out of memory"}}\n', "out of memory"),
        (b'{"error": "out of memory"}', "out of memory"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)
def test_an_error_beside_the_data_is_a_failure_in_the_servers_words(dialect: ModuleType, line: bytes, words: str):
    reply = fold(read(dialect, [b": hello\n\n", line]))
    assert (reply.status, reply.fault and reply.fault.message) == ("failed", words)


@pytest.mark.parametrize("line", [b'{"error": null}\n', b"{no JSON}\n", b"errors: 3\n"])
def test_other_lines_stay_without_a_meaning(line: bytes):
    assert sse.Decoder().feed(line) == []


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    "reply",
    [
        read_usage(ZERO),
        fold_stream(chat, chunk(YES), chunk({}, "stop", usage=ZERO)),
        fold_whole(messages, message(YES_BLOCK, usage={"input_tokens": 0, "output_tokens": 0})),
        fold_whole(responses, response(text_item(), usage={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})),
    ],
    ids=["chat", "chat stream", "messages", "responses"],
)
def test_a_reported_zero_is_a_zero_and_leaves_the_cost_open(reply: Reply):
    """No prompt is empty: whoever reports none has not counted, or does not bill."""
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("Yes.", 0, 0)
    book = PriceBook()
    book.set("m", input=1, output=10)
    cost = book.cost("m", reply.usage)
    assert cost is not None
    assert (cost.low, cost.high, cost.exact) == (0, Decimal("Infinity"), False)


def test_a_total_that_contradicts_its_parts_is_a_warning_and_widens_the_cost():
    """3 + 5 are not 20: the output may be 17, the input 15."""
    reply = read_usage({"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 20})
    assert "3 tokens of input and 5 of output are not the 20 in all" in reply.warnings[0]
    book = PriceBook()
    book.set("m", input=1, output=10)
    cost = book.cost("m", reply.usage, has_cache_writes=False)
    assert cost is not None
    assert (cost.usd, cost.low, cost.high) == tuple(Decimal(usd) / 1_000_000 for usd in (53, 53, 185))


MESSAGE_COUNTS = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 7}
CACHE = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 2}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            read_usage({"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 4}}),
            {"cache_write_tokens": 4},
        ),
        (read_usage({"prompt_tokens": 9, "completion_tokens": 5, "thinking_tokens": 3}), {"reasoning_tokens": 3}),
        (read_usage({"prompt_tokens": 3, "completion_tokens": "x"}), {"input_tokens": 3, "output_tokens": None}),
        (read_usage(None), {"input_tokens": None, "total_tokens": None}),
        (
            fold_stream(chat, chunk(YES), {"choices": [], "x_groq": {"usage": {"prompt_tokens": 9}}}),
            {"input_tokens": 9},
        ),
        (
            fold_whole(messages, message(usage={"input_tokens": 3, "output_tokens": 5, "cache_creation": CACHE})),
            {"input_tokens": 9, "cache_write_tokens": 6, "cache_write_5m_tokens": 4, "cache_write_1h_tokens": 2},
        ),
        (
            fold_whole(messages, message(usage={**MESSAGE_COUNTS, "cache_creation_input_tokens": 5})),
            {"input_tokens": 15, "cached_tokens": 7, "total_tokens": 17, "derived": ("input_tokens", "total_tokens")},
        ),
        (
            fold_stream(
                messages,
                {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_creation": CACHE}}},
                YES_DELTA,
                {**END, "usage": {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}},
            ),
            {"input_tokens": 9, "cache_write_1h_tokens": 2, "reasoning_tokens": 2, "output_tokens": 5},
        ),
        (
            fold_whole(
                responses, response(usage={"input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 4}})
            ),
            {"cache_write_tokens": 4},
        ),
    ],
)
def test_counts_are_found_where_servers_put_them(reply: Reply, expected: dict[str, Any]):
    assert {name: getattr(reply.usage, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"cost": 0.00125}, 0.00125),
        ({"cost": {"total_cost": "0.5"}}, 0.5),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.04}}, 0.05),
        ({"cost": -1}, None),
        ({"cost": True}, None),
    ],
)
def test_the_cost_that_a_service_reports_is_the_cost(usage: dict[str, Any], usd: float | None):
    reply = read_usage({"prompt_tokens": 3, "completion_tokens": 5, **usage})
    assert reply.usage.cost_usd == usd
    cost = PriceBook().cost("nobody knows its price", reply.usage)
    assert (cost and (cost.usd, cost.exact)) == (usd and (Decimal(str(usd)), True))


def test_a_second_choice_is_a_warning():
    body = completion(YES)
    body["choices"].insert(0, {**body["choices"][0], "index": 1})
    second = chunk({"content": "No."}, choice={"index": 1})
    streamed = fold_stream(chat, second, chunk(YES), second, chunk({}, "stop"))
    for reply in (fold_whole(chat, body), streamed):
        assert reply.text == "Yes."
        assert reply.warnings == (
            "the service sent more than one choice; only that of index 0 is read, `reply.raw` has all",
        )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fold_whole(chat, completion(YES, "insufficient_system_resource")), "insufficient_system_resource"),
        (fold_whole(messages, message(YES_BLOCK, stop_reason="model_context_window_exceeded")), "length"),
        (fold_whole(messages, message(YES_BLOCK, stop_reason="pause_turn")), "pause_turn"),
    ],
)
def test_a_reply_cut_short_by_the_service_is_incomplete(reply: Reply, reason: str):
    assert (reply.status, reply.finish_reason) == ("incomplete", reason)


def test_a_response_in_the_background_is_running_and_says_whether_it_has_begun():
    body = {"id": "r1", "status": "queued", "output": []}
    queued = {"type": "response.queued", "response": body}
    for reply in (fold_whole(responses, body), fold_stream(responses, queued)):
        assert reply.status == "running"
        assert "the response r1 is 'queued': the service has accepted it" in reply.warnings[0]
    begun = {"type": "response.in_progress", "response": {"id": "r1", "status": "in_progress"}}
    assert fold_stream(responses, queued, begun).warnings == ()
    reply = fold_whole(responses, begun["response"] | {"output": []})
    assert (reply.status, reply.complete) == ("running", False)


CITATION = {"type": "page_location", "cited_text": "blue", "start_page_number": 1}
ANNOTATION = {"type": "url_citation", "url": "https://example.org", "title": "Sky"}
ANNOTATION_EVENT = {
    **{"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0},
    **{"annotation_index": 0, "annotation": ANNOTATION},
}
TOKENS = [{"token": "Ye", "logprob": -0.5}, {"token": "s.", "logprob": -0.1}]


@pytest.mark.parametrize(
    ("reply", "kind", "entries"),
    [
        (fold_whole(messages, message({**YES_BLOCK, "citations": [CITATION]})), "citations", [CITATION]),
        (
            fold_stream(messages, YES_DELTA, block_delta(0, "citations_delta", citation=CITATION), END),
            "citations",
            [CITATION],
        ),
        (fold_whole(chat, completion({**YES, "annotations": [ANNOTATION]})), "annotations", [ANNOTATION]),
        (fold_stream(chat, chunk({**YES, "annotations": [ANNOTATION]}, "stop")), "annotations", [ANNOTATION]),
        (fold_whole(chat, completion(YES, choice={"logprobs": {"content": TOKENS}})), "logprobs", TOKENS),
        (fold_stream(chat, chunk(YES, "stop", choice={"logprobs": {"content": TOKENS}})), "logprobs", TOKENS),
        (fold_whole(responses, response(text_item(annotations=[ANNOTATION]))), "annotations", [ANNOTATION]),
        (fold_whole(responses, response(text_item(logprobs=TOKENS))), "logprobs", TOKENS),
        (
            fold_stream(
                responses,
                text_delta("Ye", logprobs=TOKENS[:1]),
                text_delta("s.", logprobs=TOKENS[1:]),
                terminal(text_item(logprobs=TOKENS)),
            ),
            "logprobs",
            TOKENS,
        ),
        (
            fold_stream(responses, text_delta("Yes."), ANNOTATION_EVENT, terminal(text_item(annotations=[ANNOTATION]))),
            "annotations",
            [ANNOTATION],
        ),
    ],
)
def test_what_is_attached_to_a_text_is_a_block(reply: Reply, kind: str, entries: list[Any]):
    text, attached = reply.blocks
    assert (text.kind, text.text, attached.kind, attached.entries) == ("text", "Yes.", kind, entries)
    assert (reply.text, reply.output_chars, text.entries) == ("Yes.", 4, [])
    assert json.loads(attached.text) == entries


@pytest.mark.parametrize(
    ("dialect", "kinds"),
    [(chat, ["text", "logprobs"]), (responses, ["text", "logprobs"]), (messages, ["text"])],
    ids=["chat", "responses", "messages"],
)
def test_what_a_dialect_cannot_carry_is_left_out(dialect: ModuleType, kinds: list[str]):
    events = chat.read(completion({**YES, "annotations": [ANNOTATION]}, choice={"logprobs": {"content": TOKENS}}))
    reply = fold(read(dialect, [written(dialect, events)]))
    whole = fold_whole(dialect, dialect.write(fold(events)))
    for blocks in (reply.blocks, whole.blocks):
        assert [block.kind for block in blocks] == kinds
        assert [block.entries for block in blocks if block.kind == "logprobs"] == [TOKENS] * (len(kinds) - 1)
