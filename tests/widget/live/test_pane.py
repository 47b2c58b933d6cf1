"""What a view is told adds up to what the stream said, however it is cut into looks."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from famnb.events import Closed, Delta, Ended, Opened, Started, Usage
from famnb.timing import Timing
from famnb.widget.html import sanitize
from famnb.widget.live.pane import Pane
from tests.support.scripted_stream import ScriptedStream

TEXT = (0, 1)
THINKING = (0, 0)


def cut(text: str, length: int) -> str:
    """The first UTF-16 units of a text, as JavaScript counts them."""
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le")


class View:
    """Applies changes as the front end does."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self.drafts: dict[int, str] = {}

    def take(self, changes: list[list[Any]]) -> None:
        for what, number, *details in changes:
            match what:
                case "open":
                    assert number == len(self.blocks)
                    self.blocks.append({"kind": details[0], "label": details[1], "open": True, "html": "", "tail": ""})
                case "text":
                    self.blocks[number]["tail"] += details[0]
                case "draft":
                    kept, html, text = details
                    self.blocks[number]["tail"] += text
                    self.drafts[number] = cut(self.drafts.get(number, ""), kept) + html
                    assert self.drafts[number] == sanitize.render_markdown(self.blocks[number]["tail"])
                case "settle":
                    kept, html, rest = details
                    self.blocks[number]["html"] += cut(self.drafts.pop(number, ""), kept) + html
                    self.blocks[number]["tail"] = rest
                case "paragraphs":
                    tail = self.blocks[number]["tail"]
                    text = cut(tail, details[0])
                    for paragraph in re.split(r"\n{2,}", text.strip("\n")):
                        self.blocks[number]["html"] += f'<p dir="auto" style="text-align:start">{paragraph}</p>\n'
                    self.blocks[number]["tail"] = tail[len(text) :]
                    self.drafts.pop(number, None)
                case "close":
                    self.blocks[number]["html"], self.blocks[number]["tail"] = details
                    self.drafts.pop(number, None)
                case "fold":
                    self.blocks[number]["label"] = details[0]
                    self.blocks[number]["open"] = False


def test_thinking_is_open_until_the_answer_begins(stream):
    """It streams into an open block, which folds with how long it took when the first word of the answer comes."""
    pane, view = Pane(stream, id="p"), View()
    view.take(pane.changes())
    assert view.blocks == []
    stream.add(Started("id"), Opened(THINKING, "thinking"), Delta(THINKING, "thinking", "hmm"))
    view.take(pane.changes())
    assert view.blocks == [{"kind": "thinking", "label": "thinking", "open": True, "html": "", "tail": "hmm"}]
    stream.add(Closed(THINKING), Opened(TEXT, "text"))
    view.take(pane.changes())
    assert [block["open"] for block in view.blocks] == [True, True]
    stream.add(Delta(TEXT, "text", "So")).update(timing=Timing(think_s=2.345))
    view.take(pane.changes())
    assert [block["open"] for block in view.blocks] == [False, True]
    assert view.blocks[0]["label"] == "thought for 2.3 s"
    assert view.blocks[1]["tail"] == "So"


def test_thinking_of_unknown_length_folds_at_the_next_look(stream):
    """How long it took may follow the first word of the answer by a moment, or never be known."""
    pane, view = Pane(stream, id="p"), View()
    stream.add(Delta(THINKING, "thinking", "hmm"), Delta(TEXT, "text", "So"))
    view.take(pane.changes())
    assert view.blocks[0]["open"]
    view.take(pane.changes())
    assert (view.blocks[0]["open"], view.blocks[0]["label"]) == (False, "thought")


def test_text_goes_out_once_and_coalesced(stream):
    """Many deltas between two looks are one change; nothing new is no change."""
    pane = Pane(stream, id="p")
    stream.add(*(Delta(TEXT, "text", word) for word in ("a ", "b ", "c")))
    assert pane.changes() == [["open", 0, "text", ""], ["text", 0, "a b c"]]
    assert pane.changes() == []
    stream.add(Delta(TEXT, "text", " d"))
    assert pane.changes() == [["text", 0, " d"]]


