"""The command line, `famnb COMMAND`: each command is a function, its options declared beside it."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

import famnb
from famnb import ledger_commands, service
from famnb.client import Client
from famnb.endpoints import ENDPOINTS, Endpoint, compose
from famnb.errors import FamnbError
from famnb.frame import calls
from famnb.scrub import scrub
from famnb.service.child import KEY_VARIABLE, SERVICE_URL, spawned
from famnb.service.options import PROFILES, Options
from famnb.workbench import connect

START = "01-start.ipynb"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it did what it was asked, 1 when it did not, 2 for a wrong call."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (FamnbError, OSError) as error:
        print(f"famnb: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="famnb", description="A notebook workbench and measuring instrument for a text-generation API."
    )
    parser.add_argument("--version", action="version", version=f"famnb {famnb.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, declare in {
        "lab": _lab,
        "serve": _serve,
        "check": _check,
        "calls": _calls,
        "ledger": ledger_commands.declare,
        "scrub": _scrub,
        "bench": _bench,
    }.items():
        words = (declare.__doc__ or "").strip()
        declare(commands.add_parser(name, help=words.split(";")[0], description=words))
    return parser


# lab


def _lab(parser: argparse.ArgumentParser) -> None:
    """JupyterLab on the notebooks, with the embedded service running; Ctrl-C ends both."""
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument("--port", type=int, help="JupyterLab's port (default: 8888, or the next free one)")
    parser.add_argument("lab", nargs="*", metavar="-- OPTION", help="further options for JupyterLab, after --")
    parser.set_defaults(run=lab)


def lab(options: argparse.Namespace) -> int:
    """Start the service, then JupyterLab in a child that knows where the service is."""
    if find_spec("jupyterlab") is None:
        print('famnb: JupyterLab is not installed; run: pip install "famnb[lab]"', file=sys.stderr)
        return 1
    folder = notebooks()
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.default_url=/lab/tree/{START}"]
    command += ["--no-browser"] if options.no_browser else []
    command += [f"--port={options.port}"] if options.port is not None else []
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    with service.serve() as server:
        print(f"famnb: notebooks in {folder}; embedded service at {server.url}", flush=True)
        child = spawned([*command, *options.lab], {SERVICE_URL: server.url, KEY_VARIABLE: server.key})
        if isinstance(child, OSError):
            raise child
        try:
            return child.wait()
        except KeyboardInterrupt:
            # Ctrl-C reached JupyterLab as well; it asks once more, and is not waited for any longer then.
            child.terminate()
            return child.wait()


def notebooks() -> Path:
    """The folder of notebooks: the checkout's own, else a copy of the installed ones that the user may change."""
    shipped, own = _shipped("notebooks", START)
    if own:
        return shipped
    copy = Path.cwd() / "famnb-notebooks"
    copy.mkdir(exist_ok=True)
    for notebook in sorted(shipped.glob("*.ipynb")):
        if not (copy / notebook.name).exists():
            shutil.copy(notebook, copy)
    return copy


def _shipped(folder: str, file: str) -> tuple[Path, bool]:
    """A folder that is not code of the package, known by a file in it, and whether it is the checkout's own."""
    package = Path(famnb.__file__).parent
    checkout = package.parent / folder
    return (checkout, True) if (checkout / file).exists() else (package / checkout.name, False)


# serve


