"""A LiteLLM proxy in front of a service, until its standard input ends."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SERVICE = json.loads(sys.argv[1])
MODELS = {
    "chat-model": f"openai/fam-mini {SERVICE['url']}/v1",
    "claude-model": f"anthropic/fam-2-5-pro {SERVICE['url']}",
}


def model_entry(name: str, target: str) -> dict[str, object]:
    model, base = target.split()
    params = {"model": model, "api_base": base, "api_key": SERVICE["service_key"]}
    return {"model_name": name, "litellm_params": params, "model_info": {"supports_reasoning": True}}


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/liveliness") as response:
            return bool(response.status == 200)
    except urllib.error.URLError:
        return False


with tempfile.TemporaryDirectory() as folder:
    config = Path(folder) / "config.yaml"
    entries = [model_entry(name, target) for name, target in MODELS.items()]
    # JSON is YAML too.
    config.write_text(json.dumps({"model_list": entries, "general_settings": {"master_key": SERVICE["key"]}}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [str(Path(sys.executable).parent / "litellm"), "--config", str(config)]
    # Its prices come with it; it is not to look for newer ones.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None and not is_up(url):
            time.sleep(0.2)
        print(json.dumps({"url": url}), flush=True)
        sys.stdin.read()
    finally:
        process.terminate()
        process.wait()