def test_finished_markdown_is_frozen_as_html(stream):
    """A paragraph goes out as clean HTML once the next has begun, and only the rest stays text."""
    pane = Pane(stream, id="p")
    stream.add(Delta(TEXT, "text", "**one** <img src=x>\n\ntwo"))
    _, settle = pane.changes()
    assert settle == [
        "settle",
        0,
        0,
        '<p dir="auto" style="text-align:start"><strong>one</strong> &lt;img src=x&gt;</p>\n',
        "two",
    ]


def test_a_closed_block_is_rendered_as_a_whole(stream):
    """At the next look, so that its last words need not wait; the final text of the wire wins over the deltas."""
    pane, view = Pane(stream, id="p"), View()
    stream.add(Delta(TEXT, "text", "*on"), Closed(TEXT, "*one*"))
    view.take(pane.changes())
    assert (view.blocks[0]["html"], view.blocks[0]["tail"]) == ("", "*on")
    view.take(pane.changes())
    assert (view.blocks[0]["html"], view.blocks[0]["tail"]) == (
        '<p dir="auto" style="text-align:start"><em>one</em></p>\n',
        "",
    )


def test_a_tool_call_is_laid_out_and_stays_text(stream):
    """Arguments are JSON, not Markdown."""
    pane, view = Pane(stream, id="p"), View()
    stream.add(Opened(TEXT, "tool_call", name="f"), Delta(TEXT, "tool_call", '{"a":\n\n"*b*"}'), Closed(TEXT))
    view.take(pane.changes())
    assert view.blocks == [{"kind": "code", "label": "calls f", "open": True, "html": "", "tail": '{\n  "a": "*b*"\n}'}]


@given(
    st.lists(
        st.sampled_from(["word ", "\n\n", "- item\n", "```\n", "# h\n", "<b>", "\x1b[1m", "é", "\N{WATER WAVE}", "*"]),
        max_size=40,
    ),
    st.lists(st.integers(1, 8), min_size=1),
)
def test_any_looks_add_up_to_the_whole(pieces: list[str], strides: list[int]):
    """Wherever the looks fall, what is frozen and what is not add up to the text, as does a late snapshot."""
    stream = ScriptedStream()
    pane, view = Pane(stream, id="p"), View()
    deltas = [Delta(TEXT, "text", piece) for piece in pieces]
    while deltas:
        stride = strides[len(deltas) % len(strides)]
        stream.add(*deltas[:stride])
        del deltas[:stride]
        view.take(pane.changes())
    assert pane.snapshot()["blocks"] == view.blocks
    for block in view.blocks:
        assert block["html"] + str(sanitize.render_markdown(block["tail"])) == sanitize.render_markdown("".join(pieces))


def test_a_snapshot_holds_all_and_later_changes_follow_it(stream):
    """A view that starts late is told everything once."""
    pane = Pane(stream, id="p", clock=iter([10.0, 12.5]).__next__)
    stream.add(Delta(TEXT, "text", "so far"))
    shown = pane.snapshot()
    assert shown["running"]
    assert shown["elapsed"] == 2.5
    assert shown["asked"] == [["user", "Why?"]]
    assert shown["blocks"][0]["tail"] == "so far"
    assert pane.changes() == []


def test_the_last_snapshot_is_the_reply_itself(stream):
    """Final texts, badges and figures come from the reply, not from what was shown on the way."""
    pane = Pane(stream, id="p")
    stream.add(Delta(TEXT, "text", "*x*"), Ended("length", "max_tokens"), Usage(output_tokens=3))
    pane.changes()
    stream.end(status="incomplete")
    shown = pane.snapshot()
    assert not shown["running"]
    assert shown["badges"] == [["cut off at the token cap", "warn"]]
    assert shown["blocks"][0]["html"] == '<p dir="auto" style="text-align:start"><em>x</em></p>\n'
    assert "3 tokens out" in shown["figures"]


def test_what_changes_have_told_is_not_summed_up_again(stream):
    """What they have not told is: a block whose last words were shown and that was not rendered since."""
    pane = Pane(stream, id="p")
    stream.add(Delta(TEXT, "text", "one\n\ntwo"), Closed(TEXT))
    assert pane.changes()
    assert [block["tail"] for block in pane.summary()["blocks"]] == [""]
    assert pane.changes() == []
    assert pane.summary()["blocks"] is None
    stream.end(status="completed")
    assert pane.summary()["blocks"] is None


