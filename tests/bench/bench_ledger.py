"""The ledger: how fast and lean a frame of many calls is."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import HERE, Goal, Result, Table, ratio, run_child

from famnb.record import schema

TITLE = "frames of many calls"

READ = {
    "famnb.calls()": "import famnb; frame = famnb.calls(sys.argv[1] + '.sqlite')",
    "famnb.calls(columns=3 of them)": "import famnb; frame = famnb.calls(sys.argv[1] + '.sqlite', "
    "columns=['model', 'ttft_s', 'output_tokens'])",
    "pandas.read_sql": "import sqlite3, pandas; frame = pandas.read_sql('SELECT * FROM calls', "
    "sqlite3.connect(sys.argv[1] + '.sqlite'))",
}
"""Each in a process of its own; the imports are not timed."""
LIMITS = {
    (100_000, 0, "time (s)"): 1.5,
    (1_000_000, 0, "time (s)"): 10,
    (1_000_000, 0, "peak (MB)"): 800,
    (1_000_000, 1, "time (s)"): 2,
}
"""Goals by the number of calls, the place in `READ` and the figure."""


def run(quick: bool) -> Result:
    """Measure frames of 100,000 and 1,000,000 calls."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = (1000,) if quick else (100_000, 1_000_000)
        reads = dict(list(READ.items())[1:3]) if quick else READ
        frames = {size: _frames(Path(folder), size, reads) for size in sizes}
    goals = [
        Goal(f"{row['way']} of {size:,} calls, {figure}", limit, row[figure])
        for (size, index, figure), limit in LIMITS.items()
        if size in frames
        for row in [frames[size][index]]
    ]
    tables = [Table(f"A frame of {size:,} calls", rows) for size, rows in frames.items()]
    note = "Peak memory is the process's less that of its imports; famnb also estimates missing counts and costs."
    return Result(tables=tables, goals=goals, notes=[note])


def _frames(folder: Path, size: int, ways: Mapping[str, str]) -> list[dict[str, Any]]:
    """Time and peak memory of each way to a frame of the same calls."""
    stem = folder / f"calls-{size}"
    _fill(stem, size)
    reads = [(method, _read(code, stem)) for method, code in ways.items()]
    for file in folder.glob(f"{stem.name}*"):
        file.unlink()
    base = reads[0][1]["time (s)"]
    return [{"way": method, **figures, "× famnb": ratio(figures["time (s)"], base)} for method, figures in reads]


def _read(code: str, stem: Path) -> dict[str, float]:
    imports, _, action = code.rpartition("; ")
    script = f"""
import json, psutil, sys, time
sys.path.insert(0, {str(HERE)!r})
import harness
{imports}
getattr(globals().get("famnb"), "calls", None)
before = psutil.Process().memory_info().rss
began = time.perf_counter()
{action}
seconds, peak_mb = time.perf_counter() - began, harness.peak_rss_mb() - before / (1 << 20)
print(json.dumps([seconds, peak_mb, int(frame.memory_usage(deep=True).sum()) / 1e6]))
"""
    figures = run_child([sys.executable, "-c", script, str(stem)], timeout_s=600)
    return dict(zip(("time (s)", "peak (MB)", "frame (MB)"), figures, strict=True))


def _fill(stem: Path, size: int) -> None:
    """A ledger of so many calls; a quarter without usage, so that it is estimated."""
    connection = schema.open_to_write(stem.with_suffix(".sqlite"))
    chance = random.Random(1)
    names = list(_row(0, chance))
    sql = f"INSERT INTO calls ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    connection.execute("BEGIN")
    for number in range(size):
        connection.execute(sql, tuple(_row(number, chance).values()))
    connection.execute("COMMIT")
    connection.close()


def _row(number: int, chance: random.Random) -> dict[str, Any]:
    endpoint = ("chat", "responses", "web", "messages")[number % 4]
    first, sent, reply = chance.lognormvariate(-1, 0.5), chance.randrange(10, 4000), chance.randrange(2, 900)
    end = first + chance.expovariate(0.5)
    known = endpoint != "web"
    source = "reported" if known else "absent"
    counts = {"input_tokens": sent, "output_tokens": reply, "total_tokens": sent + reply}
    cost = f"{(sent * 0.25 + reply) / 1e6:f}"
    labels = {"experiment": f"e-{number // 20_000}", "variant": f"v{number % 12}", "cell": f"{number:016x}"}
    return {
        "id": f"call_{number:024x}",
        "started_us": 1_767_225_600_000_000 + number * 1_000_000,
        **{"status": "completed", "endpoint": endpoint, "model": "fam-2-5-pro" if number % 3 else "fam-mini"},
        **{"url": "http://127.0.0.1:8000/v1/chat/completions", "request_key": f"{number % 5000:032x}"},
        "prompt": f"Question {number} about the sky: " + "why " * 30,
        **labels,
        "labels": json.dumps(labels),
        **{"attempts": 1, "http_status": 200, "request_id": f"req_{number:020x}", "service": "sim", "streamed": 1},
        "response_headers": json.dumps([["content-type", "text/event-stream"], ["x-request-id", f"req_{number:020x}"]]),
        **{"headers_ns": round(first * 5e8), "end_ns": round(end * 1e9), "reply_id": f"r{number}"},
        **{"finish_reason": "stop", "stop_reason": "stop", "complete": 1, "warnings": "[]"},
        **{"input_chars": sent * 4, "text_chars": reply * 4, "thinking_chars": 0, "output_chars": reply * 4},
        **{"ttfb_s": first / 2, "ttft_s": first, "ttfa_s": first, "e2e_s": end, "tpot_s": (end - first) / (reply - 1)},
        **{"icl_p50_s": 0.02, "icl_p95_s": chance.random(), "icl_max_s": chance.random(), "output_tps": reply / end},
        **{count: value if known else None for count, value in counts.items()},
        **{f"{count}_source": source for count in counts},
        **dict.fromkeys(("reasoning_tokens_source", "cached_tokens_source", "cache_write_tokens_source"), "absent"),
        **dict.fromkeys(("cost_usd", "cost_low_usd", "cost_high_usd"), cost),
    }
