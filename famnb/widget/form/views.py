"""What a page shows of a form: the settings of a request, and the box in which its prompt is written."""

from __future__ import annotations

from famnb.widget.form.fields import FormField
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.runtime.view import View


class FieldView(View, frozen=True):
    """A field of a request; its key is its name, such as thinking.budget_tokens."""

    key: str
    control: FormField
    text: str
    """What the control holds; empty if the field is not set."""
    fault: str
    """What is wrong with it."""


class BoxView(View, frozen=True):
    """A check box that asks for a function or for an answer of a type; its key is its name."""

    key: str
    help: str
    is_on: bool


class GroupView(View, frozen=True):
    """Fields under a heading, which is the key; empty for those above all headings."""

    key: str
    boxes: tuple[BoxView, ...]
    fields: tuple[FieldView, ...]


class EndpointView(View, frozen=True):
    """An endpoint that can be chosen; its key is its name."""

    key: str
    title: str
    path: str


class FormView(View, frozen=True):
    """The settings of a request."""

    endpoint: str
    endpoints: tuple[EndpointView, ...]
    groups: tuple[GroupView, ...]


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
