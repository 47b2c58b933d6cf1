"""The protocol of the live view: numbered messages, everything when asked, at most one message a look."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from famnb.events import Delta
from famnb.widget.live.live_view import UNHEARD_FLUSHES, Flusher, LiveView
from famnb.widget.live.pane import Pane
from tests.support.scripted_stream import ScriptedStream

TEXT = (0, 1)


class Recording(LiveView):
    """A view that keeps what it would send."""

    def __init__(self, **traits: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        super().__init__(**traits)

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        self.sent.append(content)

    def hear(self, **message: object) -> None:
        """What the front end says."""
        self._on_message(self, message, [])


class Idle(Flusher):
    """Leaves the looking to the test."""

    def add(self, view: LiveView) -> None:
        pass


@pytest.fixture
def view(stream) -> Recording:
    """A view of the stream that a page has heard."""
    view = Recording(flusher=Idle())
    view.hear(kind="ready", page="page-1")
    view.watch(stream)
    view.sent.clear()
    return view


def test_a_look_sends_at_most_one_message(view: Recording, stream):
    """However many deltas came; with nothing new, none."""
    for _ in range(500):
        stream.add(Delta(TEXT, "text", "x"))
    view.flush()
    view.flush()
    (message,) = view.sent
    assert message["kind"] == "changes"
    assert list(message["panes"].values()) == [[["open", 0, "text", ""], ["text", 0, "x" * 500]]]


def test_a_message_is_hardly_longer_than_the_text_that_it_brings(view: Recording):
    """However long the ids of its panes are: at most 25 bytes a pane and 60 in all, and a paragraph is sent once."""
    streams = [ScriptedStream() for _ in range(8)]
    view.follow([Pane(stream, id=f"0123456789abcdef.{number}") for number, stream in enumerate(streams)])
    for stream in streams:
        stream.add(Delta(TEXT, "text", "It begins"))
    view.flush()
    view.sent.clear()
    words = ["five words of each pane ", "to the end of this.\n\n", "Then the next one begins "]
    for text in words:
        for stream in streams:
            stream.add(Delta(TEXT, "text", text))
        view.flush()
    sizes = [len(json.dumps(message, separators=(",", ":"))) for message in view.sent]
    assert len(sizes) == len(words)
    for size, text in zip(sizes, words, strict=True):
        # A paragraph's end is one change more.
        assert size <= 60 + 8 * (len(json.dumps(text)) + (45 if text == words[-1] else 25))


def test_messages_are_numbered_without_a_gap(view: Recording, stream):
    """So that a view can tell that it missed one."""
    for word in ("a", "b", "c"):
        stream.add(Delta(TEXT, "text", word))
        view.flush()
    first, *rest = [message["seq"] for message in view.sent]
    assert rest == [first + 1, first + 2]


def test_a_view_that_says_ready_gets_everything_at_once(view: Recording, stream):
    """A new page, or one that missed a message."""
    stream.add(Delta(TEXT, "text", "all of it"))
    view.hear(kind="ready", page="page-1")
    assert view.sent[-1]["kind"] == "snapshot"
    assert view.sent[-1]["panes"][0]["blocks"][0]["tail"] == "all of it"
    assert not view.reloaded
    view.hear(kind="ready", page="page-2")
    assert view.reloaded


def test_a_view_that_was_hidden_comes_back_with_a_reload(view: Recording, stream):
    """What stands in an output meanwhile is not seen by a page that was away; the view is."""
    stream.add(Delta(TEXT, "text", "done")).end(status="completed")
    view.flush()
    view.hide()
    assert view.sent[-1]["panes"] == []
    view.hear(kind="ready", page="page-1")
    assert view.sent[-1]["panes"] == []
    view.hear(kind="ready", page="page-2")
    assert len(view.sent[-1]["panes"]) == 1


def test_a_view_that_was_never_heard_gets_everything_now_and_then(stream):
    """While a cell blocks the kernel no `ready` comes through: at first each message is whole, then every twentieth."""
    view = Recording(flusher=Idle())
    view.watch(stream)
    for _ in range(3 * UNHEARD_FLUSHES):
        stream.add(Delta(TEXT, "text", "x"))
        view.flush()
    kinds = [message["kind"] for message in view.sent]
    assert kinds[: UNHEARD_FLUSHES + 1] == ["snapshot"] * (UNHEARD_FLUSHES + 1)
    assert kinds[UNHEARD_FLUSHES + 1 :].count("snapshot") == 2


def test_the_last_message_is_everything_and_then_the_end_is_told(view: Recording, stream):
    """A run ends with a snapshot that says so, exactly once, whatever came before."""
    ended = []
    view.watch(stream, on_end=lambda: ended.append(view.sent[-1]))
    stream.add(Delta(TEXT, "text", "done")).end(status="completed", complete=True)
    view.hear(kind="ready", page="page-1")
    view.flush()
    view.flush()
    assert not view.running
    assert [message["kind"] for message in ended] == ["snapshot"]
    assert ended[0]["panes"][0]["running"] is False


def test_one_pane_of_several_ends_without_the_others(view: Recording):
    """Its last words come first, then what else it says, its text not again; the end is told when all have ended."""
    left, right = ScriptedStream(), ScriptedStream()
    ended = []
    view.follow([Pane(left, id="left"), Pane(right, id="right")], on_end=lambda: ended.append(view.sent[-1]))
    view.sent.clear()
    left.add(Delta(TEXT, "tool_call", "{}")).end(status="completed")
    right.add(Delta(TEXT, "text", "more"))
    view.flush()
    words, rest = view.sent
    assert words["panes"]["0"][-1] == ["text", 0, "{}"]
    assert words["panes"]["1"][-1] == ["text", 0, "more"]
    (again,) = rest["anew"]
    assert (again["id"], again["running"], again["blocks"]) == ("left", False, None)
    assert not ended
    right.end(status="failed")
    view.flush()
    assert [pane["running"] for pane in ended[0]["panes"]] == [False, False]


def test_that_a_reply_is_simulated_is_said_as_soon_as_it_is_known(view: Recording, stream):
    """The answer's headers say who answers: the badge is there before the first word."""
    stream.exchange.service = "sim"
    view.flush()
    view.flush()
    (message,) = view.sent
    assert message["anew"][0]["badges"] == [["simulated", "plain"]]


