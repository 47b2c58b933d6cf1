"""The errors: one tree, each of which survives the way from one process to another."""

from __future__ import annotations

import copy
import pickle

import pytest

from famnb import errors
from famnb.errors import FamnbError, Interrupted, ParseError, RateLimitError, StreamError
from tests.support.exchanges import exchange, spoken


def tree(root: type[BaseException]) -> list[type[BaseException]]:
    """A class and all that are derived from it."""
    return [root, *(error for child in root.__subclasses__() for error in tree(child))]


def test_the_tree_is_the_one_that_is_drawn() -> None:
    """Every error of the module stands in its docstring, under the one it is derived from."""
    drawn, above = {}, list[str]()
    for line in (errors.__doc__ or "").splitlines():
        name = line.strip("│├└─ ").partition(" ")[0]
        if isinstance(getattr(errors, name, None), type) or name == "KeyboardInterrupt":
            depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
            above = [*above[:depth], name]
            drawn[name] = above[depth - 1] if depth else ""
    module = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    assert {kind.__name__ for kind in module} == drawn.keys() - {"KeyboardInterrupt"}
    parents = {kind.__name__: kind.__bases__[0].__name__ for kind in module if kind is not FamnbError}
    assert parents == {name: parent for name, parent in drawn.items() if parent}


SAMPLES = [
    *(kind("what happened") for kind in tree(FamnbError) if kind is not ParseError),
    Interrupted("what happened"),
    RateLimitError("slow down", status=429, retry_after=3.0, body={"error": "slow down"}),
    StreamError("the engine stopped", type="server_error", code="e1"),
    ParseError("no Trip", reason="invalid", partial={"city": "Oslo"}),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("carry", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])
def test_an_error_survives_being_carried(carry, error) -> None:
    """Words, fields and the partial reply: a pool of processes hangs on an error that it cannot unpickle."""
    error.reply = exchange(spoken("Hel")).reply
    carried = carry(error)
    assert (type(carried), str(carried)) == (type(error), str(error))
    assert vars(carried) == vars(error)
