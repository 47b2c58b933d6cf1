"""Arguments of all commands: help, and wrong ones refused in a line."""

import re
import subprocess
import sys

import pytest

from famnb import cli

COMMANDS = ("lab", "serve", "check", "calls", "ledger", "prices", "scrub", "bench")


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_a_wrong_call_is_explained_in_a_line(arguments: str, message: str, capsys: pytest.CaptureFixture[str]):
    try:
        status = cli.main(arguments.split())
    except SystemExit as exit_request:
        status = exit_request.code
    assert status == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["", *COMMANDS, "ledger info", "ledger prune", "ledger export", "ledger import"])
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_request:
        cli.main([*command.split(), "--help"])
    help_text = capsys.readouterr().out
    assert exit_request.value.code == 0
    assert help_text.startswith(f"usage: famnb {command}".rstrip())
    assert not re.search(r"^  -\S+( \S+)?$\n(?!   )", help_text, re.M), "an option without a description"


@pytest.mark.parametrize("command", ["serve", "lab", "bench"])
def test_a_command_loads_nothing_of_the_others(command: str):
    """A service has no use for frames and figures, which would take more memory than itself."""
    code = f"""
import atexit, sys
from famnb import cli
heavy = ("pandas", "numpy", "matplotlib", "ipywidgets")
atexit.register(lambda: print([name for name in heavy if name in sys.modules]))
cli.main(["{command}", "--help"])
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines()[-1] == "[]"
