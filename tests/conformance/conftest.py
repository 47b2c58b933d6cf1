"""The folder of foreign clients and servers, and the matrix of what came of their tests."""

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cache(request: pytest.FixtureRequest) -> Path:
    """The folder in which clients and servers are kept."""
    folder = os.environ.get("CONFORMANCE_CACHE", "")
    return Path(folder) if folder else request.config.cache.mkdir("conformance")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the matrix: a row for each client and service, a column for each case."""
    rows: defaultdict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for outcome, word in {"passed": "ok", "failed": "FAILED", "xfailed": "not offered"}.items():
        for report in terminalreporter.stats.get(outcome, ()):
            properties = dict(report.user_properties)
            if "case" in properties:
                row = properties["client"], properties["version"], properties["service"]
                rows[row][properties["case"]] = word
    columns = list(dict.fromkeys(case for row in rows.values() for case in row))
    if not rows:
        return
    terminalreporter.section("clients")
    terminalreporter.write_line(" | ".join(("client", "version", "service", *columns)))
    for row, cells in sorted(rows.items()):
        terminalreporter.write_line(" | ".join((*row, *(cells.get(case, "-") for case in columns))))
