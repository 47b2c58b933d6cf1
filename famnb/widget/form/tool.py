"""The base class of tools whose form is sent, the Composer and the Board: the prompt's box and what becomes of it."""

from __future__ import annotations

import csv
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import traitlets

from famnb.client.client import BaseClient
from famnb.errors import InvalidArgument, InvalidRequest
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.request import Request
from famnb.secret_patterns import mask_keys
from famnb.widget.form.draft import MAX_VARIABLE_ROWS, PromptBox, find_variables
from famnb.widget.form.hints import Estimate, RequestEstimator
from famnb.widget.form.images import image_from_url
from famnb.widget.form.views import CodeView, PictureView, PromptBoxView, VariablesView
from famnb.widget.html import transcript
from famnb.widget.html.page import PageSection, page_html, write_page
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.tool import RELOADED, BaseTool

_STILL_ANSWERING = "prompt: it was not sent, since an answer is still being written; send it again once that has ended"
ValueT = TypeVar("ValueT")
SharedT = TypeVar("SharedT", bound=msgspec.Struct)


class Computed(traitlets.TraitType[ValueT, ValueT]):
    """A trait whose value is computed whenever it is read; `FormTool.notify` calls its observers."""

    def __init__(self, function: Callable[[Any], ValueT]) -> None:
        super().__init__(read_only=True, help=function.__doc__)
        self._function = function
        self.__doc__ = function.__doc__

    def get(self, obj: Any, cls: Any = None) -> ValueT:  # noqa: ARG002 - traitlets gives the class as well
        """Return the value."""
        return self._function(obj)


