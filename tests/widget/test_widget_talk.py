"""Conversations and tool calls as notebook output: every turn, call and result is in the saved text."""

from __future__ import annotations

from famnb.client.ask import Result, Round
from famnb.client.conversation import Turn
from famnb.reply import Block, Reply
from famnb.widget.html import transcript

CALL = Block(at=(1, 0), kind="tool_call", text='{"city": "Oslo"}', id="c", name="weather")
ROUND = Round(Reply(blocks=(CALL,), status="completed"), (Result(call=CALL, content='{"celsius": 4}'),))


def answered(said: str, text: str, before: Turn | None = None, **fields: object) -> Turn:
    block = Block(at=(0, 0), kind="text", text=text, closed=True)
    return Turn(said, Reply(endpoint="web", blocks=(block,), status="completed", **fields), before)


def test_a_talk_shows_every_turn_in_order():
    """Prompts, answers, and between them the calls with their arguments and results."""
    last = answered("And tomorrow?", "Colder.", answered("Weather?", "Cold.", rounds=(ROUND,)))
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
    places = [plain.index(piece) for piece in pieces]
    assert places == sorted(places)


def test_what_a_tool_returned_is_inert():
    """A result is as hostile as a model's words: no tag of it reaches the page."""
    evil = Result(call=CALL, content="<img src=x onerror=alert(1)>")
    turn = answered("<script>alert(1)</script>", "Fine.", rounds=(Round(ROUND.reply, (evil,)),))
    html = transcript.conversation_bundle([turn])["text/html"]
    assert "<img" not in html
    assert "<script" not in html


def test_a_talk_without_turns_says_so():
    """Nothing said is not nothing shown."""
    assert "Nothing has been said yet." in transcript.conversation_bundle([])["text/plain"]
