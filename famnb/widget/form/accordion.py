"""A row of buttons, each of which opens a box of controls below it and closes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets as widgets

from famnb.widget.html.sanitize import SafeHtml

_HEADING = SafeHtml('<div class="famnb-composer-title" role="heading" aria-level="4">{}</div>')


class Accordion:
    """A row of buttons; each opens and closes a box below, which has a heading of the button's name."""

    def __init__(self, *, draw: Callable[[str], Sequence[widgets.Widget]], all_name: str = "") -> None:
        """`draw` returns the controls of a box when it is opened; `all_name` names a button that opens every box."""
        self._draw = draw
        self._names: tuple[str, ...] = ()
        self._buttons: dict[str, widgets.ToggleButton] = {}
        self._boxes: dict[str, widgets.VBox] = {}
        self._all = self._button(all_name, f"Show every field, under {all_name.lower()}") if all_name else None
        self.bar = widgets.HBox()
        """The row of buttons."""
        self.box = widgets.VBox()
        """The boxes that are open."""
        self.bar.add_class("famnb-composer-bar")
        self.box.add_class("famnb-composer-folds")

    def arrange(self, names: Sequence[str], hints: Sequence[str]) -> None:
        """Offer these boxes, each with a hint at its contents; a box that is open stays open."""
        self._names = tuple(names)
        for name, hint in zip(names, hints, strict=True):
            if name not in self._buttons:
                self._buttons[name] = self._button(name, hint)
            self._buttons[name].tooltip = hint
        self.bar.children = [*(self._buttons[name] for name in names), *([self._all] if self._all else [])]
        self._show()

    def is_open(self, name: str) -> bool:
        """Return whether a box is open."""
        return name in self._names and (self._buttons[name].value or bool(self._all and self._all.value))

    def mark(self, name: str, remark: str) -> None:
        """Show a remark beside a button's name, or none if it is empty."""
        self._buttons[name].description = f"{name} · {remark}" if remark else name

    def _button(self, name: str, hint: str) -> widgets.ToggleButton:
        button = widgets.ToggleButton(description=name, tooltip=hint)
        button.observe(lambda _: self._show(), "value")
        return button

    def _show(self) -> None:
        open_names = [name for name in self._names if self.is_open(name)]
        for name in set(self._boxes) - set(open_names):
            # Only the heading stays: the owner of the controls may destroy them while the box is closed.
            self._boxes[name].children = self._boxes[name].children[:1]
        for name in open_names:
            if name not in self._boxes:
                self._boxes[name] = widgets.VBox([widgets.HTML(_HEADING.format(name))])
                self._boxes[name].add_class("famnb-composer-fold")
            box = self._boxes[name]
            box.children = [box.children[0], *self._draw(name)]
        self.box.children = [self._boxes[name] for name in open_names]
