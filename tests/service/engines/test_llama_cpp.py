"""llama.cpp in a child process, with a tiny model of random weights made here."""

import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from famnb.errors import ConnectError, InvalidRequest
from famnb.service.engines.llama_cpp import check_memory, plan_engine, start_engine
from tests.support.tiny_engine import write_model
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path, context=1024)
    return path


def test_an_engine_answers_whoever_has_its_key(model: Path):
    child, url, key = start_engine(plan_engine("tiny", model))
    try:
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
        answers = {
            text: httpx.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {text}"})
            for text in (key, "another")
        }
        assert answers[key].json()["usage"]["completion_tokens"] <= 4
        assert answers["another"].status_code == 401
        assert key not in " ".join(psutil.Process(child.pid).cmdline())
    finally:
        child.close()
    assert not psutil.pid_exists(child.pid)


def test_an_engine_ends_with_a_process_that_is_killed(model: Path):
    script = (
        "import sys, time; from pathlib import Path; from famnb.service.engines.llama_cpp import *; "
        "child, _, _ = start_engine(plan_engine('tiny', Path(sys.argv[1]))); print(child.pid, flush=True); "
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(model)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_model_that_does_not_load_is_an_error_with_the_engines_reason(model: Path, tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model.read_bytes()[:-20_000])
    with pytest.raises(ConnectError, match=r"broken\.gguf did not load: .*not within the file bounds"):
        start_engine(plan_engine("broken", broken))


def test_too_many_tokens_and_too_little_memory_are_refused(model: Path):
    with pytest.raises(InvalidRequest, match="reads at most 1,024 tokens, got 2,000"):
        plan_engine("tiny", model, context=2000)
    plan = plan_engine("tiny", model, context=512, parallel=3)
    assert (plan.context, plan.parallel) == (512, 3)
    with pytest.raises(InvalidRequest, match=r"tiny \(3 x 512 tokens\) would take about .* 1\.0 MB are free"):
        check_memory([plan], available=2**20)
    assert "are free" in check_memory([plan], available=2**30)
