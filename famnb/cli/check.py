"""`famnb check`: calls every endpoint, whole and streamed, and prints whether each answers."""

from __future__ import annotations

import argparse

from famnb.api import Client, connect
from famnb.endpoints import ENDPOINTS, Endpoint, compose
from famnb.errors import FamnbError

# Two spaces follow the longest.
_NAME_WIDTH = max(map(len, ["endpoint", *ENDPOINTS])) + 2


def declare(parser: argparse.ArgumentParser) -> None:
    """One call per endpoint, whole and streamed, as a table; exit 1 if any fails."""
    parser.add_argument("--prompt", default="Say hello in one sentence.", help="what to ask (default: %(default)r)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Call every endpoint twice and print a row for each call as it ends."""
    with connect() as client:
        columns = f"{'mode':<10}{'model':<14}{'status':<12}{'first token':>12}{'total':>10}{'out':>6}"
        print(f"{'endpoint':<{_NAME_WIDTH}}{columns}")
        modes = [(endpoint, stream) for endpoint in ENDPOINTS.values() for stream in (False, True)]
        outcomes = [_check(client, endpoint, stream, options.prompt) for endpoint, stream in modes]
    passed = sum(outcomes)
    print(f"{passed} of {len(outcomes)} calls passed")
    return 0 if passed == len(outcomes) else 1


def _check(client: Client, endpoint: Endpoint, stream: bool, prompt: str) -> bool:
    """Make one call, print its row, and return whether it completed with text and a time to first token."""
    request = compose(endpoint.name, prompt, stream=stream, max_tokens=200)
    try:
        reply = client.send(request)
        problem = ""
    except FamnbError as error:
        # Without a reply no call was made, and there is no row to print.
        if error.reply is None:
            raise
        reply, problem = error.reply, f"  {type(error).__name__}: {error}"
    timing, tokens = reply.timing, reply.usage.output_tokens
    passed = not problem and reply.complete is True and bool(reply.text) and timing.ttft_s is not None
    mode = "streamed" if stream else "whole"
    # Flushed, so that each row is seen when its call ends, through a pipe too.
    print(
        f"{endpoint.name:<{_NAME_WIDTH}}{mode:<10}{endpoint.models[0]:<14}{reply.status:<12}"
        f"{_format_seconds(timing.ttft_s):>12}{_format_seconds(timing.e2e_s):>10}"
        f"{'–' if tokens is None else tokens:>6}{problem}",
        flush=True,
    )
    return passed


def _format_seconds(value: float | None) -> str:
    # One unit down the column, so that rows compare at a glance; format_duration would change it from row to row.
    return "–" if value is None else f"{value:.3f} s"
