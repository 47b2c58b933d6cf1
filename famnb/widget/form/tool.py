"""The base class of tools whose form is sent: the Composer and the Board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import traitlets

from famnb.errors import InvalidArgument, InvalidRequest
from famnb.widget.runtime.tool import BaseTool

STILL_ANSWERING = "prompt: it was not sent, since an answer is still being written; send it again once that has ended"
ValueT = TypeVar("ValueT")


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
    """A tool with a form that is sent: traits that are computed, and names that are ipywidgets' own."""

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
