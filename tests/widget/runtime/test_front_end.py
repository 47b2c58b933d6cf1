"""How the front end reaches a page, and the page the kernel."""

import inspect
from types import SimpleNamespace

import pytest
from ipykernel.comm import comm
from ipywidgets import Widget

from famnb.widget.live.reply_view import ReplyView
from famnb.widget.runtime import tool
from tests.support.scripted_stream import ScriptedStream


def test_a_kernel_sends_each_front_end_once(stream: ScriptedStream, monkeypatch: pytest.MonkeyPatch):
    """Tools of a kind refer to one text, all of them to one style; where there is no such kernel each has its own."""
    alone = ReplyView(stream)
    assert "const MODULES = [[" in alone._esm
    monkeypatch.setattr(tool, "get_ipython", lambda: SimpleNamespace(kernel=object(), config={}))
    first, second = ReplyView(stream).get_state(), ReplyView(stream).get_state()
    assert first["_modules"] == second["_modules"]
    assert first["_style"] == second["_style"]
    assert len(str(first)) < 4_000
    Widget.close_all()
    assert ReplyView(stream).get_state()["_modules"] != first["_modules"]


def test_messages_of_the_page_are_received_in_the_subshell_of_the_page(stream: ScriptedStream):
    class Comm:
        kernel = comm_id = "of a kernel with subshells"

        def __init__(self) -> None:
            self.sent: list[str] = []

        def on_msg(self, _callback: object) -> None:
            pass

        def send(self, data: dict[str, object], **_message: object) -> None:
            self.sent.append(str(data["method"]))
            self._reply_subshell_id = "of the page that is gone"

        def close(self) -> None:
            pass

    page = Comm()
    # From its beginning: ipywidgets lists a widget under each channel that it had, and only closes it under the last.
    view = ReplyView(stream, comm=page)
    page.sent.clear()
    view.send({"kind": "text"})
    view.send_state()
    # Messages of the flusher may come between them.
    assert {"custom", "update"} <= set(page.sent)
    assert "_reply_subshell_id" not in vars(page)
    # Not one of ipywidgets' open widgets any more.
    view.close()


def test_the_kernel_still_remembers_subshells():
    """Once ipykernel has no such attribute, `BaseTool._send` can go."""
    assert "_reply_subshell_id" in inspect.getsource(comm.BaseComm)
