"""Options of the command line that choose calls, for `famnb calls` and `famnb ledger`."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta

from famnb.endpoints import ENDPOINTS
from famnb.record.filters import Filters

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_NAMES = {
    "model": "of this model, as it was asked for",
    "endpoint": f"of {', '.join(ENDPOINTS)}",
    "profile": "of this vendor's profile",
    "experiment": "of this experiment",
    "variant": "of this variant",
    "tag": "with this tag",
    "status": "that ended so: completed, incomplete, cancelled, failed or interrupted",
}


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Declare the filters of calls, which `read_filters` reads."""
    group = parser.add_argument_group("filters", "which calls; a name may be given several times, any of which will do")

    def parse(text: str) -> timedelta | str:
        return parse_age(text) if text[-1:] in _UNITS and "-" not in text else text

    for name, comparison in (("since", "from"), ("until", "before")):
        group.add_argument(
            f"--{name}", type=parse, metavar="WHEN", help=f"{comparison} then on: 2026-01-31, or an age as 7d"
        )
    for name, help in _NAMES.items():
        group.add_argument(f"--{name}", action="append", metavar="NAME", help=help)


def read_filters(options: argparse.Namespace) -> Filters:
    """Return the filters that were given."""
    return {name: value for name in Filters.__annotations__ if (value := getattr(options, name)) is not None}  # type: ignore[return-value]  # its keys


def parse_age(text: str) -> timedelta:
    """Return an age such as 90d; raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected an age such as 90d, 12h or 2w, got {text!r}")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than there have been calls") from None
