"""guidellm, which puts load on a service and counts the tokens that it answered with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import API, CAP, KEY, MODEL, URL, report

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
PROMPTS = ("Why is the sky blue?", "Why is the grass green?", "How far is the moon?", "What is a tide?")


def run(*, stream: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prompts.jsonl").write_text("\n".join(json.dumps({"prompt": prompt}) for prompt in PROMPTS))
        backend = {
            "kind": "openai_http",
            "target": URL,
            "model": MODEL,
            "api_key": KEY,
            "request_format": PATHS[API],
            "stream": stream,
            "max_tokens": CAP,
        }
        arguments = {
            "--backend": json.dumps(backend),
            "--profile": "kind=concurrent,streams=2",
            "--constraint": f"kind=max_requests,count={len(PROMPTS)}",
            "--data": f"kind=json_file,path={folder / 'prompts.jsonl'}",
            "--output": f"kind=json,path={folder / 'report.json'}",
        }
        command = [sys.executable, "-m", "guidellm", "run", "--disable-console", *sum(arguments.items(), ())]
        # It has no tokenizer and needs none, but would look for one in the network.
        finished = subprocess.run(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
        if finished.returncode:
            raise RuntimeError(finished.stderr[-2000:])
        (benchmark,) = json.loads((folder / "report.json").read_text())["benchmarks"]
    requests = benchmark["requests"]
    return {
        "requests": len(requests["successful"]),
        "failed": len(requests["errored"]) + len(requests["incomplete"]),
        "input_tokens": sum(request["prompt_tokens"] or 0 for request in requests["successful"]),
        "output_tokens": sum(request["output_tokens"] or 0 for request in requests["successful"]),
    }


report(run)
