"""The container's files: what they run exists, and the health check says what it should. No container is built here."""

import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from famnb.cli import _make_parser
from famnb.service import Server

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


def test_the_service_is_not_root_s():
    assert re.findall(r"^USER (\S+)$", CONTAINERFILE, re.MULTILINE) == ["10001"]


def test_what_is_copied_is_there():
    root = (FOLDER / COMPOSE["services"]["famnb"]["build"]["context"]).resolve()
    copied = [shlex.split(line)[1:-1] for line in CONTAINERFILE.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert all((root / source).exists() for sources in copied for source in sources)
    assert (root / COMPOSE["services"]["famnb"]["build"]["dockerfile"]).samefile(FOLDER / "Containerfile")


def test_the_health_check_tells_a_service_from_none(server: Server):
    _, *arguments = instruction("CMD")
    with socket.create_server(("127.0.0.1", 0)) as free:
        unused = free.getsockname()[1]

    def check(port: int) -> int:
        at_port = [argument.replace(":8000", f":{port}") for argument in arguments]
        return subprocess.run([sys.executable, *at_port], capture_output=True, timeout=30).returncode

    assert check(int(server.url.rpartition(":")[2])) == 0
    assert check(unused) != 0


def test_prometheus_asks_the_service_by_its_name():
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert (host in COMPOSE["services"], port) == (True, instruction("ENTRYPOINT")[5])
    secret = job["authorization"]["credentials_file"].rpartition("/")[2]
    assert secret in COMPOSE["secrets"]
    assert secret in COMPOSE["services"]["prometheus"]["secrets"]
