"""The errors: one tree, each of which survives the way between processes, and shows itself in few lines."""

import contextlib
import copy
import io
import pickle
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import famnb
from famnb import errors
from famnb.errors import FamnbError, Interrupted, ParseError, RateLimitError, StreamError
from famnb.reply import Block, Reply
from famnb.service import Server
from tests.support.exchanges import exchange, spoken
from tests.support.fault_server import Action, FaultServer


def tree(root: type[BaseException]) -> list[type[BaseException]]:
    """A class and all that are derived from it."""
    return [root, *(error for child in root.__subclasses__() for error in tree(child))]


def test_the_tree_is_the_one_that_is_drawn():
    drawn, above = {}, list[str]()
    for line in (errors.__doc__ or "").splitlines():
        name = line.strip("│├└─ ").partition(" ")[0]
        if isinstance(getattr(errors, name, None), type) or name == "KeyboardInterrupt":
            depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
            above = [*above[:depth], name]
            drawn[name] = above[depth - 1] if depth else ""
    module = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    assert {kind.__name__ for kind in module} == drawn.keys() - {"KeyboardInterrupt"}
    parents = {kind.__name__: kind.__bases__[0].__name__ for kind in module if kind is not FamnbError}
    assert parents == {name: parent for name, parent in drawn.items() if parent}


