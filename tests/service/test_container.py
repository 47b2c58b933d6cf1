"""The container's files: what they run and copy exists. No container is built here."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from famnb.cli import _make_parser

FOLDER = Path(__file__).parents[2] / "famnb" / "service" / "container"
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())


def instruction(name: str) -> list[str]:
    """The JSON list of an instruction in exec form, which no shell reads."""
    match = re.findall(rf"^(?:\s+)?{name} (\[.*\])$", CONTAINERFILE, re.MULTILINE)[-1]
    return [str(word) for word in json.loads(match)]


def test_the_command_and_its_options_exist():
    program, *command = instruction("ENTRYPOINT")
    options = _make_parser(["serve"]).parse_args([*command, *COMPOSE["services"]["famnb"]["command"]])
    assert (program, options.host, options.port) == ("famnb", "0.0.0.0", 8000)
    assert options.upstream == "http://engine:8080"


def test_what_is_copied_is_there():
    root = (FOLDER / COMPOSE["services"]["famnb"]["build"]["context"]).resolve()
    copied = [shlex.split(line)[1:-1] for line in CONTAINERFILE.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert all((root / source).exists() for sources in copied for source in sources)
    assert (root / COMPOSE["services"]["famnb"]["build"]["dockerfile"]).samefile(FOLDER / "Containerfile")
