"""The protocol of a tool: numbered patches, everything when it is asked for, intents checked and answered."""

import threading
from typing import Any

import pytest

from famnb.widget.html.transcript import Bundle
from famnb.widget.live.reply_pane import Markdown
from famnb.widget.runtime.intent import intent, urgent_intent
from famnb.widget.runtime.tool import UNHEARD_FLUSHES, BaseTool, Flusher
from famnb.widget.runtime.view import View


class CounterView(View, frozen=True):
    count: int
    text: Markdown


class Counter(BaseTool):
    """A tool that keeps what it would send."""

    entry = "tools/live.js"

    def __init__(self, **options: Any) -> None:
        self.count = 0
        self.stops = 0
        self.text = Markdown()
        self.sent: list[dict[str, Any]] = []
        super().__init__(**options)

    def view(self) -> CounterView:
        return CounterView(self.count, self.text)

    def saved(self) -> Bundle:
        return {"text/html": "", "text/plain": "", "text/markdown": ""}

    @intent
    def add(self, number: int, times: int = 1) -> str:
        """Count."""
        self.count += number * times
        return str(self.count)

    @intent
    def divide(self, by: int) -> None:
        """Count back."""
        self.count //= by

    @urgent_intent
    def stop(self) -> None:
        """Count a stop."""
        self.stops += 1

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        self.sent.append(content)

    def receive_from_page(self, **message: object) -> list[dict[str, Any]]:
        """What is sent upon a message of the page."""
        self.sent.clear()
        self.receive(message)
        return list(self.sent)

    def ask(self, name: str, **args: object) -> list[dict[str, Any]]:
        """What is sent upon an intent of the page."""
        return self.receive_from_page(kind="intent", id=1, name=name, args=args)


class Idle(Flusher):
    """Leaves the flushes to the test."""

    def add(self, tool: object) -> None:
        pass


class Words:
    """A source that appends to a tool's text what it is given."""

    def __init__(self, text: Markdown) -> None:
        self.text = text
        self.words: list[str] = []
        self.is_running = True

    def advance(self) -> bool:
        self.text.append("".join(self.words), is_markdown=False)
        self.words.clear()
        return False

    def finish(self) -> None:
        pass


@pytest.fixture
def counter() -> Counter:
    """A counter whose page has said `ready`."""
    tool = Counter(flusher=Idle())
    tool.receive_from_page(kind="ready", page="page-1")
    return tool


def test_an_intent_is_answered_after_the_patch_that_it_has_led_to(counter: Counter):
    patch, answer = counter.ask("add", number=2, times=3)
    assert (patch["kind"], patch["patch"]) == ("patch", {"count": [6]})
    assert answer == {"kind": "answer", "id": 1, "ok": True, "value": "6"}


@pytest.mark.parametrize(
    ("name", "args", "sentence"),
    [
        ("add", {"number": "2"}, "Expected `int`, got `str`"),
        ("add", {}, "missing required field `number`"),
        ("add", {"number": 1, "more": 1}, "unknown field `more`"),
        ("view", {}, "which Counter cannot do"),
        ("divide", {"by": 0}, "ZeroDivisionError"),
    ],
)
def test_an_intent_that_fails_is_shown_until_the_next_one_succeeds(counter, name, args, sentence):
    patch, answer = counter.ask(name, **args)
    assert sentence in patch["error"]
    assert answer["ok"] is False
    assert counter.ask("add", number=0)[0]["error"] == ""


def test_a_whole_view_says_which_intent_was_answered_last(counter: Counter):
    counter.ask("add", number=1)
    assert counter.receive_from_page(kind="ready", page="page-1")[0]["answered"] == 1
    assert counter.receive_from_page(kind="ready", page="page-of-a-reload")[0]["answered"] == 0


def test_an_urgent_intent_does_not_wait_for_the_lock(counter: Counter):
    entry, done = threading.Event(), threading.Event()

    def hold() -> None:
        with counter.lock:
            entry.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    entry.wait(60)
    (answer,) = counter.ask("stop")
    done.set()
    holder.join()
    assert answer["ok"]
    assert counter.stops == 1


