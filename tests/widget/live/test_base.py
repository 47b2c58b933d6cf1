"""What the widgets share: a page is heard, and the front end's modules are joined."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from ipykernel.comm import comm
from ipywidgets import Widget

from famnb.widget.live import base
from famnb.widget.live.base import FRONT, BaseWidget, join_front
from famnb.widget.live.live_view import LiveView


def test_what_the_page_says_is_heard_where_the_page_says():
    """The kernel must not keep for its answer a subshell that the next reload of the page deletes."""

    class Comm:
        kernel = comm_id = "of a kernel with subshells"
        sent = 0

        def on_msg(self, _callback: object) -> None:
            pass

        def send(self, **_message: object) -> None:
            self.sent += 1
            self._reply_subshell_id = "of the page that is gone"

    widget = BaseWidget()
    own = widget.comm
    widget.comm = page = Comm()
    widget.send({"kind": "text"})
    widget.send_state()
    assert page.sent == 2
    assert "_reply_subshell_id" not in vars(page)
    # With its own channel back it can be closed, and does not stay among ipywidgets' open widgets.
    widget.comm = own
    widget.close()


def test_the_kernel_still_remembers_subshells():
    """Once ipykernel has no such attribute, `BaseWidget._send` can go."""
    assert "_reply_subshell_id" in inspect.getsource(comm.BaseComm)


def test_the_front_end_copies_in_one_way():
    """One module has the clipboard, and is joined with each that copies."""
    users = [path.name for path in FRONT.glob("*.js") if "navigator.clipboard" in path.read_text()]
    assert users == ["clipboard.js"]
    assert "async function copyText" in join_front("board.js")


def test_a_kernel_sends_each_front_end_once(monkeypatch: pytest.MonkeyPatch):
    """Widgets of a kind refer to one text, all of them to one style; where there is no such kernel each has its own."""

    class Other(BaseWidget):
        _esm = join_front("board.js")
        _css = FRONT / "style.css"

    alone = LiveView()
    assert alone._esm == join_front("live.js")
    assert alone._front_module is None
    monkeypatch.setattr(base, "get_ipython", lambda: SimpleNamespace(kernel=object(), config={}))
    first, second, other = LiveView(), LiveView(), Other()
    assert first._front_module is second._front_module
    assert first._front_module.text == alone._esm
    assert first._front_style is other._front_style
    assert other._front_module.text == join_front("board.js")
    assert first._front_style.text == alone._css
    assert first.get_state()["_front_module"] == f"IPY_MODEL_{first._front_module.model_id}"
    assert len(str(first.get_state())) < 4_000
    Widget.close_all()
    assert LiveView()._front_module.comm is not None
