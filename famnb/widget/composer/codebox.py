"""The composer's code: a cell that repeats the request, of a kind that is chosen, to look at and to copy."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from famnb.client import Client
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.composer.code import code, kinds
from famnb.widget.form import pictures
from famnb.widget.form.form import boxed, labelled
from famnb.widget.text import markup
from famnb.widget.view.copyable import Copyable

_SAFE = "It runs as it stands; the key is read from the environment."


class CodeBox:
    """Shows the form's request as code, and keeps it up to date while it is open."""

    title = "Code"
    hint = "Show a cell that repeats this request"

    def __init__(self, client: Client, *, request: Callable[[], Request]) -> None:
        self._client, self._request = client, request
        self._kind = labelled(widgets.Dropdown, title="As", help="What the code is for", options=("famnb",))
        self._said = widgets.HTML()
        self._code = Copyable("code")
        self.box = widgets.VBox([boxed(self._kind, kind="kind"), self._said, self._code])
        self._renewing = False
        """Whether the kinds change by themselves, so that nothing was chosen."""
        self._kind.observe(lambda _: self.changed(), "value")

    def opened(self) -> None:
        """Show the request as it is now."""
        self.changed()

    def changed(self) -> None:
        """The form was edited, or another kind chosen."""
        if self._renewing:
            return
        try:
            request = self._request()
        except InvalidRequest as fault:
            self._said.value = f'<p class="famnb-remark">{markup.escape(f"There is no code yet. {fault}")}</p>'
            return
        there, chosen = kinds(request), self._kind.value
        if self._kind.options != there:
            # The last is the vendor's SDK, whichever fits.
            chosen = chosen if chosen in there else there[-1]
            self._renewing = True
            self._kind.options, self._kind.value = there, chosen
            self._renewing = False
        made = code(request, kind=chosen, base_url=self._client.base_url(request.endpoint))
        self._said.value = f'<span class="famnb-help">{_SAFE}</span>'
        self._code.show(made, shown=pictures.brief(made))
