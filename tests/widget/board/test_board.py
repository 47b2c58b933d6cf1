"""The board against the real client and the local service: checked before it sends, failing in place, saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import famnb
from famnb.api import Client
from famnb.widget.board.board import Board
from tests.support.scripted_stream import ScriptedStream

MIXED = [
    {"model": "fam-mini"},
    {"endpoint": "messages", "thinking": 64},
    {"endpoint": "responses", "model": "fam-2-5-mini", "label": "small"},
]
pytestmark = pytest.mark.usefixtures("outputs")


@pytest.fixture
def client(server: famnb.service.Server, tmp_path: Path) -> Iterator[famnb.Client]:
    """A client of the local service with a ledger of its own."""
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "ledger.sqlite") as client:
        yield client


def end_round(board: Board) -> Board:
    """Wait until a round is over; returns the board."""
    board.wait(60)
    return board


def receive(board: Board, **message: object) -> None:
    """Have the board receive a message of its page."""
    board._on_message(board, message, [])


def pin(board: Board, label: str) -> None:
    """Have the page pin an answer of the latest round, or take its mark away."""
    (pane,) = (pane for pane in board._rounds[-1].panes.values() if pane.label == label)
    receive(board, kind="pin", pane=pane.id)


def test_one_prompt_goes_to_every_pane(client: famnb.Client, outputs: list[dict[str, str]]):
    """Each with its own settings; the table that is saved has a column a pane; the other two forms have all of it."""
    board = Board(client, MIXED, prompt="Say hello.", system="Be kind.")
    streams = board.send()
    assert list(streams) == ["chat · fam-mini", "messages · thinking=64", "small"]
    end_round(board)
    assert [reply.status for reply in board.replies.values()] == ["completed"] * 3
    assert board.replies["messages · thinking=64"].request.body()["thinking"]["budget_tokens"] == 64
    for form in ("text/html", "text/markdown", "text/plain"):
        assert all(words in outputs[-1][form] for words in ("Say hello.", "Be kind.", "fam-mini", "small", "no price"))
    assert outputs[-1]["text/html"].count('<th scope="col"') == 3


def test_the_frame_has_the_latest_round_in_the_order_of_the_panes(client: famnb.Client):
    """Rows are those of `famnb.calls`, and say which answer was pinned."""
    board = Board(client, MIXED, prompt="Say hello.")
    assert board.frame().empty
    board.send()
    end_round(board).send()
    end_round(board).pin("small")
    frame = board.frame()
    assert list(frame["variant"]) == list(board.replies)
    assert list(frame["winner"]) == [False, False, True]
    assert list(frame["call_id"]) == [reply.call_id for reply in board.replies.values()]
    assert len(famnb.calls(client)) == 6


def test_a_pane_that_fails_leaves_the_others(server: famnb.service.Server, client: famnb.Client, outputs):
    """Three results and one error, in its place, live and saved; nothing is raised."""
    endless = "resp_" + "0" * 32
    board = Board(
        client, [*MIXED, {"endpoint": "responses", "previous_response_id": endless, "label": "lost"}], prompt="Hi"
    )
    board.send()
    end_round(board)
    assert [reply.status for reply in board.replies.values()] == ["completed"] * 3 + ["failed"]
    assert "previous_response_not_found" in outputs[-1]["text/plain"] or "BadRequestError" in outputs[-1]["text/plain"]
    assert list(board.frame()["status"]) == ["completed"] * 3 + ["failed"]
    assert board._trouble == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            [{"endpoint": "messages"}, {"model": "fam-mini", "temprature": 1}],
            "pane 'chat · fam-mini.*did you mean 'temp",
        ),
        ({"warm": {"model": "fam-mini", "temperature": 3.0}}, "pane 'warm'.*temperature.*less than or equal to 2"),
        ([{"endpoint": "mesages"}], "pane 'mesages': endpoint: no endpoint 'mesages'"),
        ([{"prompt": "x"}], "pane .*prompt: every pane is asked the board's own prompt"),
        ([{"label": "a"}, {"label": "a"}], "'a' is the label of several panes"),
        (["fam-mini"], r"variants\[0\]: expected fields of a request, or a request; got 'fam-mini'"),
        ("fam-mini", "variants: expected a list"),
        (7, "variants: expected a list"),
        ([], "variants: there are none"),
    ],
)
def test_settings_that_no_request_can_have_are_refused_before_any_call(client: famnb.Client, given: object, words: str):
    """The error names the pane, what was wrong and what to do."""
    with pytest.raises(famnb.InvalidRequest, match=words):
        Board(client, given)


def test_what_is_no_client_is_refused(client: famnb.Client):
    """At once, not when the first prompt is sent."""
    with pytest.raises(TypeError, match=r"expected a famnb.Client, such as famnb.connect\(\) gives; got 7"):
        Board(7, MIXED)


def test_a_second_send_while_streaming_sends_nothing():
    """One wish, one round; stop reaches one pane or all of them."""
    made = []

    def start(request: famnb.MessagesRequest, *, labels: dict[str, str]) -> object:
        made.append(ScriptedStream())
        return made[-1]

    client = Client(base_url="http://127.0.0.1:9", api_key="k")
    client.engine.start = start
    board = Board(client, {"a": {}, "b": {}}, prompt="Hi")
    receive(board, kind="send", prompt="Hi")
    receive(board, kind="send", prompt="Hi")
    assert len(made) == 2
    board.stop("b")
    assert [stream.stopped for stream in made] == [False, True]
    board.stop()
    assert [stream.stopped for stream in made] == [True, True]
    with pytest.raises(KeyError, match="there is no pane 'c'; there are 'a', 'b'"):
        board.stop("c")
    for stream in made:
        stream.end(status="cancelled")
    end_round(board)


def test_the_winner_is_marked_and_its_words_are_the_measure(client: famnb.Client, outputs: list[dict[str, str]]):
    """Pinning again takes the mark away; the next round begins without one, the last keeps its own."""
    board = Board(client, {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro"}}, prompt="Say hello.")
    board.send()
    end_round(board)
    receive(board, kind="differences")
    assert "<ins" in outputs[-1]["text/html"]
    assert "[-`fam-2-5-mini`-] [+`fam-2-5-pro`+]" in outputs[-1]["text/plain"]
    pin(board, "large")
    assert board.winner == "large"
    assert "[-`fam-2-5-pro`-] [+`fam-2-5-mini`+]" in outputs[-1]["text/plain"]
    assert all("★ winner" in text for text in outputs[-1].values())
    pin(board, "large")
    assert board.winner is None
    assert not any("★ winner" in text for text in outputs[-1].values())
    board.pin("small")
    board.send()
    end_round(board)
    assert board.winner is None
    assert outputs[-1]["text/plain"].count("★ winner") == 1
    board.new_talk()
    assert board.replies == {}
    assert "Say hello." in outputs[-1]["text/plain"]


def test_what_a_callback_raises_is_shown_under_the_board(client: famnb.Client):
    """Nothing is sent without a prompt, and it is said where it can be seen."""
    board = Board(client, MIXED)
    with pytest.raises(famnb.InvalidRequest, match="write a prompt"):
        board.send()
    receive(board, kind="send", prompt=" ")
    assert "write a prompt" in board._trouble
    assert board.replies == {}


def test_what_an_endpoint_cannot_carry_is_said_in_its_pane(client: famnb.Client, outputs: list[dict[str, str]]):
    """A setting that one of the endpoints has not is left out there, in words."""
    board = Board(client, [{"endpoint": name, "thinking": 64} for name in ("messages", "responses")], prompt="Hi")
    board.send()
    end_round(board)
    assert outputs[-1]["text/plain"].count("carried as the nearest reasoning effort") == 1


def test_before_the_first_round_the_panes_and_what_they_cannot_carry_are_named(client: famnb.Client):
    """In the output itself, all its text inert, so that nobody has to send a prompt to see what would be asked."""
    said = Board(
        client, {"<b>plain</b>": {"endpoint": "web"}, "thinker": {"endpoint": "web", "thinking": 64}}
    )._saved_bundle()
    assert "2 panes: <b>plain</b> | thinker" in said["text/plain"]
    assert "thinker: `thinking=64` is carried as" in said["text/plain"]
    assert "<b>" not in said["text/html"]


def test_a_file_saved_in_mid_round_says_where_the_answers_are(client: famnb.Client, outputs: list[dict[str, str]]):
    """The prompt and where to look; rounds before stay below."""
    board = Board(client, MIXED, prompt="First?")
    board.send()
    end_round(board)
    with famnb.serve(fault="stall=5", time_scale=0) as slow:
        board._client = famnb.Client(base_url=slow.url, api_key=slow.key, ledger=client.ledger)
        board.say("Second?")
        receive(board, kind="send", prompt="Third?")
        assert "not sent, since an answer is still being written" in board.describe()["state"]["trouble"]
        for form in outputs[-1].values():
            assert "Second?" in form
            assert "has what came of them" in form
            assert "First?" in form
        board.stop()
        end_round(board)
    assert "has what came of them" not in outputs[-1]["text/plain"]


def test_no_model_text_is_held_in_a_trait(client: famnb.Client):
    """Widget state may be saved in the notebook; what was streamed is not in it."""
    board = Board(client, MIXED, prompt="Hi")
    board.send()
    end_round(board)
    assert "simulated" not in str(board.get_state())


PAIR = {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro", "temperature": 0.7}}


def test_a_pane_that_is_asked_again_keeps_its_answers(client: famnb.Client, outputs: list[dict[str, str]]):
    """One of them is shown, saved, counted and gone on from; the others stay to be chosen."""
    board = Board(client, PAIR, prompt="My name is Ada.")
    board.send()
    first = end_round(board).replies["small"]
    board._columns[0].set_text("max_tokens", "3")
    board.ask_again("small")
    second = end_round(board).replies["small"]
    assert second.call_id != first.call_id
    assert "answer 2 of 2" in outputs[-1]["text/html"]
    receive(board, kind="version", column=board._columns[0].id, to=0)
    assert board.replies["small"] is first or board.replies["small"].call_id == first.call_id
    assert "answer 1 of 2" in outputs[-1]["text/plain"]
    assert list(board.frame()["call_id"]) == [first.call_id, board.replies["large"].call_id]
    board.show_version("small", 2)
    board.say("What is my name?")
    end_round(board)
    (_, answer, _) = board.replies["small"].request.body()["messages"]
    assert answer["content"] in (second.text, [{"type": "text", "text": second.text}])
    with pytest.raises(famnb.UnknownName, match="there is no answer 2 of this pane; it has 1"):
        board.show_version("small", 2)


def test_panes_are_named_and_moved_with_their_answers(client: famnb.Client, outputs: list[dict[str, str]]):
    """On the page, in the saved table, in `replies` and `frame()`; a name that another pane has is refused."""
    board = Board(client, PAIR, prompt="Say hello.")
    board.send()
    end_round(board).pin("large")
    receive(board, kind="rename", column=board._columns[1].id, text="  the  large one ")
    assert board.labels == ("small", "the large one")
    assert board.winner == "the large one"
    receive(board, kind="move", column=board._columns[1].id, to=0)
    assert list(board.replies) == ["the large one", "small"]
    assert list(board.frame()["variant"]) == ["the large one", "small"]
    assert list(board.frame()["winner"]) == [True, False]
    assert outputs[-1]["text/plain"].index("the large one") < outputs[-1]["text/plain"].index("small")
    cells = board.describe_state()["rounds"][0]["cells"]
    assert [cell["column"] for cell in cells] == [column.id for column in board._columns]
    with pytest.raises(famnb.InvalidRequest, match="there is a pane 'small' already"):
        board.rename("the large one", "small")
    board.rename("the large one", "")
    assert board.labels == ("messages · fam-2-5-pro · temperature=0.7", "small")


def test_what_is_set_for_all_panes_holds_where_one_has_nothing_of_its_own(client: famnb.Client):
    """By what each endpoint calls it; a pane's own text stays until it is given up, and is its own when edited."""
    board = Board(client, {**PAIR, "other": {"endpoint": "responses"}})
    _, large, other = board._columns
    board.set_for_all(temperature=0.2, max_tokens=300)

    def values_of(name: str) -> list[object]:
        return [column.request("Hi").body().get(name) for column in board._columns]

    assert values_of("temperature") == [0.2, 0.7, 0.2]
    assert [*values_of("max_tokens")[:2], values_of("max_output_tokens")[2]] == [300, 300, 300]
    described = {column["label"]: column["own"] for column in board.describe()["columns"]}
    assert described == {"small": [], "large": [{"name": "temperature", "text": "0.7", "shared": "0.2"}], "other": []}
    receive(board, kind="share", column=large.id, field="temperature")
    receive(board, kind="set", column=other.id, field="max_output_tokens", text="50")
    receive(board, kind="share", field="temperature", text="0.4")
    receive(board, kind="share", field="max_tokens", text="")
    assert values_of("temperature") == [0.4, 0.4, 0.4]
    assert values_of("max_output_tokens")[2] == 50
    receive(board, kind="endpoint", column=other.id, name="messages")
    added = board.add({"model": "fam-2-5-pro"})
    assert board._find_column(added).request("Hi").body()["temperature"] == 0.4
    assert '"temperature": 0.4' in board.code
    receive(board, kind="share", field="temperature", text="3")
    assert "less than or equal to 2" in board.describe()["shared"]["faults"]["temperature"]
    with pytest.raises(famnb.InvalidRequest, match="no such field for all panes; there are max_tokens"):
        board.set_for_all(seed=3)
