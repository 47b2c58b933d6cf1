"""`famnb serve`: runs the local service in the foreground."""

from __future__ import annotations

import argparse
import dataclasses
import os

from famnb import service
from famnb.service.process import KEY_VARIABLE
from famnb.service.settings import LOG_FORMATS, PROFILES, Options


def declare(parser: argparse.ArgumentParser) -> None:
    """The local service; its first line on standard output is one JSON object with url, key, pid and alt_url."""
    usual = Options()
    parser.add_argument("--host", default=usual.host, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=usual.port, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--alt-port",
        type=int,
        metavar="N",
        help="serve responses, web chat and messages at this port, 0 for a free one (default: all four on one port)",
    )
    parser.add_argument(
        "--key",
        action="append",
        metavar="K",
        help=f"an API key to accept, repeatable (default: those in {KEY_VARIABLE}, else a random one)",
    )
    parser.add_argument(
        "--keys-file", default=usual.keys_file, metavar="FILE", help="accept the keys in a file as well, one a line"
    )
    parser.add_argument("--seed", type=int, default=usual.seed, help="another seed gives other answers (default: 0)")
    parser.add_argument(
        "--time-scale", type=float, default=usual.time_scale, help="1 is lifelike, 0 does not wait (default: 1)"
    )
    parser.add_argument(
        "--upstream", default=usual.upstream, metavar="URL", help="a server with /v1/chat/completions that answers"
    )
    parser.add_argument(
        "--upstream-key", default=usual.upstream_key, metavar="ENV", help="the environment variable that has its key"
    )
    parser.add_argument(
        "--upstream-model",
        action="append",
        default=[],
        metavar="M",
        help="its name of the model: M for all, or OURS=THEIRS, repeatable (default: the only one it lists)",
    )
    parser.add_argument(
        "--profile",
        choices=[name for name in PROFILES if name],
        default=usual.profile,
        help="answer on the responses endpoint with all that this specification wants (default: the document alone)",
    )
    parser.add_argument(
        "--store", default=usual.store, metavar="FILE", help="keep responses in a file (default: in memory)"
    )
    parser.add_argument(
        "--compat",
        action=argparse.BooleanOptionalAction,
        default=usual.compat,
        help="understand the vendors' own fields and paths: tools everywhere, stop, /v1/models, any model (default: "
        "with an upstream)",
    )
    parser.add_argument("--strict", action="store_true", help="answer 400 to unknown fields instead of ignoring them")
    parser.add_argument(
        "--fault",
        default=usual.fault,
        help="a fault on every call, such as status=429, delay=2, error=3, cut=3",
    )
    parser.add_argument(
        "--allow-faults",
        action="store_true",
        help="obey the header x-famnb-fault beyond loopback and with an upstream too (default: ignore it there)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which callers may call a service on loopback, such as a proxy's, repeatable",
    )
    parser.add_argument("--requests-per-minute", type=float, metavar="N", help="per key (default: no limit)")
    parser.add_argument("--burst", type=int, default=usual.burst, metavar="N", help="of these, at once (default: all)")
    parser.add_argument("--concurrency", type=int, metavar="N", help="running calls per key (default: no limit)")
    parser.add_argument(
        "--body-limit",
        type=int,
        default=usual.body_limit,
        metavar="BYTES",
        help="answer 413 to a larger body (default: %(default)s)",
    )
    parser.add_argument(
        "--upload-timeout",
        type=float,
        default=usual.upload_timeout,
        metavar="S",
        help="answer 408 to a head, or a body, that takes longer (default: %(default)s s)",
    )
    parser.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        default=usual.log_format,
        help="of standard error: text has warnings, json one line a request as well (default: %(default)s)",
    )
    parser.add_argument("--metrics-open", action="store_true", help="answer /metrics without a key (default: with one)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    names = {field.name for field in dataclasses.fields(Options)}
    chosen = {name: value for name, value in vars(options).items() if name in names}
    # Of a key that is given, also in a file, nothing in the environment is meant.
    if not (options.key or options.keys_file):
        chosen["key"] = os.getenv(KEY_VARIABLE, "").split() or None
    return service.run(**chosen)
