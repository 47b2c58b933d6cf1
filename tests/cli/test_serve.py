"""`famnb serve`, as a shell sees it."""

import json
import os
import signal
import socket
import subprocess
import sys

import httpx


def test_serve_announces_itself_in_one_line_of_json_and_takes_several_keys_and_limits():
    options = ["--key", "one", "--key", "two", "--body-limit", "1000"]
    command = [sys.executable, "-m", "famnb", "serve", *options, "--upload-timeout", "0.2"]
    environment = {**os.environ, "FAMNB_SERVICE_KEY": "from-the-environment"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        try:
            announcement = json.loads(child.stdout.readline())
            url = announcement["url"]
            assert (announcement["key"], announcement["pid"]) == ("one", child.pid)
            body = {"model": "fam-mini", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
            statuses = {}
            for key in ("one", "two", "from-the-environment"):
                headers = {"authorization": f"Bearer {key}"}
                statuses[key] = httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code
            assert statuses == {"one": 200, "two": 200, "from-the-environment": 401}
            large = {**body, "user": "x" * 1000}
            headers = {"authorization": "Bearer one"}
            assert httpx.post(f"{url}/v1/chat/completions", json=large, headers=headers).status_code == 413
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as slow:
                head = "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer one\r\ncontent-length: 9\r\n\r\n"
                slow.sendall(head.encode())
                slow.settimeout(20)
                assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
        finally:
            child.send_signal(signal.SIGTERM)
        assert child.wait(60) in (0, -signal.SIGTERM)
