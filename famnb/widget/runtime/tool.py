"""The base class of every tool: state goes down to the page as views and patches, intents come up.

    view() ──► diff ──► {"kind": "patch", "seq": 7, "patch": …, "more": …} ──► page
    @intent ◄── {"kind": "intent", "id": 3, "name": …, "args": …} ◄── page ──► {"kind": "answer", "id": 3, …}

Messages that bring state are numbered. One may be dropped on the way, and what is sent before the page has loaded is
lost: a page that is new or misses a number says `ready` and gets the whole view. A page whose `ready` has not come,
because the kernel runs a cell, gets the whole view once a second anyway; and so does every page when a stream has
ended, since after the last message no gap would show that it was dropped.

Nothing of this is in a trait, so no text of a user or a model is saved as widget state.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import anywidget
import traitlets
from IPython import get_ipython
from ipywidgets import widget_serialization

from famnb.errors import FamnbError, InvalidArgument, InvalidRequest
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import MUTED_STYLE, Bundle
from famnb.widget.runtime.front_end import SharedText, read_loader, read_modules, read_style, share_text
from famnb.widget.runtime.intent import Intent, find_intents
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.view import Encoder, Growing, View

# Text appears to flow. jupyter_server 2.21 drops messages above 1,000 a second, over all widgets and cells: in
# bursts, one message a delta lost most of the text, and 20 a second lost none.
PERIOD_S = 0.05
"""Seconds from the end of one flush to the next."""
# Rare, since the whole view has all of the text, where a patch has only what is new.
UNHEARD_FLUSHES = 20
"""Flushes between two whole views to a page that never said `ready`: about a second."""

# A widget that was closed is gone for a page that is reloaded later, and one that is never closed stays in memory.
MAX_ENDED = 8
"""Tools whose outputs were replaced when they ended, and which stay open for a page that is reloaded."""
RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save {what} with the "
    "notebook, show {tool} in a new cell."
)
"""What a tool says whose saved output cannot follow it any more."""

# The class is what the style sheet hides for as long as the tool above shows the same.
_SAVED = SafeHtml(
    '<div class="famnb-saved">{}<style>'
    # In a notebook that is opened again, whose kernel does not know the widget, JupyterLab would say so as an error.
    ".jp-OutputArea:has(.famnb-saved) .jupyter-widgets:not(:has(*)){{display:none}}</style></div>"
)
_NOTE = SafeHtml(f'<p style="{MUTED_STYLE}">{{}}</p>')
_log = logging.getLogger(__name__)
ValueT = TypeVar("ValueT")


class Computed(traitlets.TraitType[ValueT, ValueT]):
    """A trait whose value is computed whenever it is read; `BaseTool.notify` calls its observers."""

    def __init__(self, function: Callable[[Any], ValueT]) -> None:
        super().__init__(read_only=True, help=function.__doc__)
        self._function = function
        self.__doc__ = function.__doc__

    def get(self, obj: Any, cls: Any = None) -> ValueT:  # noqa: ARG002 - traitlets gives the class as well
        """Return the value."""
        return self._function(obj)


class Source(Protocol):
    """What makes a view change by itself, such as a pane that follows a stream."""

    @property
    def is_running(self) -> bool:
        """Whether more can come."""

    def advance(self) -> bool:
        """Take in what has come since the last call, quickly; returns whether its part of the view has changed."""

    def finish(self) -> None:
        """Take in the end, once, which may take longer."""


class BaseTool(anywidget.AnyWidget):
    """A tool of the notebook: `view` says what its page shows, `@intent` methods are what the page may ask for.

    Whatever reads or changes what the view is made of holds `lock`; `refresh` then has the page brought up to date. The
    flusher does not wait for the lock, so that a tool which holds it for long holds up no other.
    """

    entry: ClassVar[str]
    """The module of the front end that draws the tool, such as "tools/inspector.js"."""
    note = "Run this cell to use it."
    """What stands in the place of the tool where there is no kernel, below what was saved."""
    intents: ClassVar[dict[str, Intent]]

    kernel_id = traitlets.Unicode(read_only=True).tag(sync=True)
    """The server's id of this kernel, by which the page can have it interrupted; empty if unknown."""
    blocking = traitlets.Bool(False).tag(sync=True)
    """Whether a cell waits for the tool, in which case the kernel may not hear the page."""
    reloaded = traitlets.Bool(False)
    """Whether the page was reloaded since the tool was shown; such a page does not follow changes of older outputs."""
    _modules = traitlets.Instance(SharedText, allow_none=True).tag(sync=True, **widget_serialization)
    """What loader.js imports; None where the loader itself has the modules."""
    _style = traitlets.Instance(SharedText, allow_none=True).tag(sync=True, **widget_serialization)
    _esm = ""
    _css = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.intents = find_intents(cls)

    def __init__(self, *, flusher: Flusher | None = None, **traits: Any) -> None:
        """Send nothing until it is shown; a subclass calls this once what `view` needs is there."""
        self.lock = threading.RLock()
        """Callbacks come on the main thread or an ipykernel subshell's, flushes on the flusher's."""
        self._flusher = flusher or FLUSHER
        self._sequence = 0
        """The number of the last message."""
        self._sent_view: View | None = None
        self._growing: dict[str, Growing] = {}
        """The growing values in the view that was sent last."""
        self.error = self._sent_error = ""
        """Why the last intent failed; empty if it did not."""
        self._is_stale = False
        self.is_shown = False
        self._has_page = False
        """Whether a page has said `ready`."""
        self._is_new = False
        """Whether another tool has opened it, and no page has shown it yet."""
        self._page = ""
        """The id of the page that last said `ready`, which a reload changes."""
        self._answered = 0
        """The number of the page's last intent that was answered."""
        self._sources: list[Source] = []
        self._on_end: Callable[[], object] | None = None
        self._flushes = 0
        """Flushes since `follow`."""
        self._is_broken = False
        """Whether drawing has failed, which is logged once."""
        self._output: Output | None = None
        """The output that holds what is saved; None before the tool is shown."""
        # With an IPython kernel there is Jupyter's widget manager: in JupyterLab, Notebook, VS Code, Colab, and where
        # their saved state is shown. marimo has none, and loads once by itself what is the same in several widgets.
        shell = get_ipython()
        if getattr(shell, "kernel", None) is not None:
            shared = {"_modules": share_text(read_modules(self.entry)), "_style": share_text(read_style())}
            traits |= {**shared, "_esm": read_loader(), "_css": ""}
        else:
            traits |= {"_esm": read_loader(self.entry), "_css": read_style()}
        super().__init__(**traits)
        # The server's id of a kernel is in the name of its connection file.
        path = str(shell.config.get("IPKernelApp", {}).get("connection_file", "")) if shell else ""
        match = re.search(r"kernel-(.+)\.json$", path)
        self.set_trait("kernel_id", match[1] if match else "")
        self.on_msg(lambda _widget, message, _buffers: self.receive(message))

    # What a tool defines

    def view(self) -> View:
        """Return everything that the page shows; called with the lock. Unchanged parts should be the same objects."""
        raise NotImplementedError

    def saved(self) -> Bundle:
        """Return what is left without a kernel, as ordinary output."""
        raise NotImplementedError

    def on_reload(self) -> None:
        """Called with the lock when the page turns out to have been reloaded."""

    # What a tool calls

    def refresh(self) -> None:
        """Have the page brought up to date soon: at the end of the intent that is carried out, or by the flusher."""
        self._is_stale = True
        if self.is_shown or self._has_page:
            self._flusher.add(self)

    def follow(self, sources: Sequence[Source], *, on_end: Callable[[], object] | None = None) -> None:
        """Have the flusher advance these sources until all of them have ended, then call `on_end`, without the lock."""
        with self.lock:
            self._sources = [*self._sources, *sources]
            self._on_end = on_end
            self._flushes = 0
            self._is_stale = True
        self._flusher.add(self)

    def show_error(self, error: Exception | None) -> None:
        """Show under the tool what went wrong, or take that away."""
        text = "" if error is None else sanitize.visible(_error_text(error))
        if text != self.error:
            self.error = text
            self.refresh()

    def notify(self, *names: str) -> None:
        """Tell observers of computed traits that they have changed; a request that is not valid is None to them."""
        for name in names:
            if not self._trait_notifiers.get(name):
                continue
            try:
                value = getattr(self, name)
            except InvalidRequest:
                value = None
            change = {"name": name, "old": None, "new": value, "owner": self, "type": "change"}
            self.notify_change(traitlets.Bunch(change))

    # What is sent

    @property
    def needs_flush(self) -> bool:
        """Whether the flusher has to come by again."""
        return bool(self._sources) or self._is_stale

    def flush(self) -> None:
        """Send what has changed; while something else holds the lock nothing is done, and the flusher comes again."""
        if not self.lock.acquire(blocking=False):
            return
        on_end = None
        try:
            self._advance()
        # A tool that cannot be drawn must keep neither its own streams from ending nor other tools from drawing.
        except Exception:
            if not self._is_broken:
                _log.warning("famnb: a widget cannot be drawn; its calls go on", exc_info=True)
            self._is_broken, self._is_stale = True, False
            if not any(source.is_running for source in self._sources):
                self._sources = []
        finally:
            if not self._sources:
                on_end, self._on_end = self._on_end, None
            self.lock.release()
        if on_end is not None:
            on_end()

    def _advance(self) -> None:
        """Send what the sources have added, then their ends, which take longer."""
        ended = [source for source in self._sources if not source.is_running]
        self._advance_sources()
        # In the first second each time: the page loads meanwhile, and what it is sent before is lost.
        is_view_due = not self._sources or self._flushes < UNHEARD_FLUSHES or self._flushes % UNHEARD_FLUSHES == 0
        self._flushes += 1
        if self._has_page:
            self._send_patch()
        elif is_view_due:
            self._send_view()
        for source in ended:
            source.finish()
            self._sources.remove(source)
            self._is_stale = True
            # The others have gone on, whose last words should not wait for the ends of all.
            self._advance_sources()
            if self._sources:
                self._send_patch()
        if ended and not self._sources:
            self._send_view()

    def _advance_sources(self) -> None:
        for source in self._sources:
            self._is_stale |= source.advance()

    def _send_patch(self) -> None:
        """Send what differs from what was sent last, if anything does."""
        if not self._has_page:
            return
        if self._sent_view is None:
            self._send_view()
            return
        message: dict[str, Any] = {}
        encoder = Encoder()
        if self._is_stale:
            self._is_stale = False
            view = self.view()
            delta = encoder.diff(self._sent_view, view)
            self._sent_view = view
            if delta is not None:
                message["patch"] = delta
        if self.error != self._sent_error:
            message["error"] = self._sent_error = self.error
        if more := {id: changes for id, growing in self._growing.items() if (changes := growing.changes())}:
            message["more"] = more
        if wholes := self._add_growing(encoder):
            message["growing"] = wholes
        if message:
            self._send_numbered("patch", message, encoder.buffers)

    def _send_view(self) -> None:
        """Send everything; a page that holds something else forgets it."""
        self._is_stale = False
        self._sent_view, self._sent_error = self.view(), self.error
        encoder = Encoder()
        view = encoder.encode(self._sent_view)
        self._growing = {}
        # An intent may be on its way, whose answer will come: the page goes on waiting for it.
        message = {
            "view": view,
            "error": self.error,
            "growing": self._add_growing(encoder),
            "answered": self._answered,
            "isNew": self._is_new,
        }
        # A page that loads meanwhile misses what is sent, and gets all of it with its `ready`.
        self._is_new &= not self._has_page
        self._send_numbered("view", message, encoder.buffers)

    def _add_growing(self, encoder: Encoder) -> dict[str, Any]:
        """Return the wholes of the growing values that the page does not have yet, which then follows them."""
        added = {id: growing for id, growing in encoder.growing.items() if id not in self._growing}
        self._growing |= added
        return {id: growing.whole() for id, growing in added.items()}

    def _send_numbered(self, kind: str, message: dict[str, Any], buffers: list[bytes]) -> None:
        self._sequence += 1
        self.send({"kind": kind, "seq": self._sequence, **message}, buffers or None)

    def _send(self, msg: Any, buffers: Any = None) -> None:
        # `_send` is private to ipywidgets (8.1): all messages and trait updates go through it, and
        # there is no public place for this.
        super()._send(msg, buffers)
        # `_reply_subshell_id` is private to ipykernel (7.4, comm/comm.py): each message that is sent sets it to
        # the subshell whose request is being handled, and the next message from the page is then handled by that one
        # instead of the one that the page asks for. A running cell keeps that subshell busy, and a reload of the page
        # deletes it: no message of the page would arrive any more. Other versions and kernels have no such attribute.
        if self.comm is not None:
            self.comm.__dict__.pop("_reply_subshell_id", None)

    # What comes from the page

    def receive(self, message: Any) -> None:
        """Take what the page sent: that it is ready, or an intent; anything else is an error under the tool."""
        match message:
            case {"kind": "ready", "page": str(page)}:
                self._greet(page)
            case {"kind": "intent", "id": int(id), "name": str(name), "args": dict(arguments)}:
                self._carry_out(id, name, arguments)
            case _:
                self.show_error(
                    InvalidArgument("the page sent what is neither an intent nor a sign that it is ready: reload it")
                )

    def _greet(self, page: str) -> None:
        """Send everything to a page that is new or has missed something."""
        with self.lock:
            self._has_page = True
            try:
                if self._page not in ("", page) and not self.reloaded:
                    self.reloaded = True
                    self.on_reload()
                if self._page != page:
                    self._page, self._answered = page, 0
                self._send_view()
            # ipywidgets would only log it, where nobody looks.
            except Exception as error:
                text = _error_text(error)
                self.send({"kind": "view", "view": None, "growing": {}, "error": text, "answered": self._answered})

    def _carry_out(self, id: int, name: str, arguments: dict[str, Any]) -> None:
        """Do what the page asks for, and answer: the page keeps what was pressed locked until then."""
        intent = self.intents.get(name)
        is_urgent = intent is not None and intent.is_urgent
        answer: dict[str, Any] = {"kind": "answer", "id": id, "ok": True}
        with contextlib.nullcontext() if is_urgent else self.lock:
            try:
                if intent is None:
                    raise InvalidArgument(f"the page asked for {name!r}, which {type(self).__name__} cannot do")
                value = intent.call(self, arguments)
                # A method that other cells call as well may return an object that JSON cannot hold.
                answer |= {"value": value} if isinstance(value, str) else {}
                self._is_stale |= not is_urgent
                self.show_error(None)
            # ipywidgets would only log it, where nobody looks.
            except Exception as error:
                answer["ok"] = False
                self.show_error(error)
            try:
                if not is_urgent and self._has_page:
                    # Before the answer, so that what was pressed is not unlocked on a page of before.
                    self._advance_sources()
                    self._send_patch()
            # Without an answer the page would stay locked.
            except Exception as error:
                self.show_error(error)
                self._sent_error = self.error
                self._send_numbered("patch", {"error": self.error}, [])
        self.send(answer)
        self._answered = id

    # What is shown and saved

    def update_saved(self) -> None:
        """Bring the saved output up to date, if this page can change it."""
        if self._output is not None and self._output.can_be_replaced and not self.reloaded:
            self._output.replace(self._saved_bundle())

    def show_saved(self, *, captured: bool) -> None:
        """Put the saved output below the tool; one inside an Output widget, `captured`, cannot be replaced later."""
        self._output = Output()
        if not captured:
            self._output.show(self._saved_bundle())

    def _saved_bundle(self) -> Bundle:
        bundle = self.saved()
        return {**bundle, "text/html": _SAVED.format(SafeHtml(bundle["text/html"]))}

    def _ipython_display_(self) -> None:
        with self.lock:
            self.reloaded, self._page, self.error = False, "", ""
            output = Output()
            output.show(self.mime_bundle()[0])
            # Before what is saved, which may take a while to draw.
            self._send_view()
            self.show_saved(captured=output.captured)

    def show_in(self, output: Output, saved: Output) -> None:
        """Show it in the place of an output of another tool, and what is saved in that of a second one."""
        with self.lock:
            self._is_new, self._output = True, saved
            output.replace(self.mime_bundle()[0])
            self.update_saved()

    def _repr_mimebundle_(self, **_options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.mime_bundle(self.saved())

    def mime_bundle(self, *saved: Bundle) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget to be shown, and for who has no kernel what is `saved` and how to get the widget back."""
        self.is_shown = True
        note = {"text/html": _NOTE.format(self.note), "text/plain": self.note, "text/markdown": ""}
        fallback = transcript.join_bundles([*saved, note])
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return {**data, **{kind: fallback[kind] for kind in ("text/html", "text/plain")}}, metadata


_ended: collections.deque[BaseTool] = collections.deque()


def keep_ended(tool: BaseTool) -> None:
    """Keep a tool open that has ended, and close the one that ended MAX_ENDED tools before it."""
    _ended.append(tool)
    while len(_ended) > MAX_ENDED:
        _ended.popleft().close()


class Flusher:
    """One thread that flushes every tool which has something to send, at a pace that page and server can follow."""

    def __init__(self, *, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._tools: list[BaseTool] = []
        self._tools_changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, tool: BaseTool) -> None:
        """Flush a tool until it has nothing more to send."""
        with self._tools_changed:
            if tool not in self._tools:
                self._tools.append(tool)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="famnb-flusher", daemon=True)
                self._thread.start()
            self._tools_changed.notify()

    def _run(self) -> None:
        while True:
            with self._tools_changed:
                self._tools_changed.wait_for(lambda: self._tools)
                tools = list(self._tools)
            for tool in tools:
                try:
                    tool.flush()
                # What a tool does at its end must not keep the others from drawing.
                except Exception:
                    _log.warning("famnb: what follows the calls of a widget has failed", exc_info=True)
            with self._tools_changed:
                # Under the lock, for which `add` waits: a tool may have become stale again since its flush.
                self._tools = [tool for tool in self._tools if tool.needs_flush]
            time.sleep(self._period_s)


FLUSHER = Flusher()
"""The one flusher of the process."""


def _error_text(error: Exception) -> str:
    # A message of famnb says what was wrong and what to do; that of another library may be as short as a key.
    return str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"
