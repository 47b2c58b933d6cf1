"""The board against the real client and the local service: checked before it sends, failing in place, saved."""

import re

import pytest

import famnb
from famnb.api import Client
from famnb.widget.board.board import Board
from tests.support.composers import receive, send_prompt, view_of
from tests.support.scripted_stream import ScriptedStream

MIXED = [
    {"model": "fam-mini"},
    {"endpoint": "messages", "thinking": 64},
    {"endpoint": "responses", "model": "fam-2-5-mini", "label": "small"},
]


def end_round(board: Board) -> Board:
    """Wait until a round is over; returns the board."""
    board.wait(60)
    return board


def press_pin(board: Board, label: str) -> None:
    """Have the page pin an answer of the latest round, or take its mark away."""
    latest = view_of(board).rounds[-1]
    (cell,) = (cell for cell in latest.cells if cell.label == label)
    receive(board, "pin", pane=None if cell.is_winner else cell.key)


def test_one_prompt_goes_to_every_pane(client: famnb.Client, outputs: list[dict[str, str]]):
    board = Board(client, MIXED, prompt="Say hello.", system="Be kind.")
    board.show_saved(captured=False)
    streams = board.submit()
    assert list(streams) == ["chat, fam-mini", "messages, fam-2-5-pro, thinking=64", "small"]
    end_round(board)
    assert [reply.status for reply in board.replies.values()] == ["completed"] * 3
    assert board.replies["messages, fam-2-5-pro, thinking=64"].request.body()["thinking"]["budget_tokens"] == 64
    for form in ("text/html", "text/markdown", "text/plain"):
        assert all(words in outputs[-1][form] for words in ("Say hello.", "Be kind.", "fam-mini", "small", "unknown"))
    assert outputs[-1]["text/html"].count('<th scope="col"') == 3


def test_the_frame_has_the_latest_round_in_the_order_of_the_panes(client: famnb.Client):
    board = Board(client, MIXED, prompt="Say hello.")
    assert board.frame().empty
    board.submit()
    end_round(board).submit()
    end_round(board).pin("small")
    frame = board.frame()
    assert list(frame["variant"]) == list(board.replies)
    assert list(frame["winner"]) == [False, False, True]
    assert list(frame["call_id"]) == [reply.call_id for reply in board.replies.values()]
    assert len(famnb.calls(client)) == 6


def test_names_of_models_are_panes(client: famnb.Client):
    assert list(Board(client, ["fam-2-5-pro", "fam-2-5-mini"]).labels) == ["fam-2-5-pro", "fam-2-5-mini"]


def test_a_pane_that_fails_leaves_the_others(server: famnb.service.Server, client: famnb.Client):
    endless = "resp_" + "0" * 32
    board = Board(
        client, [*MIXED, {"endpoint": "responses", "previous_response_id": endless, "label": "lost"}], prompt="Hi"
    )
    board.submit()
    end_round(board)
    assert [reply.status for reply in board.replies.values()] == ["completed"] * 3 + ["failed"]
    assert "is not stored for this key" in board.saved()["text/plain"]
    assert list(board.frame()["status"]) == ["completed"] * 3 + ["failed"]
    assert board.error == ""


@pytest.mark.parametrize(
    ("panes", "words"),
    [
        (
            [{"endpoint": "messages"}, {"model": "fam-mini", "temprature": 1}],
            r"variants\[1\]: .*did you mean 'temp",
        ),
        (
            {"warm": {"model": "fam-mini", "temperature": 3.0}},
            r"variants\['warm'\]: .*temperature.*less than or equal to 2",
        ),
        ([{"endpoint": "mesages"}], r"variants\[0\]: endpoint: no endpoint 'mesages'"),
        ([{"prompt": "x"}], r"variants\[0\]: prompt: every pane is asked the board's own prompt"),
        ([{"label": "a"}, {"label": "a"}], "'a' is the label of several panes"),
        ([7], r"variants\[0\]: expected fields of a request, or a request; got 7"),
        ("fam-mini", "variants: expected a list"),
        (7, "variants: expected a list"),
        ([], "variants: there are none"),
    ],
)
def test_settings_that_no_request_can_have_are_refused_before_any_call(client: famnb.Client, panes: object, words: str):
    with pytest.raises(famnb.InvalidRequest, match=words):
        Board(client, panes)


def test_without_variants_two_models_are_compared_and_what_is_no_client_is_refused(client: famnb.Client):
    assert Board(client).labels == ("fam-2-5-pro", "fam-2-5-mini")
    with pytest.raises(TypeError, match=r"expected a famnb.Client, such as famnb.connect\(\) gives; got 7"):
        Board(7, MIXED)