def test_growing_markdown_is_rendered_as_far_as_it_has_come(stream):
    """A table, a list, code: clean HTML of what is not finished; prose goes out as its text, which looks the same."""
    pane = Pane(stream, id="p", clock=lambda: 0.0)
    stream.add(Delta(TEXT, "text", "Some prose"))
    assert pane.changes()[1:] == [["text", 0, "Some prose"]]
    stream.add(Delta(TEXT, "text", " and **bold** <img src=x>"))
    ((name, _, _, html, text),) = pane.changes()
    assert (name, text) == ("draft", " and **bold** <img src=x>")
    assert "<strong>bold</strong> &lt;img" in html
    stream.add(Delta(TEXT, "text", "\n\n- one"))
    settled, draft = pane.changes()
    assert settled[0] == "settle"
    assert draft[:3] == ["draft", 0, 0]
    assert "<li>one</li>" in draft[3]
    assert draft[4] == ""


def test_what_the_page_has_is_not_sent_again(stream):
    """Paragraphs without markup are told by their length, and HTML by how much of the last draft it begins with."""
    pane, view = Pane(stream, id="p", clock=lambda: 0.0), View()
    stream.add(Delta(TEXT, "text", "A “wave” \N{WATER WAVE}\n\n\nis ~"))
    opened, text, paragraphs, draft = pane.changes()
    assert (text, paragraphs) == (["text", 0, "A “wave” \N{WATER WAVE}\n\n\nis ~"], ["paragraphs", 0, 14])
    view.take([opened, text, paragraphs, draft])
    stream.add(Delta(TEXT, "text", "*tall*"))
    (draft,) = pane.changes()
    assert draft == ["draft", 0, len('<p dir="auto" style="text-align:start">is ~<'), "em>tall</em></p>\n", "*tall*"]
    view.take([draft])
    stream.add(Delta(TEXT, "text", "\n\nAnd"))
    (settled,) = pane.changes()
    assert settled == ["settle", 0, len(view.drafts[0]), "", "And"]
    view.take([settled])
    stream.add(Closed(TEXT))
    assert pane.changes() == []
    view.take(pane.changes())
    assert view.blocks[0]["html"] == sanitize.render_markdown("A “wave” \N{WATER WAVE}\n\n\nis ~*tall*\n\nAnd")


def test_a_draft_after_a_snapshot_is_whole(stream):
    """A page that draws a snapshot has the text alone."""
    pane = Pane(stream, id="p", clock=lambda: 0.0)
    stream.add(Delta(TEXT, "text", "*one*"))
    pane.changes()
    pane.snapshot()
    stream.add(Delta(TEXT, "text", " two"))
    (draft,) = pane.changes()
    assert draft[2:4] == [0, sanitize.render_markdown("*one* two")]


def test_drafts_take_a_tenth_of_the_time_and_none_of_a_long_block(stream):
    """After one that took long the text comes as text for nine times as long, among two panes for eighteen."""
    now = [0.0]
    pane = Pane(stream, id="p", clock=lambda: now[0])
    pane.sharers = 2
    kinds = []
    for seconds in (0.0, 0.1, 0.19, 10.0):
        stream.add(Delta(TEXT, "text", "*x* "))
        now[0] = seconds
        kinds.append(pane.changes()[-1][0])
    assert kinds == ["draft"] * 4
    slow = iter([20.0, 21.0])
    pane._clock = lambda: next(slow)
    stream.add(Delta(TEXT, "text", "*y* "))
    assert pane.changes()[-1][0] == "draft"
    pane._clock = lambda: now[0]
    for seconds, kind in ((21.1, "text"), (38.9, "text"), (39.0, "draft")):
        now[0] = seconds
        stream.add(Delta(TEXT, "text", "*z* "))
        assert pane.changes()[-1][0] == kind, seconds
    stream.add(Delta(TEXT, "text", "*" * 3_000))
    now[0] = 100.0
    assert pane.changes()[-1][0] == "text"


def test_html_is_sent_as_plain_text(stream):
    """A host may write a value that knows how to show itself into a message as an object, as marimo does."""
    pane = Pane(stream, id="p", clock=lambda: 0.0)
    stream.add(Delta(TEXT, "text", "*one*\n\n*two*"))
    changes = pane.changes()
    stream.add(Closed(TEXT))
    changes += [*pane.changes(), *pane.changes()]
    stream.end(status="completed")
    values = [value for change in changes for value in change] + [pane.snapshot()["blocks"][0]["html"]]
    assert {type(value) for value in values} == {str, int}
