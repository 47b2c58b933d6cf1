"""`%fam` and `%%fam` in a real IPython shell, against the local service; `tests/browser/` has them in a notebook."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import famnb
from famnb.client.live_call import Stream
from famnb.endpoints import ENDPOINTS
from tests.support.waiting import wait_until


@pytest.fixture
def shell(ipython: InteractiveShell, server: famnb.service.Server) -> Iterator[InteractiveShell]:
    """A shell with the extension loaded and a client named `client`."""
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        ipython.user_ns["client"] = client
        ipython.run_line_magic("load_ext", "famnb")
        yield ipython


def complete(shell: InteractiveShell, code: str) -> set[str]:
    """What the shell offers at the end of some code."""
    with provisionalcompleter():
        return {completion.text for completion in shell.Completer.completions(code, len(code))}


def run_failing(shell: InteractiveShell, capsys: pytest.CaptureFixture[str], code: str) -> str:
    """What a cell that fails prints."""
    assert not shell.run_cell(code).success
    printed = capsys.readouterr()
    return (printed.err or printed.out).strip()


def test_a_cell_is_a_prompt(shell: InteractiveShell):
    shell.run_cell(
        "%%fam --endpoint messages --model fam-2-5-mini --thinking 64 --max-tokens 300 --set top_p=0.5 --into answer\n"
        "Why is the sky blue?\nAnd the sea?"
    )
    reply = shell.user_ns["answer"]
    assert reply.thinking
    assert reply.request.body() == {
        "model": "fam-2-5-mini",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Why is the sky blue?\nAnd the sea?"}]}],
        "max_tokens": 300,
        "stream": True,
        "thinking": {"type": "enabled", "budget_tokens": 64},
        "top_p": 0.5,
    }


def test_a_line_is_a_prompt_too(shell: InteractiveShell):
    reply = shell.run_cell("""%fam -e web --system "Be kind." --no-stream What's up, "you"?""").result
    assert [message.content for message in reply.request.messages] == ["Be kind.", """What's up, "you"?"""]
    assert not reply.request.streams


def test_fields_of_any_kind_can_be_set(shell: InteractiveShell):
    shell.run_cell("""%fam -e responses --set 'text={"verbosity": "low"}' --set metadata='{"a": "b"}' --into r Hi""")
    body = shell.user_ns["r"].request.body()
    assert body["text"] == {"verbosity": "low"}
    assert body["metadata"] == {"a": "b"}


@pytest.mark.parametrize(
    "line", ["%fam -e web Why?", "x = 1\n%fam -e web Is it, why?", "%fam   -e web Is it 1?\nx = 1"]
)
def test_a_line_may_end_with_a_question_mark(shell: InteractiveShell, line: str):
    """IPython takes such a line for a wish to read about its last word; a magic that asks must not."""
    assert shell.run_cell(line).success
    (message,) = shell.user_ns["client"].last.request.messages
    assert message.content in line
    assert message.content.endswith("?")