def test_a_second_send_while_streaming_sends_nothing():
    streams = []

    def start(request: famnb.MessagesRequest, *, labels: dict[str, str]) -> object:
        streams.append(ScriptedStream())
        return streams[-1]

    client = Client(base_url="http://127.0.0.1:9", api_key="k")
    client.engine.start = start
    board = Board(client, {"a": {}, "b": {}}, prompt="Hi")
    send_prompt(board, "Hi")
    send_prompt(board, "Hi")
    assert len(streams) == 2
    board.stop("b")
    assert [stream.stopped for stream in streams] == [False, True]
    board.stop()
    assert [stream.stopped for stream in streams] == [True, True]
    with pytest.raises(KeyError, match="there is no pane 'c'; there are 'a', 'b'"):
        board.stop("c")
    for stream in streams:
        stream.end(status="cancelled")
    end_round(board)


def test_the_winner_is_marked_and_its_words_are_the_measure(client: famnb.Client):
    board = Board(client, {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro"}}, prompt="Say hello.")
    board.submit()
    end_round(board)
    receive(board, "mark_differences", isMarked=True)
    assert "<ins" in board.saved()["text/html"]
    assert "differ" in board.saved()["text/plain"]
    press_pin(board, "large")
    assert board.winner == "large"
    marked = re.findall("<ins[^>]*>([^<]*)", board.saved()["text/html"])
    assert any("fam-2-5-mini" in words for words in marked)
    assert not any("fam-2-5-pro" in words for words in marked)
    assert all("★ winner" in text for text in board.saved().values())
    press_pin(board, "large")
    assert board.winner is None
    assert not any("★ winner" in text for text in board.saved().values())
    board.pin("small")
    board.submit()
    end_round(board)
    assert board.winner is None
    assert board.saved()["text/plain"].count("★ winner") == 1
    board.new_talk()
    assert board.replies == {}
    assert "Say hello." in board.saved()["text/plain"]


def test_a_file_saved_in_mid_round_says_where_the_answers_are(client: famnb.Client):
    board = Board(client, MIXED, prompt="First?")
    board.submit()
    end_round(board)
    with famnb.serve(fault="stall=5", time_scale=0) as slow:
        board.add({"client": famnb.Client(base_url=slow.url, api_key=slow.key), "label": "slow"})
        board.say("Second?")
        send_prompt(board, "Third?")
        assert "not sent, since an answer is still being written" in board.error
        for form in board.saved().values():
            assert "Second?" in form
            assert "was streaming here" in form
            assert "First?" in form
        board.stop()
        end_round(board)
    assert "was streaming here" not in board.saved()["text/plain"]


PAIR = {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro", "temperature": 0.7}}


def test_a_pane_that_is_asked_again_keeps_its_answers(client: famnb.Client):
    board = Board(client, PAIR, prompt="My name is Ada.")
    board.submit()
    first = end_round(board).replies["small"]
    board.pin("small")
    receive(board, "set_field", pane="p1", field="max_tokens", text="3")
    board.ask_again("small")
    second = end_round(board).replies["small"]
    assert second.call_id != first.call_id
    assert board.winner is None, "an answer was pinned, not the pane"
    assert "answer 2 of 2" in board.saved()["text/html"]
    receive(board, "show_version", pane="p1", number=1)
    assert (board.replies["small"].call_id, board.winner) == (first.call_id, "small")
    assert "answer 1 of 2" in board.saved()["text/plain"]
    assert list(board.frame()["call_id"]) == [first.call_id, board.replies["large"].call_id]
    board.show_version("small", 2)
    board.say("What is my name?")
    end_round(board)
    (_, answer, _) = board.replies["small"].request.body()["messages"]
    assert answer["content"] in (second.text, [{"type": "text", "text": second.text}])
    with pytest.raises(famnb.UnknownName, match="there is no answer 2 of this pane; it has 1"):
        board.show_version("small", 2)


def test_a_pane_is_found_by_a_label_that_looks_like_the_key_of_a_pane(client: famnb.Client):
    board = Board(client, {"p0": {"model": "fam-2-5-mini"}, "p1": {"model": "fam-2-5-pro"}})
    board.remove("p1")
    assert board.labels == ("p0",)


def test_what_is_set_for_all_panes_is_written_in_each(client: famnb.Client):
    board = Board(client, {**PAIR, "other": {"endpoint": "responses"}}, prompt="Hi")
    assert {field.key: field.text for field in view_of(board).shared}["temperature"] == "", "the panes differ"
    board.set_for_all(temperature=0.2, max_tokens=300)
    receive(board, "set_field", pane="p3", field="temperature", text="0.4")

    def sent(*names: str) -> list[object]:
        board.submit()
        bodies = [reply.request.body() for reply in end_round(board).replies.values()]
        return [next((body[name] for name in names if name in body), None) for body in bodies]

    assert sent("temperature") == [0.2, 0.2, 0.4]
    assert sent("max_tokens", "max_output_tokens") == [300, 300, 300]
    receive(board, "set_shared", field="max_tokens", text="")
    assert sent("max_tokens", "max_output_tokens") == [None, None, None]
    receive(board, "set_shared", field="temperature", text="3")
    (shared,) = (field for field in view_of(board).shared if field.key == "temperature")
    assert shared.text == "3"
    assert "less than or equal to 2" in shared.fault
    with pytest.raises(famnb.InvalidRequest, match="no such field for all panes; there are max_tokens"):
        board.set_for_all(thinking=3)


def test_a_past_call_is_loaded_into_the_box(client: famnb.Client):
    board = Board(client, PAIR)
    reply = client.ask("Why?", system="Be brief.", model="fam-mini")
    board.load(reply.call_id)
    assert (view_of(board).prompt.text, view_of(board).system) == ("Why?", "Be brief.")
    board.submit()
    assert [reply.request.model for reply in end_round(board).replies.values()] == ["fam-2-5-mini", "fam-2-5-pro"]
    with pytest.raises(KeyError):
        board.load("no such call")


def test_a_round_that_cannot_be_sent_to_all_leaves_nothing_behind(client: famnb.Client, server: famnb.service.Server):
    closed = famnb.Client(base_url=server.url, api_key=server.key)
    closed.close()
    board = Board(client, {"open": {}, "closed": {"client": closed}}, prompt="Hi")
    with pytest.raises(famnb.FamnbError, match="closed"):
        board.submit()
    assert view_of(board).rounds == ()
    board.remove("closed")
    board.submit()
    assert [reply.status for reply in end_round(board).replies.values()] == ["completed"]


def test_prompts_may_differ_by_pane(client: famnb.Client):
    """What is written for one pane is asked there once, in place of what all are asked; Retry asks it again."""
    board = Board(client, PAIR, system="Be kind.")
    receive(board, "set_own_prompt", pane="p2", text="In French?")
    send_prompt(board, "In English?")
    end_round(board)
    assert [prompts_of(board, label) for label in PAIR] == [["In English?"], ["In French?"]]
    assert [pane.prompt for pane in view_of(board).panes] == ["", ""]
    board.ask_again("large")
    end_round(board)
    assert prompts_of(board, "large") == ["In French?"]
    assert all(words in board.saved()["text/plain"] for words in ("In English?", "In French?"))
    send_prompt(board, "And?")
    end_round(board)
    assert [prompts_of(board, label)[::2] for label in PAIR] == [["In English?", "And?"], ["In French?", "And?"]]
    for pane in ("p1", "p2"):
        receive(board, "set_own_prompt", pane=pane, text=f"Only {pane}")
    assert view_of(board).prompt.has_conversation
    board.submit()
    end_round(board)
    assert [prompts_of(board, label)[-1] for label in PAIR] == ["Only p1", "Only p2"]


def prompts_of(board: Board, label: str) -> list[str]:
    """The texts of the messages that a pane has sent last."""
    return [message["content"][0]["text"] for message in board.replies[label].request.body()["messages"]]


def test_an_answer_is_edited_and_the_chat_goes_on_from_that(client: famnb.Client):
    """The answer as it came stays; what the other panes have said is their own."""
    board = Board(client, PAIR, prompt="Who are you?")
    board.submit()
    answer = end_round(board).replies["small"].text
    receive(board, "edit_answer", pane="p1", text="I am **Ada**.")
    assert board.read_answer("small") == "I am **Ada**."
    assert "edited by hand" in board.saved()["text/plain"]
    board.say("Who?")
    end_round(board)
    assert prompts_of(board, "small") == ["Who are you?", "I am **Ada**.", "Who?"]
    assert "Ada" not in str(prompts_of(board, "large"))
    board.new_talk()
    board.submit()
    end_round(board).edit_answer("small", "No.")
    board.show_version("small", 1)
    assert board.replies["small"].text == answer
    with pytest.raises(famnb.UnknownName, match="there is no pane 'none'"):
        board.edit_answer("none", "No.")
