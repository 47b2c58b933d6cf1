"""famnb: a notebook workbench and measuring instrument for a text-generation API.

Each public name loads its module on first use, so that `import famnb` costs next to nothing. Exceptions can be imported
from here, too, but live in `famnb.errors`, so that `famnb.` completes to few names.
"""

import importlib
import typing

__version__ = "0.1.0"

# The same names as in `__init__.pyi`, which is what type checkers and editors read.
_PATHS = {
    "AsyncClient": "api",
    "Board": "widget.board.board",
    "ChatRequest": "request",
    "Client": "api",
    "Composer": "widget.composer.composer",
    "Dashboard": "widget.dashboard.dashboard",
    "Deadlines": "client.config",
    "Experiment": "experiment_api",
    "Inspector": "widget.inspector",
    "Ledger": "record",
    "Load": "load",
    "MessagesRequest": "request",
    "Reply": "reply",
    "ResponsesRequest": "request",
    "Retries": "client.retry",
    "WebChatRequest": "request",
    "bill": "billing",
    "calls": "frame",
    "compose": "endpoints",
    "connect": "api",
    "errors": "errors",
    "grid": "experiment.variants",
    "plot": "plot",
    "prices": "record",
    "profiles": "profiles",
    "prompts": "prompts",
    "scorers": "experiment.scorers",
    "serve": "service",
    "spend": "frame",
    "tool": "request",
}
"""Where each public name is found: in a module, or as the module that the path ends with."""
_UNLISTED = {
    "deltas": "frame",
    "export": "export",
    "open": "saved_files",
    "sql": "frame",
    "stats": "stats",
    "testing": "testing",
}
"""Found in the same way, and not listed: `__all__` fits on a page, and a star import hides no common word."""

__all__ = list(_PATHS)


def __getattr__(name: str) -> object:
    if path := _PATHS.get(name) or _UNLISTED.get(name):
        if path.startswith(("widget.", "load", "experiment_api")):
            # What is made without a client has `connect` make one, which registers itself.
            importlib.import_module("famnb.api")
        module = importlib.import_module(f"famnb.{path}")
        value = module if path.rpartition(".")[2] == name else getattr(module, name)
    else:
        errors = importlib.import_module("famnb.errors")
        if not name[:1].isupper() or not hasattr(errors, name):
            raise errors.UnknownName(
                f"famnb has no {name!r}; it has {', '.join(__all__)}, and the exceptions of famnb.errors"
            )
        value = getattr(errors, name)
    # From now on an ordinary attribute, which Python finds without this function.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: typing.Any) -> None:
    """Register `%fam` and `%%fam`; `%load_ext famnb` calls this."""
    importlib.import_module("famnb.magic").load_ipython_extension(shell)
