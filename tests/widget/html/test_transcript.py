"""A reply or a conversation as saved output: everything that is known, nothing that is not, in three forms."""

import dataclasses
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.client.ask import Result, Round
from famnb.client.conversation import Turn
from famnb.endpoints import ENDPOINTS, compose
from famnb.errors import StreamInterrupted
from famnb.events import Fault, Usage
from famnb.record import Cost
from famnb.reply import Block, Reply
from famnb.timing import Timing
from famnb.widget.html import transcript

FORMS = ["text/html", "text/markdown", "text/plain"]
REPLY = Reply(
    model="fam-2-5-pro",
    endpoint="messages",
    request=compose("messages", "Why is the sky blue?", system="Be brief."),
    blocks=(
        Block(at=(0, 0), kind="thinking", text="Scattering, surely.", closed=True),
        Block(at=(0, 1), kind="text", text="Because of **scattering**.", closed=True),
    ),
    status="completed",
    complete=True,
    streamed=True,
    usage=Usage(input_tokens=1204, output_tokens=452, reasoning_tokens=412),
    timing=Timing(ttft_s=0.42, ttfa_s=2.72, think_s=2.3, e2e_s=3.1, output_tps=145.8),
    cost=Cost(Decimal("0.0012"), Decimal("0.0012"), Decimal("0.0012")),
)


@pytest.mark.parametrize("form", FORMS)
def test_a_transcript_says_what_was_asked_thought_answered_and_measured(form: str):
    text = transcript.reply_bundle(REPLY)[form].replace("\\", "")
    for piece in (
        "messages · fam-2-5-pro",
        "Be brief.",
        "Why is the sky blue?",
        "thought for 2.3 s, 412 tokens",
        "Scattering, surely.",
        "Because of",
        "1,204 tokens in · 452 tokens out (412 thinking)",
        "first token 0.42 s",
        "3.1 s in all",
        "$0.0012",
    ):
        assert piece in text
    assert ("<details><summary" in text) is (form == "text/html")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_known_is_not_said(form: str):
    bare = dataclasses.replace(REPLY, usage=Usage(), timing=Timing(), cost=None)
    text = transcript.reply_bundle(bare)[form]
    assert "usage not reported" in text
    assert "cost unknown" in text
    assert "0 tokens" not in text
    assert " s in all" not in text
    assert "thought for" not in text