class FormTool(BaseTool):
    """A tool with a form that is sent: traits that are computed, the prompt's box, names that are ipywidgets' own."""

    def __init__(self, client: BaseClient, box: PromptBox, *, tools_below: int = 1) -> None:
        """`tools_below` is how many tools it can open below itself."""
        self._client, self._box = client, box
        ledger = getattr(client, "ledger", None)
        self._ledger = ledger if isinstance(ledger, Ledger) else None
        self._estimator = RequestEstimator(self._ledger)
        self._idle = threading.Event()
        """Set while no answer is being written."""
        self._idle.set()
        self._earlier: list[tuple[str, Bundle]] = []
        """The chats before the one in view as output, with their titles."""
        self._controls: Any = None
        """What the page shows of the form; None if it has to be made anew."""
        self._shown_code: CodeView | None = None
        """None if it has to be written anew."""
        self.below = [(Output(), Output()) for _ in range(tools_below)]
        """Where the tools that it opens are shown, and what is saved of each."""
        super().__init__()

    # What a tool defines

    def send_box(self) -> None:
        """Send what the prompt's box holds; raises InvalidRequest if it cannot be sent."""
        raise NotImplementedError

    def chat_output(self) -> tuple[str, Bundle] | None:
        """Return the chat in view as output, with a title; None if nothing has been said."""
        raise NotImplementedError

    def empty_output(self) -> Bundle:
        """Return the output before anything was said."""
        raise NotImplementedError

    def clear_chat(self) -> None:
        """Have no chat in view, so that the next prompt begins another one."""
        raise NotImplementedError

    def share(self) -> msgspec.Struct | None:
        """Return what a file holds of it, by which it can be opened again; None if it can only be read."""
        raise NotImplementedError

    # What both need

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being written; nothing else is sent meanwhile."""
        return not self._idle.is_set()

    def saved(self) -> Bundle:
        chat = self.chat_output()
        chats = [*self._earlier, *([chat] if chat else [])]
        return transcript.stack_bundles(chats) if chats else self.empty_output()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to one HTML file, replacing it if it exists; return its path. `famnb.open` goes on with it.

        The file loads nothing and runs nothing, and what looks like a key is masked. A Board whose panes have clients
        of their own can only be read. Raises InvalidRequest for a chat in which nothing has been answered yet, OSError
        where it cannot be written, LedgerError if the ledger cannot be read.
        """
        with self.lock:
            shared, chat = self.share(), self.chat_output()
            html, title = mask_keys(self.saved()["text/html"]), mask_keys(chat[0] if chat else "nothing asked yet")
        head = SafeHtml("<p>{}</p><h1>{}</h1>").format(type(self).__name__, title)
        data = b"" if shared is None else msgspec.json.encode(shared)
        return write_page(path, page_html(title, head, [PageSection("Answers", SafeHtml(html))], data=data))

    def form_changed(self) -> None:
        """Have the page show what the form holds now."""
        self._controls = self._shown_code = None
        self.refresh()
        self.notify("request")

    def show_saved(self, *, captured: bool) -> None:
        # Between the widget and its saved output is the place for what it opens.
        for output in (output for pair in self.below for output in pair if not captured):
            output.show({"text/plain": ""})
        super().show_saved(captured=captured)

    def show_below(self, tool: BaseTool) -> None:
        """Show a tool in the first place below, if the page can."""
        if self.below[0][0].can_be_replaced:
            tool.show_in(*self.below[0])

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

    def send(self, content: Any = None, buffers: Any = None) -> None:
        """Send a message to the page, as every widget does."""
        if content is None:
            raise InvalidArgument(f"send: a {type(self).__name__} sends what its form holds by submit()")
        super().send(content, buffers)

    def find_request(self, call: Request | Reply | RecordedCall | str) -> Request:
        """Return the request itself, or that of a reply, of a recorded call, or of a call's id.

        Raises InvalidRequest for a reply without a request, KeyError for a call that is not in the client's ledger.
        """
        if isinstance(call, str):
            call = (self._ledger or Ledger()).call(call)
        request = call if isinstance(call, Request) else call.request
        if request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        return request

    def view_box(
        self,
        estimate: Estimate,
        *,
        fault: str,
        has_conversation: bool,
        remarks: tuple[str, ...],
        has_answers: bool,
    ) -> PromptBoxView:
        """Return the prompt's box; of a page that was reloaded, the remarks say so if there are answers."""
        reload = RELOADED.format(what="these answers", tool=f"the {type(self).__name__}")
        return PromptBoxView(
            text=self._box.prompt,
            pictures=tuple(
                PictureView(key=str(index), label=picture.description, url=picture.url if picture.is_upload else "")
                for index, picture in enumerate(self._box.pictures)
            ),
            estimate=estimate.text,
            estimate_help=estimate.help,
            fault=fault,
            has_conversation=has_conversation,
            remarks=(*remarks, *((reload,) if has_answers and self.reloaded else ())),
            variables=VariablesView(
                names=find_variables(self._box.prompt, self._box.system),
                rows=tuple(self._box.rows),
                row=self._box.row,
            ),
        )

    def on_reload(self) -> None:
        self.form_changed()

    # What the page asks for

    @intent
    def new_talk(self) -> None:
        """Put the chat in view among the earlier ones, so that the next prompt begins another; not while busy.

        What was said stays in the saved output.
        """
        with self.lock:
            if not self.is_busy:
                chat = self.chat_output()
                self._earlier += [chat] if chat else []
                self.clear_chat()

    @intent
    def send_prompt(self, prompt: str) -> None:
        """Go on with a prompt. It comes along, since an edit of it may not have been sent."""
        if self.is_busy:
            # The page sends nothing meanwhile; if it missed that an answer has begun, its prompt goes back to its box.
            raise InvalidRequest(_STILL_ANSWERING)
        self.set_prompt(prompt)
        self.send_box()
        self._box.prompt, self._box.pictures = "", ()
        self.form_changed()

    @intent
    def set_prompt(self, text: str) -> None:
        """Write the prompt."""
        # A text area knows only "\n", so a prompt that differs in nothing but its line ends is kept.
        if text != "\n".join(self._box.prompt.replace("\r\n", "\n").split("\r")):
            self._box.prompt = text
            self.form_changed()

    @intent
    def set_rows(self, rows: list[dict[str, str]], row: int) -> None:
        """Write the values of the variables, and which row of them is sent."""
        self._box.rows, self._box.row = rows[:MAX_VARIABLE_ROWS], row
        self.form_changed()

    @intent
    def paste_rows(self, text: str, row: int, name: str) -> None:
        """Fill the table, from the cell of a variable on, with what was copied from a sheet or a CSV file."""
        lines = list(csv.reader(io.StringIO(text, newline=None), delimiter="\t" if "\t" in text else ","))
        names = find_variables(self._box.prompt, self._box.system)
        head = [cell.strip().strip("{}") for cell in lines[0]]
        # Names of variables as the head say which columns are meant.
        has_head = not {*head}.isdisjoint(names)
        columns, lines = (head, lines[1:]) if has_head else (names[names.index(name) :], lines)
        rows = [*self._box.rows, *({} for _ in range(row + len(lines) - len(self._box.rows)))]
        for number, cells in enumerate(lines, row):
            values = {column: cell.strip() for column, cell in zip(columns, cells, strict=False)}
            rows[number] = {**rows[number], **{column: values[column] for column in names if column in values}}
        self.set_rows(rows, self._box.row)

    @intent
    def add_image(self, url: str, name: str = "") -> None:
        """Add an image to the prompt, by its address or as a data URL."""
        self._box.pictures = (*self._box.pictures, image_from_url(url, name=name))
        self.form_changed()

    @intent
    def remove_image(self, image: int) -> None:
        """Remove the image of that index."""
        self._box.pictures = tuple(other for index, other in enumerate(self._box.pictures) if index != image)
        self.form_changed()


def read_shared(data: bytes, kind: type[SharedT]) -> SharedT:
    """Return what a file holds of a tool; raises InvalidRequest if it is damaged."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"the file is damaged: its {kind.__name__} cannot be read ({error})") from None