def test_on_a_reloaded_page_a_reply_that_has_ended_says_how_to_save_it(stream):
    """Such a page keeps the view, which no file holds; the first page has the transcript, and needs no such words."""
    view = Recording(flusher=Idle(), remark="show it again")
    view.watch(stream)
    view.hear(kind="ready", page="page-1")
    stream.end(status="completed")
    view.flush()
    assert "show it again" not in str(view.sent)
    view.hear(kind="ready", page="page-2")
    assert "show it again" in view.sent[-1]["panes"][0]["notes"]


def test_stop_is_acknowledged_and_stops(view: Recording, stream):
    """The page learns that the kernel heard it, so that it need not interrupt."""
    view.hear(kind="stop", pane="a pane of long ago")
    assert not stream.stopped
    view.hear(kind="ready", page="page-1")
    view.hear(kind="stop", pane=view.sent[-1]["panes"][0]["id"])
    assert stream.stopped
    assert view.sent[-1] == {"kind": "stopping"}


def test_no_model_text_is_held_in_a_trait(view: Recording, stream):
    """Widget state may be saved in the notebook, in clear; what was streamed is not in it."""
    stream.add(Delta(TEXT, "text", "only in messages"))
    view.flush()
    assert "only in messages" not in str(view.get_state())


def test_the_flusher_carries_a_view_to_its_end():
    """One thread for all views; each ends by itself."""
    flusher = Flusher(period_s=0.001)
    streams = [ScriptedStream(), ScriptedStream()]
    ends = [threading.Event(), threading.Event()]
    for stream, end in zip(streams, ends, strict=True):
        Recording(flusher=flusher).watch(stream, on_end=end.set)
    for stream, end in zip(streams, ends, strict=True):
        stream.add(Delta(TEXT, "text", "x")).end(status="completed")
        assert end.wait(60)


def test_a_view_that_cannot_be_drawn_stops_nothing(caplog: pytest.LogCaptureFixture):
    """Its failure is logged once; its own stream's end is still told, and the other views go on."""
    flusher = Flusher(period_s=0.001)
    streams = [ScriptedStream(), ScriptedStream()]
    ends = [threading.Event(), threading.Event()]
    views = [Recording(flusher=flusher), Recording(flusher=flusher)]
    for view, stream, end in zip(views, streams, ends, strict=True):
        view.watch(stream, on_end=end.set)
    views[0].send = lambda *_: 1 / 0
    for stream, end in zip(streams, ends, strict=True):
        stream.add(Delta(TEXT, "text", "x"))
        stream.end(status="completed")
        assert end.wait(60)
    assert caplog.text.count("cannot be drawn") == 1


def test_a_view_can_be_given_the_next_stream_as_soon_as_one_has_ended():
    """The flusher does not forget a view that has something to do again."""
    view = Recording(flusher=Flusher(period_s=0.001))
    over = threading.Event()

    def follow(left: int) -> None:
        if left:
            view.watch(ScriptedStream().end(status="completed"), on_end=lambda: follow(left - 1))
        else:
            over.set()

    follow(20)
    assert over.wait(60)
