"""The client against its peers on the same canned server: CPU per event, lag, import time and memory."""

from __future__ import annotations

import collections
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import harness
from harness import Goal, Result, Table, median, ratio

TITLE = "famnb's client beside the SDKs and plain HTTP clients"
PEERS = ("famnb", "openai", "anthropic", "httpx-sse", "aiohttp+msgspec")
FAST = "aiohttp+msgspec"
"""The peer that famnb is compared with where the others cannot keep up."""
PER_SECOND = 50
STREAMS = 256
"""How many live streams at once famnb and the fast peer read."""
CLIENT = "a first famnb.Client(...)"
IMPORTS = {
    "import famnb": "import famnb",
    CLIENT: "import famnb; famnb.Client(base_url='http://127.0.0.1:9', api_key='k', ledger='/dev/null')",
    "import openai": "import openai",
    "import anthropic": "import anthropic",
}


def run(quick: bool) -> Result:
    """Measure, every peer in a fresh process each time, in rounds that begin with another peer."""
    # Quick sizes start few processes, which take most of their time.
    repeats, streams, peers = (1, 4, ("famnb", FAST)) if quick else (3, STREAMS, PEERS)
    live_peers = ("famnb",) if quick else ("famnb", FAST)
    with harness.run_server([sys.executable, str(harness.HERE / "canned.py")]) as (url, _):
        bulk = _measure(peers, f"{url}/bulk/{{}}", 1, 200 if quick else 20_000, repeats)
        events = 10 if quick else 100
        live_url = f"{url}/live/{{}}/{PER_SECOND}"
        many = {
            cores: _measure(live_peers, live_url, streams, events, repeats, one_core=cores == "one")
            for cores in (("all", "one") if hasattr(os, "sched_setaffinity") and not quick else ("all",))
        }
    imports = _imports(list(IMPORTS)[:2], 0) if quick else _imports(list(IMPORTS), 5)
    return Result(
        tables=[_bulk_table(bulk), _live_table(streams, many), _import_table(imports)],
        goals=_goals(bulk, many, imports),
        notes=[
            "famnb's CPU includes decoding, folding, timing and recording in a ledger file; the others only decode. In "
            "bulk each client has read one stream before.",
            "A lag is from the server's clock, read just before its write, to the moment that the client has for the "
            "event: famnb's is the recorded arrival and how late Python was. What it records as arrival, `famnb bench "
            "timing` compares with the server's clock.",
            f"The load average after measuring was {os.getloadavg()[0]:.1f}. Where it is above the cores, others work: "
            "CPU times are longer for every client, and comparable in one run alone; a lag is the machine's.",
            "A lag of a client that cannot keep up grows with the length of the run "
            f"({10 if quick else 100} events a stream at {PER_SECOND} a second).",
            "With one core the client's process is bound to it; the server's is not.",
            "`import famnb` loads no part before its first use; the second row is what a first client waits for. "
            "Bytecode is cached by the first round, as pip does it for the peers.",
        ],
    )


Figures = dict[str, dict[str, float | None]]


def _measure(
    peers: Sequence[str], url: str, streams: int, events: int, repeats: int, *, one_core: bool = False
) -> Figures:
    """Run these peers, and return for each the median of each figure; with `one_core` each is bound to a single one."""
    runs: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for peer in harness.rotate(peers, repeats):
        command = [sys.executable, str(harness.HERE / "peers.py"), peer, url.format(events), str(streams), str(events)]
        runs[peer].append(harness.run_child([*command, *(["one-core"] if one_core else [])]).json)
    figures = {}
    for peer in peers:
        figures[peer] = {name: median([run[name] for run in runs[peer]]) for name in runs[peer][0]}
        cpu_s, count = figures[peer]["cpu_s"], figures[peer]["events"]
        figures[peer]["cpu_us_per_event"] = None if cpu_s is None or not count else cpu_s / count * 1e6
    return figures


def _imports(names: list[str], repeats: int) -> dict[str, float | None]:
    """The CPU time that a fresh interpreter needs for each statement, in seconds."""
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    for name in harness.rotate(names, repeats + 1):
        code = f"import time; t = time.process_time(); {IMPORTS[name]}; print(time.process_time() - t)"
        seconds[name].append(harness.run_child([sys.executable, "-c", code]).json)
    # The first round compiles and warms the file cache.
    return {name: median(seconds[name][1:] or seconds[name]) for name in names}


def _bulk_table(bulk: Figures) -> Table:
    base = bulk["famnb"]["cpu_us_per_event"]
    rows = [
        {
            "client": peer,
            "CPU µs/event": bulk[peer]["cpu_us_per_event"],
            "× famnb": ratio(bulk[peer]["cpu_us_per_event"], base),
        }
        for peer in bulk
    ]
    return Table("In bulk: one stream, as fast as it comes", rows)


def _live_table(streams: int, live: Mapping[str, Figures]) -> Table:
    """A row for each number of cores and peer."""
    rows = [
        {
            "cores": cores,
            "client": peer,
            "CPU µs/event": figures[peer]["cpu_us_per_event"],
            "lag p50 ms": figures[peer]["lag_p50_ms"],
            f"× {FAST}": ratio(figures[peer]["cpu_us_per_event"], figures.get(FAST, {}).get("cpu_us_per_event")),
            "lag p99 ms": figures[peer]["lag_p99_ms"],
            "peak RSS MB": figures[peer]["peak_rss_mb"],
        }
        for cores, figures in live.items()
        for peer in figures
    ]
    return Table(f"Live, recorded: {streams} streams", rows)


def _import_table(imports: dict[str, float | None]) -> Table:
    base = imports["import famnb"]
    rows = [
        {"statement": name, "CPU ms": None if seconds is None else seconds * 1000, "× famnb": ratio(seconds, base)}
        for name, seconds in imports.items()
    ]
    return Table("Import in a fresh interpreter", rows)


def _goals(bulk: Figures, many: dict[str, Figures], imports: dict[str, float | None]) -> list[Goal]:
    cpu = {peer: figures["cpu_us_per_event"] for peer, figures in bulk.items()}
    loaded, first = many["all"]["famnb"], imports.get(CLIENT)
    shares = {
        cores: ratio(figures["famnb"]["cpu_us_per_event"], figures.get(FAST, {}).get("cpu_us_per_event"))
        for cores, figures in many.items()
    }
    return [
        Goal("openai's CPU per event, as a multiple of famnb's", 50, ratio(cpu.get("openai"), cpu["famnb"]), True),
        Goal("famnb's CPU per event, as a multiple of aiohttp+msgspec's", 2, ratio(cpu["famnb"], cpu.get(FAST))),
        *(Goal(f"the same live at {STREAMS} streams, cores: {cores}", 1.25, share) for cores, share in shares.items()),
        Goal(f"famnb's CPU per event at {STREAMS} streams, µs", 14, loaded["cpu_us_per_event"]),
        Goal(f"famnb's lag at {STREAMS} streams, p99, ms", 1, loaded["lag_p99_ms"]),
        Goal(
            "import famnb, as a part of import openai",
            1 / 3,
            ratio(imports["import famnb"], imports.get("import openai")),
        ),
        Goal("a first famnb.Client(...) in a fresh process, CPU ms", 200, None if first is None else first * 1000),
    ]
