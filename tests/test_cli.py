"""The command line, as a shell sees it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

import famnb
from famnb import cli
from tests.support.exchanges import exchange

ROOT = Path(__file__).parents[1]
COMMANDS = ("lab", "serve", "check", "calls", "ledger", "scrub", "bench")


@pytest.fixture
def environment(server: famnb.service.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user whose service is the running one."""
    monkeypatch.setenv("FAM_API_KEY", server.key)
    monkeypatch.setenv("FAM_BASE_URL", server.url)


def test_check_prints_eight_passing_rows_and_records_them(environment: None, capsys: pytest.CaptureFixture[str]):
    """Four endpoints, whole and streamed: each row has a time to first token, and each call is in the ledger."""
    assert cli.main(["check"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(
        r"^(chat|responses|web|messages)\s+(whole|streamed)\s+fam-\S+\s+\w+\s+\d+\.\d{3} s", printed, re.M
    )
    assert rows == [(name, mode) for name in famnb.ENDPOINTS for mode in ("whole", "streamed")]
    assert "8 of 8 calls passed" in printed
    assert len(famnb.calls()) == 8


def test_check_fails_when_a_call_fails(
    environment: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A wrong key fails every call: the rows say why, the exit status is 1, and the key is not shown."""
    monkeypatch.setenv("FAM_API_KEY", "a-wrong-key")
    assert cli.main(["check"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("AuthenticationError") == 8
    assert "0 of 8 calls passed" in printed
    assert "a-wrong-key" not in printed


def test_calls_of_an_empty_ledger_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    """Before the first call there is nothing to show, and the command says how to make some."""
    assert cli.main(["calls"]) == 0
    assert "No calls are recorded yet" in capsys.readouterr().out


def test_calls_prints_the_latest_and_exports_all(environment: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The table shows the latest calls; the CSV file holds every column of every call."""
    cli.main(["check"])
    capsys.readouterr()
    assert cli.main(["calls", "-n", "3"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1 + 3 + 1
    assert re.search(r"web +fam-2-5-pro .* ~\d+ ", printed), (
        "a streamed web chat tells no usage: its count is an estimate"
    )
    file = tmp_path / "calls.csv"
    assert cli.main(["calls", "--csv", str(file)]) == 0
    exported = pd.read_csv(file)
    assert list(exported.columns) == list(famnb.calls().columns)
    assert len(exported) == 8


def test_a_file_that_cannot_be_written_is_a_message_not_a_traceback(capsys: pytest.CaptureFixture[str]):
    """The exit status is 1, and the sentence says which folder is missing."""
    assert cli.main(["calls", "--csv", "/nowhere/calls.csv"]) == 1
    assert re.fullmatch(r"famnb: .*/nowhere.*\n", capsys.readouterr().err)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A ledger with two calls."""
    with famnb.Ledger(tmp_path / "two.sqlite") as ledger:
        for _ in range(2):
            ledger.closed(exchange()).result()
    return ledger.path


def test_calls_fit_a_narrow_terminal(recorded: Path):
    """Columns give way to the width and are named below; in a file lines have any length."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    command = [sys.executable, "-m", "famnb", "calls", "--ledger", str(recorded)]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    assert subprocess.run(command, stdout=writer, env=environment, check=False).returncode == 0
    *table, _, without = os.read(reader, 4096).decode().splitlines()
    assert len(table) == 3
    assert max(map(len, table)) <= 60
    assert without == "without e2e_s, output_tokens, cost_usd, for which the terminal is too narrow"
    piped = subprocess.run(command, capture_output=True, text=True, env={**environment, "COLUMNS": "60"}, check=True)
    assert "cost_usd" in piped.stdout


def test_a_reader_that_leaves_is_no_trouble(recorded: Path):
    """`famnb calls | head -1`: no traceback and no message, and the status that shells know."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "famnb", "calls", "--csv", "-", "--ledger", str(recorded)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_csv_goes_to_standard_output(recorded: Path, capsys: pytest.CaptureFixture[str]):
    """`-` is not a file; nothing but the CSV is printed."""
    assert cli.main(["calls", "--csv", "-", "--ledger", str(recorded)]) == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "required: COMMAND"),
        ("nonsense", "invalid choice"),
        ("calls -n 0", "-n: expected a whole number of at least 1, got '0'"),
        ("calls -n many", "-n: expected a whole number"),
        ("calls --csv a --parquet b", "not allowed with"),
        ("ledger", "required: COMMAND"),
        ("ledger prune", "--older-than AGE, --keep N, or both"),
        ("ledger prune --keep -1", "--keep: expected a whole number of at least 0"),
        ("ledger prune --older-than 3", "an age such as 90d"),
        ("ledger prune --older-than 99999999999d", "longer than there have been calls"),
        ("scrub", "required: FILE.ipynb"),
        ("lab --port 99999", "--port: expected a whole number from 0 to 65535, got '99999'"),
        ("serve --port http", "--port: invalid int"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(arguments: str, words: str, capsys: pytest.CaptureFixture[str]):
    """Exit status 2, and never a traceback."""
    try:
        status = cli.main(arguments.split())
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["", *COMMANDS, "ledger info", "ledger prune", "ledger export", "ledger import"])
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]):
    """`--help` says what it does and every option what it is for."""
    with pytest.raises(SystemExit) as left:
        cli.main([*command.split(), "--help"])
    said = capsys.readouterr().out
    assert left.value.code == 0
    assert said.startswith(f"usage: famnb {command}".rstrip())
    assert not re.search(r"^  -\S+( \S+)?$\n(?!   )", said, re.M), "an option without words"


def test_serve_announces_itself_in_one_line_of_json():
    """The first line of standard output names the address, the key and the process, once it accepts connections."""
    command = [sys.executable, "-m", "famnb", "serve", "--key", "chosen-key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            said = json.loads(child.stdout.readline())
            assert said["key"] == "chosen-key"
            assert said["pid"] == child.pid
            host, port = said["url"].removeprefix("http://").split(":")
            socket.create_connection((host, int(port)), 5).close()
        finally:
            child.send_signal(signal.SIGTERM)
        assert child.wait(10) in (0, -signal.SIGTERM)


@pytest.mark.slow
def test_lab_opens_on_the_notebooks_with_the_service_running(tmp_path: Path):
    """`famnb lab` serves the notebooks folder, its kernels find the embedded service, and Ctrl-C ends both."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    environment |= {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "famnb", "lab", "--no-browser", "--port", str(port)]
    command += ["--", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True) as child:
        try:
            url = re.search(r"embedded service at (http://\S+)", child.stdout.readline())[1]
            listed = json.loads(patiently(f"http://127.0.0.1:{port}/api/contents"))
            assert "01-start.ipynb" in [entry["name"] for entry in listed["content"]]
            assert fetched(f"{url}/health")
        finally:
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.5)
            os.killpg(child.pid, signal.SIGINT)
            child.wait(30)
    with pytest.raises(OSError):
        fetched(f"{url}/health")


def fetched(url: str) -> bytes:
    """The body of a GET, without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        return answer.read()


def patiently(url: str) -> bytes:
    """The body of a GET, from a server that may still be starting."""
    for _ in range(300):
        try:
            return fetched(url)
        except OSError:
            time.sleep(0.1)
    return fetched(url)


def test_readme_and_ci_give_the_same_two_commands():
    """What README promises is what is run; a source archive has README alone."""
    readme = (ROOT / "README.md").read_text()
    assert 'pip install -e ".[lab]" && famnb lab' in readme
    assert 'pip install -e ".[test]" && pytest' in readme
    if not (ROOT / ".ci").exists():
        return
    ci = (ROOT / ".ci" / "run").read_text()
    assert re.search(r'^pip install .*-e "\.\[test\]"$', ci, re.MULTILINE)
    assert re.search(r"^pytest$", ci, re.MULTILINE)
