"""The live view of a call: what its messages hold, and what becomes of it on a page that was reloaded."""

import json
from typing import Any

import pytest

from famnb.events import Delta
from famnb.widget.live.reply_pane import ReplyPane
from famnb.widget.live.reply_view import RepliesView, ReplyView
from tests.support.front_page import IdleFlusher
from tests.support.scripted_stream import ScriptedStream

TEXT = (0, 1)


class Recording(ReplyView):
    """A live view that keeps what it would send."""

    def __init__(self, stream: ScriptedStream) -> None:
        self.sent: list[dict[str, Any]] = []
        super().__init__(stream, flusher=IdleFlusher())

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        self.sent.append(content)

    def receive_from_page(self, **message: object) -> dict[str, Any]:
        """The last message that answers one of the page."""
        self.receive(message)
        return self.sent[-1]


@pytest.fixture
def view(stream: ScriptedStream) -> Recording:
    """A live view that a page has said ready to."""
    view = Recording(stream)
    view.receive_from_page(kind="ready", page="page-1")
    return view


def test_a_message_is_hardly_longer_than_the_text_that_it_brings():
    """At most 20 bytes a pane and 60 in all; a paragraph's end is one change more."""
    streams = [ScriptedStream() for _ in range(8)]
    panes = [ReplyPane(stream, key=f"0123456789abcdef.{number}") for number, stream in enumerate(streams)]

    class Panes(Recording):
        def view(self) -> RepliesView:
            return RepliesView(panes=tuple(pane.view() for pane in panes))

    tool = Panes(ScriptedStream())
    tool.receive_from_page(kind="ready", page="page-1")
    tool.follow(panes)
    for text in ("It begins", "five words of each pane ", "to the end of this.\n\n", "Then the next one begins "):
        for stream in streams:
            stream.add(Delta(TEXT, "text", text))
        tool.sent.clear()
        tool.flush()
        (message,) = tool.sent
        if text != "It begins":
            size = len(json.dumps(message, separators=(",", ":")))
            assert size <= 60 + 8 * (len(json.dumps(text)) + (40 if text.endswith("\n") else 20))


def test_that_a_reply_is_simulated_is_said_as_soon_as_it_is_known(view: Recording, stream: ScriptedStream):
    stream.exchange.service = "sim"
    view.flush()
    assert "simulated" in json.dumps(view.sent[-1]["patch"])


def test_on_a_reloaded_page_a_reply_that_has_ended_says_how_to_save_it(view: Recording, stream: ScriptedStream):
    stream.end(status="completed")
    view.flush()
    assert "show it in a new cell" not in str(view.sent)
    assert "show it in a new cell" in str(view.receive_from_page(kind="ready", page="page-2"))


def test_a_view_that_is_hidden_comes_back_with_a_reload(view: Recording, stream: ScriptedStream):
    stream.add(Delta(TEXT, "text", "done")).end(status="completed")
    view.flush()
    view.hide()
    assert view.receive_from_page(kind="ready", page="page-1")["view"]["panes"] == []
    assert len(view.receive_from_page(kind="ready", page="page-2")["view"]["panes"]) == 1