SAMPLES = [
    *(kind("what happened") for kind in tree(FamnbError) if kind is not ParseError),
    Interrupted("what happened"),
    RateLimitError("slow down", status=429, retry_after=3.0, body={"error": "slow down"}),
    StreamError("the engine stopped", type="server_error", code="e1"),
    ParseError("no Trip", reason="invalid", partial={"city": "Oslo"}),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("carry", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
def test_an_error_survives_being_carried(carry, error):
    """Words, fields and the partial reply: a pool of processes hangs on an error that it cannot unpickle."""
    error.reply = exchange(spoken("Hel")).reply
    carried = carry(error)
    assert (type(carried), str(carried)) == (type(error), str(error))
    assert vars(carried) == vars(error)


@pytest.fixture(scope="module")
def limiter() -> Iterator[Server]:
    """A service that answers every call with 429."""
    with famnb.serve(time_scale=0, fault="status=429") as running:
        yield running


@pytest.fixture
def shell(ipython: InteractiveShell, server: Server, limiter: Server, tmp_path: Path) -> Iterator[InteractiveShell]:
    """IPython with a client of the local service, and one whose key is wrong."""
    ledger, once = tmp_path / "ledger.sqlite", famnb.Retries(tries=1)
    with (
        famnb.Client(base_url=server.url, api_key=server.key, ledger=ledger, retries=once) as client,
        famnb.Client(base_url=server.url, api_key="another-key", ledger=ledger, retries=once) as stranger,
        FaultServer([Action.STALL]) as silent,
    ):
        awaited = famnb.AsyncClient(base_url=server.url, api_key=server.key, ledger=ledger)
        ipython.user_ns |= {
            "famnb": famnb,
            "client": client,
            "stranger": stranger,
            "awaited": awaited,
            "ledger": ledger,
        }
        ipython.user_ns |= {"limiter": limiter, "silent": silent, "once": once}
        yield ipython


def show_failure(shell: InteractiveShell, code: str) -> list[str]:
    """The lines that a cell which fails shows, without colours."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        assert not shell.run_cell(code, store_history=True).success
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).strip("\n").splitlines()


MISTAKES = {
    "client.ask('Hi', modle='fam-mini')": "InvalidRequest: modle: no endpoint has such a field; did you mean 'model'?",
    "client.ask('Hi', aprove=print)": "InvalidRequest: aprove: no endpoint has such a field; did you mean 'approve'?",
    "client.ask('Hi', endpoint='mesages')": "InvalidRequest: endpoint: no endpoint 'mesages'; expected one of chat, ",
    "client.ask('Hi', model='fam-2-5-mega')": "InvalidRequest: ChatRequest: model: expected `fam-mini` or ",
    "famnb.compose('chat', 'Hi', temprature=1)": "InvalidRequest: temprature: no endpoint has such a field; did you ",
    "famnb.MessagesRequest(model='fam-2-5-pro')": "InvalidRequest: MessagesRequest: messages: required, but missing",
    "client.ask('Hi', temperature=9)": "InvalidRequest: MessagesRequest: temperature: input should be less than or ",
    "famnb.Client(base_url=client.base_url, api_key='k')": "InvalidArgument: base_url: expected an address such as https://api.",
    "famnb.calls(ledger, definition='mine')": "InvalidRequest: definition: 'mine' is not one of famnb, vllm, ",
    "famnb.Experiment(['a'], repeat=2, name='x')": "InvalidRequest: repeat: no endpoint has such a field; did you mean",
    "famnb.Composr": "UnknownName: famnb has no 'Composr'; it has ",
    "client.ledger.call('nope')": "UnknownName: no call 'nope' in ",
    "client.send('Hi')": "InvalidRequest: request: expected a ChatRequest, ",
    "stranger.ask('Hi')": "AuthenticationError: 401: ",
    "famnb.Client(base_url=limiter.url, api_key=limiter.key, retries=once).ask('Hi')": "RateLimitError: 429: ",
    "famnb.Client(base_url=silent.url, api_key='k', deadlines=famnb.Deadlines(total=0.2)).ask('Hi')": "TotalTimeout: ",
    "famnb.Client(base_url='http://127.0.0.1:9', api_key='k', retries=once).ask('Hi')": "ConnectError: no answer from ",
    "await awaited.ask('Hi', modle='fam-mini')": "InvalidRequest: modle: no endpoint has such a field; did you ",
}


@pytest.mark.parametrize(("code", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_shows_the_own_line_and_what_is_wrong(shell: InteractiveShell, code: str, message: str):
    location, line, empty, *described = show_failure(shell, f"number = 1\n{code}")
    assert (location, line, empty) == (f"Cell In[{shell.execution_count - 1}], line 2", f"----> 2 {code}", "")
    assert described[0].startswith(message)
    assert len(described) <= 5


@pytest.mark.parametrize(
    "code",
    [
        "famnb.Client(base_ulr='http://a', api_key='k')",
        "famnb.Deadlines(base_ulr=3)",
        "famnb.calls(base_ulr='fam-mini')",
        "famnb.plot.latency(famnb.calls(ledger), base_ulr='x')",
        "famnb.Composer(client, base_ulr='chat')",
        "client.send(base_ulr='x')",
    ],
)
def test_an_unknown_keyword_is_a_type_error_at_the_own_line(shell: InteractiveShell, code: str):
    lines = show_failure(shell, code)
    assert f"----> 1 {code}" in lines
    assert lines[-1].startswith("TypeError: ")
    assert "'base_ulr'" in lines[-1]
    assert not [line for line in lines if line.startswith("File ")]


def test_the_line_shown_is_the_innermost_of_the_callers_own(shell: InteractiveShell):
    code = "import functools\ndef ask(_, prompt):\n    client.ask(prompt, modle='x')\n\nfunctools.reduce(ask, 'ab')"
    assert show_failure(shell, code)[:2] == ["Cell In[1], line 3", "----> 3 client.ask(prompt, modle='x')"]


def test_verbose_mode_shows_the_whole_traceback(shell: InteractiveShell):
    assert len(show_failure(shell, "client.ask('Hi', modle='fam-mini')")) == 4
    shell.run_cell("%xmode Verbose")
    full = "\n".join(show_failure(shell, "client.ask('Hi', modle='fam-mini')"))
    shell.run_cell("%xmode Context")
    assert "endpoints.py" in full
    assert full.rstrip().splitlines()[-1].startswith("InvalidRequest: modle: ")


def test_a_long_message_is_cut_where_it_is_shown():
    error = errors.ServerError("\n".join(map(str, range(40))), status=500)
    assert error._render_traceback_() == ["ServerError: 500: 0", "1", "2", "3", "… and 36 more lines in str(error)"]
    assert str(error).endswith("39")


HOSTILE = "red \x1b[31m \x1b]0;title\x07 over\rwritten \x9b1m \u202etxt\nnext"
SHOWN = r"red \x1b[31m \x1b]0;title\x07 over\rwritten \x9b1m \u202etxt" + "\nnext"


@pytest.mark.parametrize(
    "error", [errors.StreamError(HOSTILE), errors.ServerError(HOSTILE), errors.FamnbError(HOSTILE)]
)
def test_what_acts_on_a_terminal_is_shown_as_an_escape(error: errors.FamnbError):
    shown = [str(error), *traceback.format_exception(error)]
    assert all(SHOWN in text and "\x1b" not in text and "\r" not in text for text in shown)
    assert "\x1b" not in repr(error)
    assert error.args == (HOSTILE,)


def test_a_reply_shows_no_control_characters():
    shown = repr(Reply(model=HOSTILE, finish_reason=HOSTILE, blocks=(Block((0, 0), "text", HOSTILE),), endpoint="chat"))
    assert not set(shown) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}
