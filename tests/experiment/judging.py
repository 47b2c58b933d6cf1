"""What the tests of judges share: a service of written answers and verdicts, and some of these."""

import json
from collections.abc import Callable

import famnb
from tests.support.fault_server import FaultServer

Serve = Callable[..., tuple[famnb.Client, FaultServer]]


def answer(system: str, asked: str) -> str:
    """An answer that is as long as its variant says."""
    return asked * len(system)


def verdict(winner: str) -> str:
    return json.dumps({"reason": "so", "winner": winner})


def longer(asked: dict[str, str]) -> str:
    """A judge that likes the longer answer, wherever it stands."""
    a, b = len(asked["answer A"]), len(asked["answer B"])
    return verdict("A" if a > b else "B" if b > a else "tie")
