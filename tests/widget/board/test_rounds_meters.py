"""The meters of a pane: what is known is exact, what is estimated says so, what is unknown is left out."""

import dataclasses
from decimal import Decimal

from famnb.events import Delta, Usage
from famnb.record import Cost
from famnb.reply import Block, Reply
from famnb.timing import Timing
from famnb.widget.board.rounds import BoardAnswer, read_meters

TEXT = (0, 1)
BLOCKS = (Block(at=(0, 0), kind="thinking", text="t" * 100), Block(at=TEXT, kind="text", text="x" * 300))
RUNNING = Reply(blocks=BLOCKS, timing=Timing(ttft_s=0.42, ttfa_s=1.2, e2e_s=2.0))
ABOUT = Cost(Decimal("0.0012"), Decimal("0.001"), Decimal("0.0021"))


def test_while_it_streams_tokens_are_estimated_from_characters():
    reply = dataclasses.replace(RUNNING, usage=Usage(output_tokens=1))
    assert read_meters(reply, cost=ABOUT, elapsed_s=2.0) == {
        "first token": "0.42 s",
        "answer": "1.2 s",
        "tokens": "≈ 100",
        "tokens/s": "≈ 50",
        "in all": "2.0 s",
        "cost": "≈ $0.0012 ($0.001–$0.0021)",
    }


def test_what_is_known_at_the_end_is_exact():
    reply = dataclasses.replace(RUNNING, status="completed", usage=Usage(output_tokens=128))
    exact = Cost(Decimal("0.0012"), Decimal("0.0012"), Decimal("0.0012"))
    meters = read_meters(reply, cost=exact, elapsed_s=0)
    assert [*meters.values()] == ["0.42 s", "1.2 s", "128", "64", "2.0 s", "$0.0012"]


def test_tokens_that_were_never_reported_stay_estimates(stream):
    reply = dataclasses.replace(RUNNING, status="completed", request=stream.exchange.request)
    assert [*read_meters(reply, cost=None, elapsed_s=0).values()][2:] == ["≈ 100", "≈ 50", "2.0 s", "unknown"]
    assert [*read_meters(Reply(), cost=None, elapsed_s=1).values()][:5] == ["", "", "", "", "1.0 s"]


def test_meters_change_at_most_once_a_second(stream):
    now = [10.0]
    answer = BoardAnswer(stream, key="a", label="a", clock=lambda: now[0])
    seen = []
    for tenth in range(1, 31):
        now[0] = 10 + tenth / 10
        stream.add(Delta(TEXT, "text", "word"))
        answer.advance()
        seen.append(answer.meters)
    assert list(dict.fromkeys(meters["tokens"] for meters in seen)) == ["≈ 1", "≈ 11", "≈ 21"]