def test_a_flush_leaves_out_a_tool_whose_lock_is_held(counter: Counter):
    counter.refresh()
    with counter.lock:
        counter.count = 1
        flush = threading.Thread(target=counter.flush)
        flush.start()
        flush.join(60)
        assert not flush.is_alive()
    assert counter.needs_flush


def test_only_what_is_appended_is_sent_and_numbers_have_no_gap(counter: Counter):
    source = Words(counter.text)
    counter.follow([source])
    counter.sent.clear()
    for word in ("a", "b", "c"):
        source.words.append(word * 100)
        counter.flush()
    counter.flush()
    assert [message["more"] for message in counter.sent] == [{counter.text.id: word * 100} for word in "abc"]
    first = counter.sent[0]["seq"]
    assert [message["seq"] for message in counter.sent] == [first, first + 1, first + 2]


def test_a_page_that_is_new_gets_everything_and_reloads_are_noticed(counter: Counter):
    counter.text.append("all of it", is_markdown=False)
    (message,) = counter.receive_from_page(kind="ready", page="page-1")
    assert message["view"]["count"] == 0
    assert message["growing"] == {counter.text.id: {"html": "", "tail": "all of it"}}
    assert not counter.reloaded
    counter.receive_from_page(kind="ready", page="page-2")
    assert counter.reloaded


def test_a_page_that_has_not_said_ready_gets_everything_now_and_then():
    counter = Counter(flusher=Idle())
    source = Words(counter.text)
    counter.follow([source])
    for _ in range(3 * UNHEARD_FLUSHES):
        source.words.append("x")
        counter.flush()
    assert [message["kind"] for message in counter.sent] == ["view"] * (UNHEARD_FLUSHES + 2)


def test_the_last_message_of_streams_is_everything_and_then_the_end_is_called(counter: Counter):
    left, right = Words(counter.text), Words(counter.text)
    ends: list[str] = []
    counter.follow([left, right], on_end=lambda: ends.append(counter.sent[-1]["kind"]))
    left.is_running = False
    counter.flush()
    assert counter.needs_flush
    assert not ends
    right.words.append("last")
    right.is_running = False
    counter.flush()
    assert not counter.needs_flush
    assert ends == ["view"]
    assert counter.sent[-1]["growing"][counter.text.id]["tail"] == "last"


def test_no_text_is_held_in_a_trait(counter: Counter):
    """Widget state may be saved in the notebook, in clear."""
    counter.text.append("only in messages", is_markdown=False)
    counter.receive_from_page(kind="ready", page="page-1")
    assert "only in messages" not in str(counter.get_state())


def test_a_tool_that_cannot_be_drawn_stops_nothing(caplog: pytest.LogCaptureFixture):
    flusher = Flusher(period_s=0.001)
    tools = [Counter(flusher=flusher) for _ in range(3)]
    tools[0].send = lambda *_: 1 / 0
    sends = iter([None])
    tools[1].send = lambda *_: next(sends)  # all but the last
    ends = [threading.Event() for _ in tools]
    for tool, end in zip(tools, ends, strict=True):
        source = Words(tool.text)
        source.words.append("x")
        source.is_running = False
        tool.follow([source], on_end=end.set)
        assert end.wait(60)
    assert caplog.text.count("cannot be drawn") == 2


def test_a_view_that_cannot_be_drawn_is_an_error_and_the_intent_is_answered(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(counter, "view", lambda: 1 / 0)
    patch, answer = counter.ask("add", number=1)
    assert "ZeroDivisionError" in patch["error"]
    assert answer["kind"] == "answer"


def test_a_tool_can_be_given_the_next_stream_as_soon_as_one_has_ended():
    counter = Counter(flusher=Flusher(period_s=0.001))
    over = threading.Event()

    def follow(left: int) -> None:
        if not left:
            over.set()
            return
        source = Words(counter.text)
        counter.follow([source], on_end=lambda: follow(left - 1))
        source.is_running = False

    follow(20)
    assert over.wait(60)
