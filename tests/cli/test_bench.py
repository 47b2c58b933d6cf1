"""The benchmarks run, and say what they found in the shape that is documented."""

import json
from pathlib import Path

import pytest

from famnb import cli


# Every benchmark starts its peers as processes, one after another: some minutes on a loaded machine.
@pytest.mark.full
def test_quick_benchmarks_run_and_their_json_has_every_part(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert cli.main(["bench", "--list"]) == 0
    names = [line.split()[0] for line in capfd.readouterr().out.splitlines()]
    assert {"client", "service"} <= set(names)
    assert cli.main(["bench", "--quick", "--json", str(tmp_path / "figures.json")]) == 0
    report = json.loads((tmp_path / "figures.json").read_text())
    assert set(report) == {"facts", "quick", "results"}
    assert {"cpu", "cores", "load_before", "python", "versions"} <= set(report["facts"])
    assert [result["name"] for result in report["results"]] == names
    for result in report["results"]:
        assert set(result) == {"name", "title", "tables", "goals", "notes"}
        for table in result["tables"]:
            assert table["rows"], table["title"]
            assert len({tuple(row) for row in table["rows"]}) == 1, table["title"]
        assert all({"claim", "limit", "value", "met"} <= set(goal) for goal in result["goals"])
    service = next(result for result in report["results"] if result["name"] == "service")
    assert [row["wrong streams"] for table in service["tables"] for row in table["rows"]] == [0] * 2


def test_an_unknown_benchmark_is_refused_and_the_known_ones_are_named(capfd: pytest.CaptureFixture[str]):
    assert cli.main(["bench", "no-such-thing"]) == 2
    assert "there is no benchmark no-such-thing; there are client, " in capfd.readouterr().err
