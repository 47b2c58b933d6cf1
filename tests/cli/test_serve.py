"""`famnb serve`, as a shell sees it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys


def test_serve_announces_itself_in_one_line_of_json():
    """The first line of standard output names the address, the key and the process, once it accepts connections."""
    command = [sys.executable, "-m", "famnb", "serve", "--key", "chosen-key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            announcement = json.loads(child.stdout.readline())
            assert announcement["key"] == "chosen-key"
            assert announcement["pid"] == child.pid
            host, port = announcement["url"].removeprefix("http://").split(":")
            socket.create_connection((host, int(port)), 5).close()
        finally:
            child.send_signal(signal.SIGTERM)
        assert child.wait(10) in (0, -signal.SIGTERM)