def test_an_estimated_count_is_marked():
    """A count that nobody reported carries its sign."""
    guessed = dataclasses.replace(REPLY, usage=Usage(input_tokens=10, output_tokens=90, estimated=("output_tokens",)))
    assert "10 tokens in · ≈90 tokens out" in transcript.reply_bundle(guessed)["text/plain"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"service": "sim"}, "simulated"),
        ({"status": "cancelled", "complete": False}, "stopped"),
        ({"status": "incomplete", "finish_reason": "length"}, "cut off at the token cap"),
        ({"status": "incomplete", "finish_reason": "content_filter"}, "cut off by the content filter"),
        ({"status": "failed", "fault": Fault("out of luck", code="server_error")}, "server_error: out of luck"),
        ({"status": "interrupted", "error": StreamInterrupted("no end came")}, "StreamInterrupted: no end came"),
        ({"complete": None}, "perhaps incomplete"),
        ({"warnings": ("the final text is kept",)}, "the final text is kept"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_what_must_be_known_before_believing_it_is_said(form: str, changes: dict[str, object], words: str):
    changed = transcript.reply_bundle(dataclasses.replace(REPLY, **changes))[form].replace("\\", "")
    assert words in changed
    assert words not in transcript.reply_bundle(REPLY)[form].replace("\\", "")


def test_a_tool_call_shows_its_arguments():
    call = Block(at=(0, 0), kind="tool_call", name="look_up", text='{"city":"Ghent"}')
    broken = dataclasses.replace(REPLY, blocks=(call, Block(at=(1, 0), kind="tool_call", name="f", text='{"a":')))
    text = transcript.reply_bundle(broken)["text/plain"]
    assert 'calls look_up:\n{\n  "city": "Ghent"\n}' in text
    assert 'calls f (invalid JSON):\n{"a":' in text


def test_a_picture_is_shown_and_one_elsewhere_is_a_link():
    data = "data:image/png;base64," + "A" * 400
    pictures = [Block(at=(0, n), kind="image", text=url) for n, url in enumerate((data, "https://example.org/a.png"))]
    bundle = transcript.reply_bundle(dataclasses.replace(REPLY, blocks=tuple(pictures)))
    assert f'src="{data}"' in bundle["text/html"]
    assert bundle["text/html"].count("<img") == 1
    assert '<a href="https://example.org/a.png"' in bundle["text/html"]
    for form in ("text/plain", "text/markdown"):
        assert "image, png, 1 kB" in bundle[form]
        assert data not in bundle[form]


def test_the_json_of_an_unknown_block_is_shown_without_its_binary_data():
    block = Block(at=(0, 0), kind="sculpture", text=json.dumps({"title": "Hare", "mesh": "B" * 1000}))
    text = transcript.reply_bundle(dataclasses.replace(REPLY, blocks=(block,)))["text/plain"]
    assert '"title": "Hare"' in text
    assert "BBBB…" in text
    assert "B" * 100 not in text


@pytest.mark.parametrize("part", ["prompt", "model", "thinking", "text", "tool", "fault", "warning"])
def test_hostile_text_is_inert_wherever_it_stands(part: str):
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    hostile = {
        "prompt": {"request": compose("messages", bad, system=bad)},
        "model": {"model": bad},
        "thinking": {"blocks": (Block(at=(0, 0), kind="thinking", text=bad),)},
        "text": {"blocks": (Block(at=(0, 0), kind="text", text=bad),)},
        "tool": {"blocks": (Block(at=(0, 0), kind="tool_call", name=bad, text=bad),)},
        "fault": {"status": "failed", "fault": Fault(bad, code=bad)},
        "warning": {"warnings": (bad,)},
    }[part]
    bundle = transcript.reply_bundle(dataclasses.replace(REPLY, **hostile))
    for form in ("text/html", "text/markdown"):
        assert "alert(1)" in bundle[form].replace("\\", "")
        assert "<script" not in bundle[form]
        assert "<img" not in bundle[form]


@given(
    st.text(st.characters(exclude_categories=[]), max_size=60),
    st.sampled_from(["text", "thinking", "tool_call", "refusal", "new"]),
)
def test_any_text_makes_a_transcript_that_can_be_saved(text: str, kind: str):
    block = Block(at=(0, 0), kind=kind, text=text, name=text)
    for output in transcript.reply_bundle(dataclasses.replace(REPLY, blocks=(block,), model=text)).values():
        output.encode()


def test_a_session_has_the_latest_open_and_the_older_folded():
    titled = [(name, dict.fromkeys(FORMS, f"body of {name}")) for name in ("first", "second", "third")]
    bundle = transcript.stack_bundles(titled)
    assert bundle["text/html"].startswith("body of third<details")
    assert bundle["text/html"].index("<summary") < bundle["text/html"].index("second</summary>body of second")
    assert (
        bundle["text/plain"].index("third") < bundle["text/plain"].index("second") < bundle["text/plain"].index("first")
    )


def test_the_title_of_a_folded_transcript_tells_it_from_the_others():
    stopped = dataclasses.replace(REPLY, status="cancelled")
    assert transcript.title(stopped) == "messages · stopped after 3.1 s · “Why is the sky blue?”"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_shows_its_conversation(endpoint: str):
    reply = Reply(request=compose(endpoint, "the prompt", system="the system"), status="completed", complete=True)
    assert "> system: the system\n\n> user: the prompt" in transcript.reply_bundle(reply)["text/plain"]


def test_a_reply_without_a_request_still_shows():
    assert transcript.reply_bundle(Reply(blocks=REPLY.blocks, status="completed"))["text/plain"].count("user:") == 0


def test_an_answer_in_json_keeps_its_indentation():
    """As Markdown it would lose it; in every form it is shown as it came."""
    text = '{\n  "name": "x"\n}'
    bundle = transcript.reply_bundle(dataclasses.replace(REPLY, blocks=(Block(at=(0, 0), kind="text", text=text),)))
    assert "{\n  &quot;name&quot;: &quot;x&quot;\n}</code></pre>" in bundle["text/html"]
    assert f"```\n{text}\n```" in bundle["text/markdown"]
    assert text in bundle["text/plain"]


@pytest.mark.parametrize("text", ["Hello, {you}: fine", '{"a": 1', "[" * 100_000, "12", ""])
def test_what_is_no_json_object_is_not_indented(text: str):
    assert transcript.format_json(text) is None


def test_indented_json_keeps_every_value_as_it_was_written():
    assert transcript.format_json('{"a":[1.0,1e3,"\\u00e9"],"b":{}}') == (
        '{\n  "a": [\n    1.0,\n    1e3,\n    "\\u00e9"\n  ],\n  "b": {}\n}'
    )


@pytest.mark.parametrize(("kind", "is_empty"), [("", True), ("text", True), ("tool_call", False)])
def test_an_empty_answer_is_said_to_be_empty_and_a_tool_call_is_not(kind: str, is_empty: bool):
    blocks = (Block(at=(0, 0), kind=kind, text="", name="now"),) if kind else ()
    text = transcript.reply_bundle(dataclasses.replace(REPLY, blocks=blocks))["text/plain"]
    assert ("The answer is empty." in text) is is_empty


# Conversations

CALL = Block(at=(1, 0), kind="tool_call", text='{"city": "Oslo"}', id="c", name="weather")
ROUND = Round(Reply(blocks=(CALL,), status="completed"), (Result(call=CALL, content='{"celsius": 4}'),))


def make_turn(prompt: str, text: str, before: Turn | None = None, **fields: object) -> Turn:
    block = Block(at=(0, 0), kind="text", text=text, closed=True)
    return Turn(prompt, Reply(endpoint="web", blocks=(block,), status="completed", **fields), before)


def test_a_conversation_shows_every_turn_in_order():
    last = make_turn("And tomorrow?", "Colder.", make_turn("Weather?", "Cold.", rounds=(ROUND,)))
    plain = transcript.conversation_bundle(last.path)["text/plain"]
    pieces = [
        "Weather?",
        "calls weather",
        '"city": "Oslo"',
        "weather returned",
        "celsius",
        "Cold.",
        "tomorrow",
        "Colder.",
    ]
    positions = [plain.index(piece) for piece in pieces]
    assert positions == sorted(positions)


def test_what_a_tool_returned_is_inert():
    evil = Result(call=CALL, content="<img src=x onerror=alert(1)>")
    turn = make_turn("<script>alert(1)</script>", "Fine.", rounds=(Round(ROUND.reply, (evil,)),))
    html = transcript.conversation_bundle([turn])["text/html"]
    assert "<img" not in html
    assert "<script" not in html


def test_a_conversation_without_turns_says_so():
    assert "Nothing has been said yet." in transcript.conversation_bundle([])["text/plain"]
