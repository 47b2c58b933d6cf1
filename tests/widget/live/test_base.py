"""What the widgets share: a page is heard, and the front end's modules are joined."""

from __future__ import annotations

import inspect

from ipykernel.comm import comm

from famnb.widget.live.base import FRONT, BaseWidget, join_front


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
    assert "async function copyText" in join_front("inspector.js")
