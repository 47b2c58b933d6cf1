"""The settings that are written once for all panes of a board; a pane with its own text in such a field keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from famnb.errors import InvalidRequest
from famnb.widget.board.pane_columns import PaneColumn

SHARED_FIELDS = ("max_tokens", "temperature", "top_p")
"""By the names that `famnb.compose` has for them, whatever an endpoint calls them."""


class SharedFields:
    """The texts of these fields, and how panes take them over."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """What is written, by field; a field that is not set is left out."""

    def set_text(self, name: str, text: str, columns: Iterable[PaneColumn]) -> None:
        """Write a text, or nothing, and have panes take it over; raises InvalidRequest for another field."""
        if name not in SHARED_FIELDS:
            raise InvalidRequest(f"{name}: there is no such field for all panes; there are {', '.join(SHARED_FIELDS)}")
        if text.strip():
            self.texts[name] = text
        else:
            self.texts.pop(name, None)
        for column in columns:
            self._share(column, name)

    def fill(self, column: PaneColumn) -> None:
        """Have a pane take over what is written, where it has nothing of its own."""
        for name in self.texts:
            self._share(column, name)

    def reset(self, column: PaneColumn, name: str) -> None:
        """Have a pane give up its own text of a field."""
        column.shared.add(name)
        self._share(column, name)

    def follow_edit(self, column: PaneColumn, field: str) -> None:
        """Notice that a field of a pane was edited there: another text is its own, none is that of all panes."""
        for name in self.texts:
            if column.shared_field(name) == field:
                column.shared.discard(name)
                if column.text(field) == self.texts[name]:
                    column.shared.add(name)
                self._share(column, name)

    def _share(self, column: PaneColumn, name: str) -> None:
        field = column.shared_field(name)
        if field is None or (column.has_own_text(field) and name not in column.shared):
            return
        text = self.texts.get(name, "")
        if text:
            column.shared.add(name)
        else:
            column.shared.discard(name)
        if text != column.text(field):
            column.set_text(field, text)

    def describe(self, columns: Iterable[PaneColumn]) -> dict[str, Any]:
        """Return the fields to draw that any pane has, their texts, and what is wrong with them."""
        fields: dict[str, dict[str, Any]] = {}
        faults: dict[str, str] = {}
        for column in columns:
            for name in SHARED_FIELDS:
                field = column.shared_field(name)
                if field is None:
                    continue
                if name not in fields:
                    fields[name] = {**column.describe_field(field), "path": name}
                if name in column.shared and (fault := column.fault_of(field)):
                    faults[name] = fault
        return {
            "fields": [fields[name] for name in SHARED_FIELDS if name in fields],
            "texts": self.texts,
            "faults": faults,
        }

    def describe_own(self, column: PaneColumn) -> list[dict[str, str]]:
        """Return in which fields a pane does not have the text that is written for all: its own, or none at all."""
        own = []
        for name, text in self.texts.items():
            field = column.shared_field(name)
            if field is None:
                own.append({"name": name, "text": "", "shared": text})
            elif name not in column.shared:
                own.append({"name": name, "text": column.text(field), "shared": text})
        return own
