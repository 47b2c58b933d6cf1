"""What the widgets share: a page is heard, and errors of callbacks are seen."""

from __future__ import annotations

import inspect
import threading

import ipywidgets as widgets
from ipykernel.comm import comm

from famnb.errors import InvalidRequest
from famnb.widget.live.base import FRONT, BaseWidget, guard_callbacks, join_front


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


def test_an_error_of_a_callback_is_shown():
    """An error of famnb as it says it, any other with its name; nothing of it is markup."""
    trouble = widgets.HTML()
    guard = guard_callbacks(threading.RLock(), trouble)

    def fail(error: Exception) -> None:
        raise error

    guard(lambda: fail(InvalidRequest("prompt: <b> is missing")))()
    assert ">prompt: &lt;b&gt; is missing<" in trouble.value
    guard(lambda: fail(KeyError("x")))()
    assert ">KeyError: &#x27;x&#x27;<" in trouble.value


def test_the_front_end_copies_in_one_way():
    """One module has the clipboard, and is joined with each that copies."""
    users = [path.name for path in FRONT.glob("*.js") if "navigator.clipboard" in path.read_text()]
    assert users == ["clipboard.js"]
    assert "async function copyText" in join_front("inspector.js")
