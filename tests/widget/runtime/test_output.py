"""A reply as the value of a cell is its transcript, once."""

from pathlib import Path

import ipywidgets
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import famnb
from famnb.reply import Block, Reply
from famnb.service import Server
from famnb.widget import install, viewer
from famnb.widget.live.reply_pane import UNFINISHED
from famnb.widget.live.reply_view import ReplyView
from famnb.widget.runtime import output as shown
from tests.support.scripted_stream import ScriptedStream

REPLY = Reply(blocks=(Block(at=(0, 0), kind="text", text="the answer"),), status="completed", complete=True)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell that keeps what is displayed."""
    shell = InteractiveShell.instance()
    monkeypatch.setattr(shell, "display_pub", CapturingDisplayPublisher())
    monkeypatch.setattr(shown, "get_ipython", lambda: shell)
    install(shell)
    shell.user_ns["reply"] = REPLY
    yield shell
    InteractiveShell.clear_instance()


def bundles(shell: InteractiveShell) -> list[dict[str, str]]:
    return [output["data"] for output in shell.display_pub.outputs]


def test_a_reply_shows_itself_as_a_transcript_unless_its_cell_has_shown_it(shell: InteractiveShell):
    shell.run_cell("reply", store_history=True)
    assert [set(bundle) for bundle in bundles(shell)] == [{"text/html", "text/markdown", "text/plain"}]
    assert "the answer" in bundles(shell)[0]["text/html"]
    # Not by the cell that has shown it live.
    shell.user_ns["ask"] = lambda: shown.mark_as_shown(REPLY) or REPLY
    for source, count in (("ask()", 1), ("reply", 2)):
        shell.run_cell(source, store_history=True)
        assert len(bundles(shell)) == count


def test_an_error_that_the_live_view_shows_is_told_once(
    shell: InteractiveShell, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The view has its message, with what to do; the traceback has the line, and the message when asked again."""
    with famnb.Client(api_key="wrong", base_url=server.url, ledger=tmp_path / "l.sqlite") as client:
        client.engine.viewer = viewer
        shell.user_ns["client"] = client
        shell.run_cell("client.ask('Hi')", store_history=True)
    assert "FAM_API_KEY" in bundles(shell)[-1]["text/plain"]
    traceback = capsys.readouterr().out
    assert "client.ask('Hi')" in traceback
    assert traceback.rstrip().endswith("AuthenticationError: shown above")
    shell.run_cell("%tb")
    assert "AuthenticationError: 401" in capsys.readouterr().out


def test_an_output_knows_whether_a_widget_took_it(shell: InteractiveShell):
    """What goes into an Output widget cannot be replaced later."""
    box = ipywidgets.Output()
    free, taken = shown.Output(), shown.Output()
    free.show({"text/plain": "x"})
    box.msg_id = "what a kernel sets inside `with box:`"
    taken.show({"text/plain": "x"})
    box.msg_id = ""
    assert (free.captured, taken.captured) == (False, True)


def test_a_live_view_in_a_file_says_where_its_reply_is(shell: InteractiveShell):
    shown.Output().show(ReplyView(ScriptedStream().end(status="completed")).mime_bundle()[0])
    (bundle,) = bundles(shell)
    assert bundle["text/plain"] == UNFINISHED
    assert "application/vnd.jupyter.widget-view+json" in bundle
