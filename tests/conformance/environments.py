"""The environments of clients and servers: a folder for each, made once and kept."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.clients import SCRIPTS, Client

_INSTALL_TIMEOUT_S = 600


class Environment:
    """Where one client is installed."""

    def __init__(self, client: Client, cache: Path) -> None:
        self._client = client
        self._folder = cache / client.script.partition(".")[0]
        self._is_own = not client.packages
        """Whether the client is installed beside the tests."""

    def install(self) -> None:
        """Install the newest packages of the registry, unless that was done before."""
        packages = json.dumps(sorted(self._client.packages))
        marker = self._folder / "installed.json"
        if self._is_own or (marker.exists() and marker.read_text() == packages):
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        if self._client.is_javascript:
            (self._folder / "package.json").write_text('{"private": true, "type": "module"}')
            self._run("npm", "install", "--no-audit", "--no-fund", *self._client.packages)
        else:
            self._run(sys.executable, "-m", "venv", str(self._folder))
            self._run(self._python, "-m", "pip", "install", "--only-binary", ":all:", *self._client.packages)
        marker.write_text(packages)

    def run(self, service: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return what the client's script says of each case at a service."""
        finished = subprocess.run(self._command(service), capture_output=True, text=True, timeout=150)
        reports = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith('{"case"')]
        assert reports, f"{self._client.script} ended with {finished.returncode}:\n{finished.stderr[-2000:]}"
        return {report.pop("case"): report for report in reports}

    @contextlib.contextmanager
    def serve(self, settings: dict[str, Any]) -> Iterator[str]:
        """Run a server's script, and yield the address that it prints once it answers."""
        process = subprocess.Popen(self._command(settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            lines = (line for line in process.stdout if line.startswith('{"url"'))
            yield str(json.loads(next(lines))["url"])
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def _command(self, argument: dict[str, Any]) -> list[str]:
        script = SCRIPTS / self._client.script
        if not self._client.is_javascript:
            return [self._python, str(script), json.dumps(argument)]
        # Imports are looked for beside the file that has them.
        for source in SCRIPTS.glob("*.mjs"):
            shutil.copy(source, self._folder)
        return ["node", str(self._folder / script.name), json.dumps(argument)]

    def version(self) -> str:
        """Return the version of the client that is installed."""
        name = self._client.packages[0].partition("[")[0] if self._client.packages else self._client.name
        if self._client.is_javascript:
            package = self._folder / "node_modules" / name / "package.json"
            return str(json.loads(package.read_text())["version"])
        code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
        return subprocess.run([self._python, "-c", code, name], capture_output=True, text=True).stdout.strip()

    @property
    def _python(self) -> str:
        return sys.executable if self._is_own else str(self._folder / "bin" / "python")

    def _run(self, *command: str) -> None:
        finished = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
        assert finished.returncode == 0, f"{' '.join(command)}:\n{finished.stderr[-2000:]}"
