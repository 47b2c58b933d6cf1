"""What a process loads for its first client, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


def run_code(code: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_a_client_does_not_load_the_command_line_of_httpx():
    """Nor what that needs; nor a progress bar."""
    heavy = "[name for name in ('httpx._main', 'rich', 'click', 'tqdm', 'pandas', 'matplotlib') if name in sys.modules]"
    assert run_code(f"import sys, famnb; famnb.Client(base_url='http://a', api_key='k'); print({heavy})") == "[]"


def test_a_client_loads_late_what_few_calls_need():
    """Tools' docstrings, prices' files, HTML and suggestions."""
    late = ("docstring_parser", "tomllib", "statistics", "html", "difflib")
    code = "import sys; before = set(sys.modules); import famnb; famnb.Client(base_url='http://a', api_key='k'); "
    assert run_code(f"{code}print([name for name in {late} if name in sys.modules and name not in before])") == "[]"


def test_a_client_has_loaded_what_the_owner_of_a_record_needs():
    """On the I/O thread, beside a busy cell, each file of it would keep all streams waiting for a turn."""
    code = "import sys, famnb; famnb.Client(base_url='http://a', api_key='k'); print('psutil' in sys.modules)"
    assert run_code(code) == "True"


def test_httpx_is_whole_for_everybody_else():
    """Its names are all there; a command line that was loaded before is left alone."""
    names = "sorted(name for name in httpx.__all__ if hasattr(httpx, name)) == sorted(httpx.__all__)"
    assert run_code(f"import famnb.client.transport, httpx; print({names})") == "True"
    assert run_code("import httpx; m = httpx.main; import famnb.client.transport; print(httpx.main is m)") == "True"


@pytest.mark.skipif(not (find_spec("click") and find_spec("rich")), reason="httpx's command line needs click and rich")
def test_the_command_line_of_httpx_is_there_for_who_asks_for_it():
    """What was kept from loading with httpx can be loaded afterwards."""
    assert run_code("import famnb.client.transport, httpx._main as cli; print(callable(cli.main))") == "True"
