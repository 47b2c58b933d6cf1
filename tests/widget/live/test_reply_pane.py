"""What a page is sent of a reply adds up to what the stream said, however it is cut into flushes."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.events import Closed, Delta, Ended, Opened, Started, Usage
from famnb.timing import Timing
from famnb.widget.html import sanitize
from famnb.widget.live.reply_pane import Markdown, PaneView, ReplyPane
from tests.support.scripted_stream import ScriptedStream

TEXT = (0, 1)
THINKING = (0, 0)


class Page:
    """Applies the changes of texts as the page does."""

    def __init__(self, pane: ReplyPane) -> None:
        self.pane = pane
        self._bodies: dict[str, dict[str, str]] = {}

    def flush(self) -> PaneView:
        """Take what came since the last flush; returns the view."""
        self.pane.advance()
        view = self.pane.view()
        for block in view.blocks:
            if block.body.id in self._bodies:
                for change in changes_of(block.body):
                    self._apply(self._bodies[block.body.id], *change)
            else:
                self._bodies[block.body.id] = block.body.whole()
        return view

    @property
    def texts(self) -> list[tuple[str, str]]:
        """HTML and tail of each block."""
        bodies = [self._bodies[block.body.id] for block in self.pane.view().blocks]
        return [(body["html"], body["tail"]) for body in bodies]

    def _apply(self, body: dict[str, str], name: str, *details: Any) -> None:
        match name:
            case "text":
                body["tail"] += details[0]
            case "draft":
                html, text = details
                body["tail"] += text
                assert html == sanitize.render_markdown(body["tail"])
            case "freeze":
                html, body["tail"] = details
                body["html"] += html
            case "replace":
                body["html"], body["tail"] = details


def changes_of(body: Markdown) -> list[list[Any]]:
    """What is sent of a text, as a list of changes."""
    changes = body.changes()
    return [["text", changes]] if isinstance(changes, str) else changes


@pytest.fixture
def pane(stream: ScriptedStream) -> ReplyPane:
    """A pane at a clock that runs so fast that every draft is made."""
    return ReplyPane(stream, key="p", clock=itertools.count().__next__)


def begin(pane: ReplyPane, stream: ScriptedStream, text: str) -> Markdown:
    """The text of a reply whose whole the page has, as far as it has come."""
    stream.add(Delta(TEXT, "text", text))
    pane.advance()
    (block,) = pane.view().blocks
    block.body.whole()
    return block.body


def test_thinking_is_open_until_the_answer_begins(pane: ReplyPane, stream: ScriptedStream):
    page = Page(pane)
    assert page.flush().blocks == ()
    stream.add(Started("id"), Opened(THINKING, "thinking"), Delta(THINKING, "thinking", "hmm"))
    (thinking,) = page.flush().blocks
    assert (thinking.kind, thinking.label, thinking.is_open, page.texts) == (
        "thinking",
        "thinking",
        True,
        [("", "hmm")],
    )
    stream.add(Closed(THINKING), Opened(TEXT, "text"))
    assert page.flush().blocks[0].is_open
    stream.add(Delta(TEXT, "text", "So"))
    thinking, _ = page.flush().blocks
    assert (thinking.is_open, thinking.label) == (False, "thought")
    stream.update(timing=Timing(think_s=2.345))
    assert page.flush().blocks[0].label == "thought for 2.3 s"
    assert page.texts[1] == ("", "So")


def test_a_picture_comes_whole_at_the_end(pane: ReplyPane, stream: ScriptedStream):
    url, picture = "data:image/png;base64,iVBORw0KGgo=", (0, 2)
    stream.add(Delta(TEXT, "text", "Here: "), Opened(picture, "image"), Delta(picture, "image", url), Closed(picture))
    page = Page(pane)
    page.flush()
    assert page.texts == [("", "Here: ")]
    stream.add(Ended("completed", "stop")).end(status="completed")
    pane.finish()
    page.flush()
    assert [f'src="{url}"' in html for html, _tail in page.texts] == [False, True]


def test_deltas_between_two_flushes_are_one_change(pane: ReplyPane, stream: ScriptedStream):
    body = begin(pane, stream, "So ")
    stream.add(*(Delta(TEXT, "text", word) for word in ("a ", "b ", "c")))
    assert not pane.advance()
    assert body.changes() == "a b c"
    assert not body.changes()


def test_a_closed_block_is_rendered_as_a_whole(pane: ReplyPane, stream: ScriptedStream):
    page = Page(pane)
    stream.add(Delta(TEXT, "text", "*on"), Closed(TEXT, "*one*"))
    page.flush()
    assert page.texts == [("", "*on")]
    page.flush()
    assert page.texts == [('<p dir="auto" style="text-align:start"><em>one</em></p>\n', "")]


def test_a_tool_call_stays_text_and_is_indented_once_it_is_whole(pane: ReplyPane, stream: ScriptedStream):
    page = Page(pane)
    stream.add(Opened(TEXT, "tool_call", name="f"), Delta(TEXT, "tool_call", '{"a":\n\n"*b*"}'), Closed(TEXT))
    (call,) = page.flush().blocks
    assert (call.kind, call.label, page.texts) == ("code", "calls f", [("", '{"a":\n\n"*b*"}')])
    page.flush()
    assert page.texts == [("", '{\n  "a": "*b*"\n}')]


@given(
    st.lists(
        st.sampled_from(["word ", "\n\n", "- item\n", "```\n", "# h\n", "<b>", "\x1b[1m", "é", "\N{WATER WAVE}", "*"]),
        max_size=40,
    ),
    st.lists(st.integers(1, 8), min_size=1),
)
def test_any_flushes_add_up_to_the_whole(pieces: list[str], strides: list[int]):
    stream = ScriptedStream()
    pane = ReplyPane(stream, key="p", clock=itertools.count().__next__)
    page = Page(pane)
    deltas = [Delta(TEXT, "text", piece) for piece in pieces]
    while deltas:
        stride = strides[len(deltas) % len(strides)]
        stream.add(*deltas[:stride])
        del deltas[:stride]
        page.flush()
    for block, (html, tail) in zip(pane.view().blocks, page.texts, strict=True):
        assert block.body.whole() == {"html": html, "tail": tail}
        assert html + str(sanitize.render_markdown(tail)) == sanitize.render_markdown("".join(pieces))


def test_a_page_that_comes_late_is_told_everything_once(stream: ScriptedStream):
    pane = ReplyPane(stream, key="p", clock=iter([10.0, 12.5]).__next__)
    stream.add(Delta(TEXT, "text", "so far"))
    pane.advance()
    view = pane.view()
    assert view.is_running
    assert view.elapsed.whole() == 2.5
    assert [(prompt.label, prompt.text) for prompt in view.prompts] == [("", "Why?")]
    assert view.blocks[0].body.whole() == {"html": "", "tail": "so far"}
    assert not view.blocks[0].body.changes()


def test_the_end_is_shown_in_the_words_of_the_reply(pane: ReplyPane, stream: ScriptedStream):
    page = Page(pane)
    stream.add(Delta(TEXT, "text", "*x*"), Ended("length", "max_tokens"), Usage(output_tokens=3))
    page.flush()
    stream.end(status="incomplete")
    pane.finish()
    view = page.flush()
    assert not view.is_running
    assert [(badge.text, badge.tone) for badge in view.badges] == [("cut off at the token cap", "warn")]
    assert page.texts == [('<p dir="auto" style="text-align:start"><em>x</em></p>\n', "")]
    assert "3 tokens out" in view.figures


def test_the_end_sends_no_text_again(pane: ReplyPane, stream: ScriptedStream):
    body = begin(pane, stream, "one\n\ntwo")
    stream.add(Closed(TEXT))
    pane.advance()
    pane.advance()
    assert changes_of(body)
    stream.end(status="completed")
    pane.finish()
    assert pane.view().blocks[0].body is body
    assert not body.changes()


def test_growing_markdown_is_rendered_as_far_as_it_has_come(pane: ReplyPane, stream: ScriptedStream):
    body = begin(pane, stream, "Some")
    stream.add(Delta(TEXT, "text", " prose"))
    pane.advance()
    assert body.changes() == " prose"
    stream.add(Delta(TEXT, "text", " and **bold** <img src=x>"))
    pane.advance()
    ((name, html, text),) = body.changes()
    assert (name, text) == ("draft", " and **bold** <img src=x>")
    assert "<strong>bold</strong> &lt;img" in html
    stream.add(Delta(TEXT, "text", "\n\n- one"))
    pane.advance()
    freeze, draft = body.changes()
    assert freeze[0] == "freeze"
    assert (draft[0], draft[2]) == ("draft", "")
    assert "<li>one</li>" in draft[1]


def test_two_panes_share_the_time_for_drafts_and_a_long_block_has_none(stream: ScriptedStream):
    now = [0.0]
    pane = ReplyPane(stream, key="p", sharers=2, clock=lambda: now[0])
    body = begin(pane, stream, "*w* ")

    def kind_at(seconds: float, text: str) -> str:
        now[0] = seconds
        stream.add(Delta(TEXT, "text", text))
        pane.advance()
        return changes_of(body)[-1][0]

    assert [kind_at(seconds, "*x* ") for seconds in (0.19, 0.2, 0.39, 0.41)] == ["text", "draft", "text", "draft"]
    assert kind_at(100.0, "*" * 3_000) == "text"
