"""The client against its peers on the same canned server: CPU per event, lag, import time and memory."""

from __future__ import annotations

import collections
import os
import sys
from collections.abc import Sequence
from typing import Any

import harness
from harness import Goal, Result, Table, median, ratio

TITLE = "famnb's client beside the openai SDK and aiohttp with msgspec"
PEERS = ("famnb", "openai", "aiohttp+msgspec")
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
        live = _measure(live_peers, live_url, streams, events, repeats)
    imports = _imports(list(IMPORTS)[:2], 0) if quick else _imports(list(IMPORTS), 5)
    cpu = {peer: figures["cpu_us_per_event"] for peer, figures in bulk.items()}
    return Result(
        tables=[
            Table("In bulk: one stream, as fast as it comes", _relative("client", "CPU µs/event", cpu)),
            _live_table(streams, live),
            Table("Import in a fresh interpreter", _relative("statement", "CPU ms", imports)),
        ],
        goals=_goals(cpu, live, imports),
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
            "`import famnb` loads no part before its first use; the second row is what a first client waits for. "
            "Bytecode is cached by the first round, as pip does it for the peers.",
        ],
    )


Figures = dict[str, dict[str, float | None]]


def _measure(peers: Sequence[str], url: str, streams: int, events: int, repeats: int) -> Figures:
    """Run these peers, and return for each the median of each figure."""
    runs: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for peer in harness.rotate(peers, repeats):
        command = [sys.executable, str(harness.HERE / "peers.py"), peer, url.format(events), str(streams), str(events)]
        runs[peer].append(harness.run_child(command))
    figures = {}
    for peer in peers:
        figures[peer] = {name: median([run[name] for run in runs[peer]]) for name in runs[peer][0]}
        cpu_s, count = figures[peer]["cpu_s"], figures[peer]["events"]
        figures[peer]["cpu_us_per_event"] = None if cpu_s is None or not count else cpu_s / count * 1e6
    return figures


def _imports(names: list[str], repeats: int) -> dict[str, float | None]:
    """The CPU time that a fresh interpreter needs for each statement, in milliseconds."""
    times: dict[str, list[float]] = collections.defaultdict(list)
    for name in harness.rotate(names, repeats + 1):
        code = f"import time; t = time.process_time(); {IMPORTS[name]}; print(1000 * (time.process_time() - t))"
        times[name].append(harness.run_child([sys.executable, "-c", code]))
    # The first round compiles and warms the file cache.
    return {name: median(times[name][1:] or times[name]) for name in names}


def _relative(head: str, unit: str, figures: dict[str, float | None]) -> list[dict[str, Any]]:
    """A row for each figure, beside that of famnb, which is the first."""
    base = next(iter(figures.values()))
    return [{head: name, unit: figure, "× famnb": ratio(figure, base)} for name, figure in figures.items()]


def _live_table(streams: int, live: Figures) -> Table:
    rows = [
        {
            "client": peer,
            "CPU µs/event": figures["cpu_us_per_event"],
            "lag p50 ms": figures["lag_p50_ms"],
            f"× {FAST}": ratio(figures["cpu_us_per_event"], live.get(FAST, {}).get("cpu_us_per_event")),
            "lag p99 ms": figures["lag_p99_ms"],
            "peak RSS MB": figures["peak_rss_mb"],
        }
        for peer, figures in live.items()
    ]
    return Table(f"Live, recorded: {streams} streams", rows)


def _goals(cpu: dict[str, float | None], live: Figures, imports: dict[str, float | None]) -> list[Goal]:
    loaded = live["famnb"]
    share = ratio(loaded["cpu_us_per_event"], live.get(FAST, {}).get("cpu_us_per_event"))
    return [
        Goal("openai's CPU per event, as a multiple of famnb's", 50, ratio(cpu.get("openai"), cpu["famnb"]), True),
        Goal("famnb's CPU per event, as a multiple of aiohttp+msgspec's", 2, ratio(cpu["famnb"], cpu.get(FAST))),
        Goal(f"the same live at {STREAMS} streams", 1.25, share),
        Goal(f"famnb's CPU per event at {STREAMS} streams, µs", 14, loaded["cpu_us_per_event"]),
        Goal(f"famnb's lag at {STREAMS} streams, p99, ms", 1, loaded["lag_p99_ms"]),
        Goal(
            "import famnb, as a part of import openai",
            1 / 3,
            ratio(imports["import famnb"], imports.get("import openai")),
        ),
        Goal("a first famnb.Client(...) in a fresh process, CPU ms", 200, imports.get(CLIENT)),
    ]