def _serve(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--key", help=f"the API key to ask for (default: {KEY_VARIABLE}, else a random one)")
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
    parser.add_argument("--strict", action="store_true", help="answer 400 to unknown fields instead of ignoring them")
    parser.add_argument(
        "--fault",
        default=usual.fault,
        help="a fault on every call, such as status=429, delay=2, error=3, cut=3",
    )
    parser.add_argument("--requests-per-minute", type=float, metavar="N", help="per key (default: no limit)")
    parser.add_argument("--burst", type=int, default=usual.burst, metavar="N", help="of these, at once (default: all)")
    parser.add_argument("--concurrency", type=int, metavar="N", help="running calls per key (default: no limit)")
    parser.set_defaults(run=serve)


def serve(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    names = {field.name for field in dataclasses.fields(Options)}
    chosen = {name: value for name, value in vars(options).items() if name in names}
    chosen["key"] = options.key or os.getenv(KEY_VARIABLE)
    return service.run(**chosen)


# check


def _check(parser: argparse.ArgumentParser) -> None:
    """One call per endpoint, whole and streamed, as a table; exit 1 if any fails."""
    parser.add_argument("--prompt", default="Say hello in one sentence.", help="what to ask (default: %(default)r)")
    parser.set_defaults(run=check)


def check(options: argparse.Namespace) -> int:
    """Call every endpoint twice and print a row for each call as it ends."""
    with connect() as client:
        print(f"{'endpoint':<11}{'mode':<10}{'model':<14}{'status':<12}{'first token':>12}{'total':>10}{'out':>6}")
        outcomes = [_checked(client, endpoint, stream, options.prompt) for endpoint, stream in _eight()]
    passed = sum(outcomes)
    print(f"{passed} of {len(outcomes)} calls passed")
    return 0 if passed == len(outcomes) else 1


def _eight() -> Iterator[tuple[Endpoint, bool]]:
    return ((endpoint, stream) for endpoint in ENDPOINTS.values() for stream in (False, True))


def _checked(client: Client, endpoint: Endpoint, stream: bool, prompt: str) -> bool:
    """Make one call and print its row; whether it passed: completed, with text and a time to first token."""
    request = compose(endpoint.name, prompt, stream=stream, max_tokens=200)
    try:
        reply = client.send(request)
        problem = ""
    except FamnbError as error:
        if error.reply is None:
            raise
        reply, problem = error.reply, f"  {type(error).__name__}: {error}"
    timing, tokens = reply.timing, reply.usage.output_tokens
    passed = not problem and reply.complete is True and bool(reply.text) and timing.ttft_s is not None
    mode = "streamed" if stream else "whole"
    print(
        f"{endpoint.name:<11}{mode:<10}{endpoint.models[0]:<14}{reply.status:<12}{_seconds(timing.ttft_s):>12}"
        f"{_seconds(timing.e2e_s):>10}{'–' if tokens is None else tokens:>6}{problem}",
        flush=True,
    )
    return passed


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f} s"


# calls


def _calls(parser: argparse.ArgumentParser) -> None:
    """The recorded calls; the latest as a table, or all of them into a file."""
    to = parser.add_mutually_exclusive_group()
    to.add_argument("--csv", metavar="FILE", type=Path, help="write all calls as CSV")
    to.add_argument("--parquet", metavar="FILE", type=Path, help="write all calls as Parquet")
    parser.add_argument("--ledger", metavar="FILE", type=Path, help="the ledger (default: FAMNB_LEDGER, else your own)")
    parser.add_argument("-n", type=int, default=20, metavar="ROWS", help="rows of the table (default: %(default)s)")
    parser.set_defaults(run=show_calls)


def show_calls(options: argparse.Namespace) -> int:
    """Print the latest calls, or export all."""
    frame = calls(options.ledger)
    if options.csv:
        frame.to_csv(options.csv, index=False)
        print(f"{len(frame)} calls written to {options.csv}")
    elif options.parquet:
        if find_spec("pyarrow") is None:
            print('famnb: Parquet needs pyarrow; run: pip install "famnb[scale]", or use --csv', file=sys.stderr)
            return 1
        frame.to_parquet(options.parquet, index=False)
        print(f"{len(frame)} calls written to {options.parquet}")
    elif frame.empty:
        print("No calls are recorded yet. `famnb check` makes eight.")
    else:
        print(_table(frame.tail(options.n)))
        print(f"{len(frame)} calls in all; times in seconds, started_at in UTC, ~ is an estimate")
    return 0


def _table(frame: pd.DataFrame) -> str:
    """The columns that fit a terminal; an estimated figure is marked with ~."""
    shown = frame[["started_at", "endpoint", "model", "status", "ttft_s", "e2e_s"]].copy()
    shown["started_at"] = shown["started_at"].dt.tz_convert(None).dt.floor("s")
    guessed = frame["output_tokens_source"] == "estimated"
    shown["output_tokens"] = _marked(frame["output_tokens"], guessed, ",.0f")
    shown["cost_usd"] = _marked(frame["cost_usd"], frame["cost_low_usd"] < frame["cost_high_usd"], ".3g")
    return shown.to_string(index=False, na_rep="–", float_format=lambda value: f"{value:.3g}")


def _marked(figures: pd.Series[Any], guessed: pd.Series[Any], form: str) -> list[str]:
    """Figures as text, `–` for a missing one and ~ before a guessed one."""
    pairs = zip(figures.tolist(), guessed.fillna(False).tolist(), strict=True)
    return ["–" if pd.isna(figure) else f"{'~' if guess else ''}{figure:{form}}" for figure, guess in pairs]


# scrub


def _scrub(parser: argparse.ArgumentParser) -> None:
    """Remove keys from notebooks, in place; says where they were and never shows one."""
    parser.add_argument("files", nargs="+", metavar="FILE.ipynb", type=Path, help="notebooks")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if there is a key")
    parser.set_defaults(run=scrub_files)


def scrub_files(options: argparse.Namespace) -> int:
    """Scrub every file; a file that cannot be scrubbed does not keep the others from it."""
    status = 0
    for file in options.files:
        try:
            found = scrub(file, write=not options.check)
        except (FamnbError, OSError) as error:
            print(f"famnb: {error}", file=sys.stderr)
            status = 1
            continue
        for finding in found:
            print(f"{file}: {finding}")
        keys = f"{len(found)} key{'' if len(found) == 1 else 's'}"
        print(f"{file}: {keys} {'found' if options.check else 'removed'}" if found else f"{file}: no key found")
        status = 1 if found and options.check else status
    return status


# bench


def _bench(parser: argparse.ArgumentParser) -> None:
    """Benchmarks beside their peers, in one run; needs what `famnb[test]` installs."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--quick", action="store_true", help="sizes so small that the figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to a file")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.set_defaults(run=bench)


def bench(options: argparse.Namespace) -> int:
    """Run benchmarks in a child, so that nothing this process has loaded is measured."""
    folder, _ = _shipped("tests/bench", "__main__.py")
    command = [sys.executable, str(folder), *options.names]
    command += ["--quick"] if options.quick else []
    command += ["--list"] if options.list else []
    command += ["--json", str(options.json)] if options.json else []
    return subprocess.call(command)  # noqa: S603 - our own interpreter with our own arguments


if __name__ == "__main__":
    sys.exit(main())
