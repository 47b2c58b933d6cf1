"""What `famnb serve --help` explains: each of its commands starts a service, and the options it names exist."""

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
import pytest

from famnb.cli import serve
from tests.support.fault_server import FaultServer, whole
from tests.support.service_requests import PATHS, minimal_body
from tests.support.upstream_servers import answer_hello

EXPLANATION = serve.__doc__ or ""
README = Path(__file__).parents[2] / "README.md"
COMMANDS = re.findall(r"^ *(famnb serve --upstream .*)$", EXPLANATION, re.MULTILINE)
MODELS = {"object": "list", "data": [{"id": "their-only-model", "object": "model"}]}


@contextlib.contextmanager
def run_command(command: str, engine: FaultServer) -> Iterator[subprocess.Popen[str]]:
    """One of the commands as a process, with the address of an engine that is here in place of its own."""
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
        process.communicate(timeout=60)


@pytest.mark.full
def test_each_command_in_front_of_an_engine_starts_and_answers():
    assert len(COMMANDS) == 4
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(FaultServer(choose=answer_hello, get=whole(MODELS))) for _ in COMMANDS]
        services = [stack.enter_context(run_command(*pair)) for pair in zip(COMMANDS, engines, strict=True)]
        for command, engine, service in zip(COMMANDS, engines, services, strict=True):
            assert service.stdout is not None
            url = json.loads(service.stdout.readline())["url"]
            with httpx.Client(base_url=url, headers={"authorization": "Bearer ours"}, timeout=60) as client:
                answers = {name: client.post(path, json=minimal_body(name)).text for name, path in PATHS.items()}
            assert [name for name, answer in answers.items() if "Hello, world." in answer] == list(PATHS)
            key = "Bearer theirs" if "ENGINE_KEY" in command else None
            assert {request.headers.get("authorization") for request in engine.requests} == {key}


def test_every_option_that_the_explanation_names_exists():
    text = subprocess.run(
        [sys.executable, "-m", "famnb", "serve", "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    options, line, below = text.partition(EXPLANATION.splitlines()[2])
    assert line
    assert COMMANDS[0] in below
    assert COMMANDS[0] in README.read_text()
    # What stands in the lines of other programs are those programs' own.
    ours = [text for text in EXPLANATION.splitlines() if "vllm" not in text and "llama-server" not in text]
    named = set(re.findall(r"(?<!\S)(--[a-z-]+)", "\n".join(ours)))
    named -= {"--head", "--address", "--reasoning-parser", "--enable-auto-tool-choice", "--tool-call-parser"}
    assert {"--upstream-model", "--store", "--fault", "--concurrency", "--compat"} <= named
    assert named <= set(re.findall(r"--[a-z-]+", options))
