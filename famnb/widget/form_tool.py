"""The base class of tools whose form is sent, the Composer and the Board: the prompt's box, its table, its code."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from famnb.client.client import BaseClient
from famnb.errors import InvalidArgument, InvalidRequest, LedgerError
from famnb.formatting import ESTIMATE_MARK, format_count, format_usd
from famnb.record import Ledger, RecordedCall
from famnb.record.price_book import ceiling
from famnb.record.serialize import input_chars
from famnb.record.shared import SharedRecord
from famnb.record.token_estimates import NUMBERS, PRIOR, tokens_of_text
from famnb.reply import Reply
from famnb.request import Request
from famnb.secret_patterns import mask_keys
from famnb.widget.form.draft import MAX_VARIABLE_ROWS, PromptBox, find_variables
from famnb.widget.form.editor import Editor
from famnb.widget.form.images import image_from_url
from famnb.widget.form.python_code import experiment_name
from famnb.widget.html import transcript
from famnb.widget.html.page import PageSection, page_html, write_page
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.tool import RELOADED, BaseTool
from famnb.widget.runtime.view import View

if TYPE_CHECKING:
    from famnb.widget.experiment.matrix import Matrix


class PictureView(View, frozen=True):
    """An image of the prompt."""

    key: str
    label: str
    url: str
    """The address of its thumbnail; empty for a link, whose host would learn that it is looked at."""


class VariablesView(View, frozen=True):
    """The values of a prompt's variables."""

    names: tuple[str, ...] = ()
    rows: tuple[dict[str, str], ...] = ()
    row: int = 0
    """The index of the row that is sent."""


class PromptBoxView(View, frozen=True):
    """The box in which the next prompt is written."""

    text: str
    pictures: tuple[PictureView, ...]
    estimate: str
    """What sending it takes, in a few words; `estimate_help` says what that rests on."""
    estimate_help: str
    fault: str
    """Why it cannot be sent; empty if it can."""
    has_conversation: bool
    """Whether the settings hold what is sent without a prompt."""
    remarks: tuple[str, ...]
    variables: VariablesView = VariablesView()


class CodeView(View, frozen=True):
    """Code that repeats what is sent; without kinds there is but one."""

    kinds: tuple[str, ...]
    kind: str
    note: str
    html: SafeHtml
    is_cell: bool
    """Whether it can be run in a cell."""


class SharedTool(msgspec.Struct, frozen=True, tag_field="kind"):
    """What a file holds of a tool."""

    prompt: str
    rows: list[dict[str, str]]
    record: SharedRecord
    """The calls, which the other fields name by their ids."""


SharedT = TypeVar("SharedT", bound=SharedTool)


