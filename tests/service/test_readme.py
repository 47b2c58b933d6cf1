"""What the README says of the service: each of its commands starts one, and the options it names exist."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.support.fault_server import FaultServer, whole
from tests.support.service_requests import PATHS, minimal_body
from tests.support.upstream_servers import answer_hello

README = (Path(__file__).parents[2] / "README.md").read_text()


COMMANDS = re.findall(r"^famnb serve --upstream .*$", README, re.MULTILINE)


MODELS = {"object": "list", "data": [{"id": "their-only-model", "object": "model"}]}


@contextlib.contextmanager
def run_command(command: str, engine: FaultServer) -> Iterator[subprocess.Popen[str]]:
    """A command of the README as a process, with the address of an engine that is here in place of its own."""
    arguments = shlex.split(re.sub(r"http://\S+", engine.url, command))[1:]
    process = subprocess.Popen(
        [sys.executable, "-m", "famnb", *arguments, "--key", "ours"],
        stdout=subprocess.PIPE,
        env={**os.environ, "ENGINE_KEY": "theirs"},
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_each_command_in_front_of_an_engine_starts_and_answers() -> None:
    """llama.cpp, Ollama, vLLM on one machine and on many: all endpoints answer, and the key goes where it should."""
    assert len(COMMANDS) == 4
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(FaultServer(choose=answer_hello, get=whole(MODELS))) for _ in COMMANDS]
        services = [stack.enter_context(run_command(*pair)) for pair in zip(COMMANDS, engines, strict=True)]
        for command, engine, service in zip(COMMANDS, engines, services, strict=True):
            assert service.stdout is not None
            url = json.loads(service.stdout.readline())["url"]
            with httpx.Client(base_url=url, headers={"authorization": "Bearer ours"}, timeout=20) as client:
                answers = {name: client.post(path, json=minimal_body(name)).text for name, path in PATHS.items()}
            assert [name for name, answer in answers.items() if "Hello, world." in answer] == list(PATHS)
            key = "Bearer theirs" if "ENGINE_KEY" in command else None
            assert {request.headers.get("authorization") for request in engine.requests} == {key}


def test_every_option_that_the_readme_names_exists() -> None:
    """In the sections about the service, as `famnb serve --help` lists them."""
    sections = README.partition("## The local service")[2].partition("## What the numbers mean")[0]
    famnb = [line for line in sections.splitlines() if "famnb serve" in line or line.startswith(("- ", "  "))]
    named = set(re.findall(r"`(?:famnb serve )?(--[a-z-]+)", "\n".join(famnb)))
    listed = subprocess.run(
        [sys.executable, "-m", "famnb", "serve", "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert {"--upstream-model", "--store", "--fault", "--concurrency"} <= named
    assert named <= set(re.findall(r"--[a-z-]+", listed))