def test_help_is_there_and_asks_nothing(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    for code in ("%fam", "%fam --help", "%fam -h What is a tide?", "%%fam --help\nHi"):
        assert shell.run_cell(code).success
        printed = capsys.readouterr().out
        assert "--max-tokens N" in printed
        assert "%%fam -e messages" in printed
    shell.run_cell("%fam?")
    assert "--max-tokens N" in capsys.readouterr().out
    assert shell.user_ns["client"].last is None


def test_an_interrupt_keeps_what_had_come(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    with famnb.serve(fault="stall=5", time_scale=0) as slow:
        ledger = shell.user_ns["client"].ledger
        shell.user_ns["other"] = other = famnb.Client(base_url=slow.url, api_key=slow.key, ledger=ledger)
        other.engine.viewer = press_stop
        assert not shell.run_cell("%fam --using other --into r Hi").success
    assert "Stopped." in capsys.readouterr().out
    assert shell.user_ns["r"].status == "cancelled"
    assert shell.user_ns["r"].text
    assert famnb.calls(ledger)["status"].tolist() == ["cancelled"]
    assert shell.run_cell("%fam Hi").success


@contextlib.contextmanager
def press_stop(stream: Stream) -> Iterator[None]:
    """Do what a kernel does when its stop button is pressed, as soon as there is some text."""

    def press() -> None:
        wait_until(lambda: stream.reply.text)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    yield


def test_variables_are_filled_in(shell: InteractiveShell):
    shell.user_ns["city"] = "Oslo"
    shell.run_cell('%%fam -e web --into r\nIn {city}: {"json": {}} {unknown} $HOME')
    assert shell.user_ns["r"].request.messages[0].content == 'In Oslo: {"json": {}} {unknown} $HOME'
    shell.run_cell("%fam -e web --raw --into r In {city}")
    assert shell.user_ns["r"].request.messages[0].content == "In {city}"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("%fam --endpoint mesages Hi", "invalid choice: 'mesages'"),
        ("%fam --endpoint web --model gpt Hi", "UsageError: InvalidRequest: WebChatRequest: model"),
        ("%fam --thinking many Hi", "invalid int value: 'many'"),
        ("%fam -e web --set temperature=3 Hi", "temperature: input should be less than or equal to 2, got 3"),
        ("%fam -e web --set temprature=1 Hi", "did you mean 'temperature'?"),
        ("%fam --set temperature Hi", "expected FIELD=VALUE"),
        ('%fam --system "open Hi', "a quote is not closed"),
        ("%fam --into 2x Hi", "'2x' is no name"),
        ("%fam --using nobody Hi", "'nobody' is no famnb.Client"),
        ("%%fam -e web Hi\nthere", "the prompt belongs into the cell"),
        ("%%fam -e web\n  \n", "the cell is empty"),
        ("%fam --thinking 0 Hi", "thinking: expected a number of tokens"),
        ("%fam --set labels=1 Hi", "--set: labels is no field of a request"),
        ("%fam --modle fam-mini Hi", "there is no option --modle"),
        ("%fam --temperature=0.5 Hi", "there is no option --temperature; a field of the request is --set FIELD=VALUE"),
        ("%fam --into for Hi", "'for' is no name"),
    ],
)
def test_a_mistake_is_one_clear_line(shell, capsys, code, message):
    printed = run_failing(shell, capsys, code)
    assert message in printed
    assert "Traceback" not in printed
    assert len(printed.splitlines()) == 1


def test_a_failed_call_leaves_its_reply(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    with famnb.serve(time_scale=0, fault="status=500") as broken:
        shell.user_ns["other"] = famnb.Client(base_url=broken.url, api_key=broken.key, retries=famnb.Retries(tries=1))
        printed = run_failing(shell, capsys, "%fam --using other --into r Hi")
    assert printed.startswith("UsageError: ServerError: 500")
    assert shell.user_ns["r"].status == "failed"


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("%%fam --endpoint m", {"messages"}),
        ("%fam -e ", {*ENDPOINTS}),
        ("%%fam --model ", {"fam-mini", "fam-2-5-pro", "fam-2-5-mini"}),
        ("%%fam --endpoint web --model fam-", {"fam-2-5-pro", "fam-2-5-mini"}),
        ("%fam --th", {"--thinking"}),
        ("%fam -e web --set tool", {"tools=", "tool_choice="}),
        ("%fam --using cl", {"client"}),
    ],
)
def test_options_are_completed(shell: InteractiveShell, code: str, offered: set[str]):
    assert complete(shell, code) == offered


def test_other_code_is_completed_as_ever(shell: InteractiveShell):
    shell.run_line_magic("reload_ext", "famnb")
    shell.user_ns["endpoint_list"] = []
    # Its files of a cache are those of all processes, and one that is being written reads as an error.
    shell.Completer.use_jedi = False
    assert "endpoint_list" in complete(shell, "endpoint_l")
    assert len(shell.Completer.custom_matchers) == 1