class FormTool(BaseTool):
    """A tool with a form that is sent, once or for each row of the values of its variables."""

    matrix: Matrix | None = None
    """The matrix that "Run all rows" has opened last."""

    def __init__(self, client: BaseClient, box: PromptBox, *, tools_below: int = 1) -> None:
        """`tools_below` is how many tools it can open below itself."""
        self._client, self._box = client, box
        ledger = getattr(client, "ledger", None)
        self._ledger = ledger if isinstance(ledger, Ledger) else None
        self._idle = threading.Event()
        """Set while no answer is being written."""
        self._idle.set()
        self._template = ""
        """The prompt with variables that was sent last."""
        self._earlier: list[tuple[str, Bundle]] = []
        """The chats before the one in view as output, with their titles."""
        self._controls: Any = None
        """What the page shows of the form; None if it has to be made anew."""
        self._has_code = False
        """Whether code that repeats what is sent is in view."""
        self.below = [(Output(), Output()) for _ in range(tools_below)]
        """Where the tools that it opens are shown, and what is saved of each."""
        super().__init__()

    # What a tool defines

    def submit(self) -> object:
        """Send what the form holds; raises InvalidRequest if it cannot be sent."""
        raise NotImplementedError

    def find_editor(self, pane: str) -> Editor:
        """Return the settings of a pane, if there are several."""
        raise NotImplementedError

    def chat_output(self) -> tuple[str, Bundle] | None:
        """Return the chat in view as output, with a title; None if nothing has been said."""
        raise NotImplementedError

    def clear_chat(self) -> None:
        """Have no chat in view, so that the next prompt begins another one."""
        raise NotImplementedError

    def share(self) -> SharedTool | None:
        """Return what a file holds of it, by which it can be opened again; None if it can only be read."""
        raise NotImplementedError

    def variants(self) -> dict[str, dict[str, Any]]:
        """Return the settings by which each row of values is asked, by their labels, as an experiment takes them."""
        raise NotImplementedError

    def write_code(self) -> tuple[str, CodeView]:
        """Return code that repeats what is sent, and what the page shows of it."""
        raise NotImplementedError

    # What both need

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being written; nothing else is sent meanwhile."""
        return not self._idle.is_set()

    def saved(self) -> Bundle:
        chat = self.chat_output()
        chats = [*self._earlier, *([chat] if chat else [])]
        empty = Section("note", "Answers appear here and are saved with the notebook.")
        return transcript.stack_bundles(chats) if chats else transcript.render([empty])

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
        data = b""
        if shared is not None:
            # The record is masked already, and its bytes are not to be changed.
            empty = msgspec.structs.replace(shared, record=SharedRecord(calls=()))
            masked = msgspec.json.decode(mask_keys(msgspec.json.encode(empty).decode()), type=type(shared))
            data = msgspec.json.encode(msgspec.structs.replace(masked, record=shared.record))
        return write_page(path, page_html(title, head, [PageSection("Answers", SafeHtml(html))], data=data))

    def form_changed(self) -> None:
        """Have the page show what the form holds now."""
        self._controls = None
        self.refresh()
        self.notify("request")

    def show_saved(self, *, captured: bool) -> None:
        # Between the widget and its saved output is the place for what it opens.
        for output in (output for pair in self.below for output in pair if not captured):
            output.show({"text/plain": ""})
        super().show_saved(captured=captured)

    def show_below(self, tool: BaseTool) -> None:
        """Show a tool in the first place below, if the page can."""
        if self.below[0][0].can_be_replaced and not self.reloaded:
            tool.show_in(*self.below[0])

    def send(self, content: Any = None, buffers: Any = None) -> None:
        """Send a message to the page, as every widget does."""
        if content is None:
            raise InvalidArgument(f"send: a {type(self).__name__} sends what its form holds by submit()")
        super().send(content, buffers)

    @property
    def past_calls(self) -> Ledger:
        """Where calls are looked up: the client's ledger, or else the default one."""
        return self._ledger or Ledger()

    def find_call(self, call: Request | Reply | RecordedCall | str) -> tuple[Request, Reply | None]:
        """Return what a request, a reply, a recorded call or a call's id asks, and the reply to it, if any.

        Raises InvalidRequest for a reply without a request, KeyError for a call that is not in the ledger.
        """
        call = self.past_calls.call(call) if isinstance(call, str) else call
        if isinstance(call, Request):
            return call, None
        if call.request is None:
            raise InvalidRequest("request: this reply does not know what was asked; give its call's id")
        return call.request, call.reply if isinstance(call, RecordedCall) else call

    def view_box(
        self,
        requests: Callable[[], Iterable[tuple[Request, BaseClient]]],
        *,
        fault: str,
        has_conversation: bool,
        remarks: tuple[str, ...],
        has_answers: bool,
    ) -> PromptBoxView:
        """Return the prompt's box; of a page that was reloaded, the remarks say so if there are answers.

        `requests` returns what sending it sends, by which client; it may raise InvalidRequest.
        """
        estimate, estimate_help = "", ""
        with contextlib.suppress(InvalidRequest, LedgerError):
            estimate, estimate_help = _estimate(self.past_calls, requests())
        reload = RELOADED.format(what="these answers", tool=f"the {type(self).__name__}")
        return PromptBoxView(
            text=self._box.prompt,
            pictures=tuple(
                PictureView(key=str(index), label=picture.description, url=picture.url if picture.is_upload else "")
                for index, picture in enumerate(self._box.pictures)
            ),
            estimate=estimate,
            estimate_help=estimate_help,
            fault=fault,
            has_conversation=has_conversation,
            remarks=(*remarks, *((reload,) if has_answers and self.reloaded else ())),
            variables=VariablesView(
                names=find_variables(self._box.prompt, self._box.system),
                rows=tuple(self._box.rows),
                row=self._box.row,
            ),
        )

    def view_code(self) -> CodeView | None:
        """Return the code, if it is in view."""
        return self.write_code()[1] if self._has_code else None

    def on_reload(self) -> None:
        self.form_changed()

    def run_rows(self) -> Matrix:
        """Send every row of the variables' values with every variant, each by itself; return the matrix of answers.

        It stands below the tool, and is its `matrix`. Its calls are those of an experiment, `matrix.experiment`, which
        a Board's `code` makes again, answers and grades included. Raises InvalidRequest if no row has all values.
        """
        # Here, since it loads pandas, which takes longer than the tool to be drawn.
        from famnb.experiment.experiment import BaseExperiment
        from famnb.widget.experiment.matrix import Matrix

        with self.lock:
            template, rows = self.table_of_values()
            if not rows:
                raise InvalidRequest(
                    "rows: none has a value for each variable yet; write a variable such as {city} in the prompt and "
                    "fill in the table"
                )
            if self._box.pictures or find_variables(self._box.system):
                raise InvalidRequest("rows: a matrix asks texts alone, with variables in the prompt alone")
            name = experiment_name(template)
            experiment = BaseExperiment(rows, self.variants(), template=template, name=name, client=self._client)
            self.matrix = Matrix(experiment, code=getattr(self, "code", ""))
            self.show_below(self.matrix)
            self.matrix.run()
            return self.matrix

    @intent
    def run_all_rows(self) -> None:
        """Send every row of the variables' values with every variant."""
        self.run_rows()

    def table_of_values(self) -> tuple[str, list[dict[str, str]]]:
        """Return the prompt with its variables, and the rows that have a value for each; none without a variable."""
        template = next(filter(find_variables, (self._box.prompt.strip(), self._template)), "")
        names = find_variables(template)
        rows = [{name: row.get(name, "") for name in names} for row in self._box.rows]
        return template, [row for row in rows if all(row.values())]

    # What the page asks for

    @intent
    def read_code(self) -> str:
        """Return the whole code, where the page has only the beginnings of images."""
        return self.write_code()[0]

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
            raise InvalidRequest(
                "prompt: it was not sent, since an answer is still being written; send it again once that has ended"
            )
        self.set_prompt(prompt)
        self.submit()
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
    def set_system(self, text: str, pane: str = "") -> None:
        """Write the system text of a pane, or the one for all that have none of their own."""
        (self.find_editor(pane) if pane else self._box).system = text
        self.form_changed()

    @intent
    def set_field(self, field: str, text: str, pane: str = "") -> None:
        """Write the text of a field."""
        self.find_editor(pane).set_text(field, text)
        self.form_changed()

    @intent
    def choose_endpoint(self, endpoint: str, pane: str = "") -> None:
        """Carry the settings over to another endpoint."""
        self.find_editor(pane).choose_endpoint(endpoint)
        self.form_changed()

    @intent
    def set_rows(self, rows: list[dict[str, str]], row: int) -> None:
        """Write the values of the variables, and which row of them is sent."""
        if len(rows) > MAX_VARIABLE_ROWS:
            raise InvalidRequest(f"rows: {len(rows)} are more than {MAX_VARIABLE_ROWS}; make an experiment of them")
        self._box.rows, self._box.row = rows, row
        self.form_changed()

    @intent
    def paste_rows(self, text: str, row: int, name: str) -> None:
        """Fill the table, from the cell of a variable on, with what was copied from a sheet or a CSV file."""
        lines = list(csv.reader(io.StringIO(text, newline=None), delimiter="\t" if "\t" in text else ","))
        names = find_variables(self._box.prompt, self._box.system)
        if not lines or name not in names or not 0 <= row < MAX_VARIABLE_ROWS:
            raise InvalidRequest(f"rows: the table has no row {row + 1} of {name!r}, or nothing was copied")
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


