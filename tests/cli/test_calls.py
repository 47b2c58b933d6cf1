"""`famnb calls`: the table and the files."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import famnb
from famnb import cli


def test_calls_of_an_empty_ledger_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["calls"]) == 0
    assert "No calls are recorded yet" in capsys.readouterr().out


def test_calls_prints_the_latest_and_exports_all(environment: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["check"])
    capsys.readouterr()
    assert cli.main(["calls", "-n", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3 + 1
    assert cli.main(["calls"]) == 0
    estimated = re.findall(r"(\w+) +fam-\S+ .* (?:≈|at most )\d+ ", capsys.readouterr().out)
    assert estimated == ["chat"], "a streamed chat alone tells no usage, asked or not: its count is an estimate"
    file = tmp_path / "calls.csv"
    assert cli.main(["calls", "--csv", str(file)]) == 0
    exported = pd.read_csv(file)
    assert list(exported.columns) == list(famnb.calls().columns)
    assert len(exported) == len(famnb.calls())


def test_a_file_that_cannot_be_written_is_a_message_not_a_traceback(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["calls", "--csv", "/nowhere/calls.csv"]) == 1
    assert re.fullmatch(r"famnb: .*/nowhere.*\n", capsys.readouterr().err)


def test_a_reader_that_leaves_is_no_trouble(ledger_path: Path):
    """`famnb calls | head -1`: no traceback and no message, and the status that shells know."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "famnb", "calls", "--csv", "-", "--ledger", str(ledger_path)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_csv_goes_to_standard_output(ledger_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["calls", "--csv", "-", "--ledger", str(ledger_path)]) == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["calls", "--csv", "FILE.csv"],
        ["calls", "--parquet", "FILE.parquet"],
        ["ledger", "export", "FILE.csv"],
        ["ledger", "export", "--frame", "FILE.parquet"],
    ],
    ids=" ".join,
)
def test_an_export_has_the_columns_of_the_frame_and_takes_its_filters(
    command: list[str], ledger_path: Path, tmp_path: Path
):
    words = [word.replace("FILE", str(tmp_path / "calls")) for word in command]
    assert cli.main([*words, "--ledger", str(ledger_path), "--status", "failed", "--since", "7d"]) == 0
    file = next(tmp_path.glob("calls.*"))
    exported = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    assert (list(exported), len(exported)) == (list(famnb.calls(ledger_path)), 0)


def test_a_lossless_export_takes_filters_too(ledger_path: Path, tmp_path: Path):
    model = famnb.calls(ledger_path)["model"].iloc[0]
    for name, expected in ((model, 2), ("another", 0)):
        file = tmp_path / f"{name}.sqlite"
        assert cli.main(["ledger", "export", str(file), "--model", name, "--ledger", str(ledger_path)]) == 0
        assert len(famnb.calls(file)) == expected
