"""What goes wrong in a callback, in words under the widget, where a log would hide it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from famnb.errors import FamnbError
from famnb.widget.text import markup

Guarded: TypeAlias = Callable[[Callable[[], object]], Callable[[], None]]
"""Makes a callback one whose errors are shown."""


def guarding(guard: threading.RLock, trouble: Any) -> Guarded:
    """What makes a callback one that holds the guard, and whose errors stand in that HTML widget."""

    def guarded(callback: Callable[[], object]) -> Callable[[], None]:
        def call() -> None:
            with guard:
                try:
                    callback()
                except Exception as error:
                    words = str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"
                    trouble.value = f'<p class="famnb-failure" role="alert">{markup.escape(words)}</p>'

        return call

    return guarded