def _estimate(ledger: Ledger, requests: Iterable[tuple[Request, BaseClient]]) -> tuple[str, str]:
    """Return the input tokens of clients' requests and the most that they can cost, as far as known, and why."""
    counts: list[int | None] = []
    costs: list[Decimal | None] = []
    bases: list[str] = []
    read_fits = functools.cache(ledger.fits)
    for request, client in requests:
        characters = input_chars(request)
        most = ceiling(request, client.profile.name)
        if characters is None:
            counts.append(None)
            basis = "images and stored responses are tokens of which no number is known"
        else:
            fits = read_fits(request.get("model") or "").values()
            # Which service will answer is not known before it does: the one with most replies is the likeliest.
            ratio = max((fit.input for fit in fits), key=lambda ratio: ratio.n, default=PRIOR)
            count, low, high = tokens_of_text(characters, ratio, NUMBERS)
            counts.append(count)
            source = f"{ratio.n:,} recorded replies" if ratio.n else "4 characters a token"
            basis = f"input: {low:,} to {high:,} tokens, by {source}"
        costs.append(most.usd)
        # The reason begins with what is missing; the rest says what to do.
        limit = f"if the answer has all of {format_count(most.output_tokens or 0, 'token')}"
        bases.append(f"{basis}; cost: {most.reason if most.usd is None else limit}")
    tokens = "" if None in counts else f"{ESTIMATE_MARK}{format_count(sum(filter(None, counts)), 'token')} in"
    cost = "cost unknown" if None in costs else f"at most {format_usd(sum(filter(None, costs), Decimal()))}"
    return (" · ".join(filter(None, (tokens, cost))), "\n".join(dict.fromkeys(bases)))
