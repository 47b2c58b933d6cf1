"""What a process loads for its first client, and what it does not."""

import subprocess
import sys


def run_code(code: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_a_client_does_not_load_what_only_figures_and_frames_need():
    heavy = "[name for name in ('tqdm', 'pandas', 'matplotlib') if name in sys.modules]"
    assert run_code(f"import sys, famnb; famnb.Client(base_url='http://a', api_key='k'); print({heavy})") == "[]"


def test_a_client_loads_late_what_few_calls_need():
    late = ("docstring_parser", "tomllib", "statistics", "html", "difflib")
    # Httpx has loaded its command line, where that is installed, and with it some of them.
    code = (
        "import sys, httpx; before = set(sys.modules); import famnb; famnb.Client(base_url='http://a', api_key='k'); "
    )
    assert run_code(f"{code}print([name for name in {late} if name in sys.modules and name not in before])") == "[]"


def test_a_client_has_loaded_what_the_owner_of_a_record_needs():
    """On the I/O thread, beside a busy cell, each file of it would keep all streams waiting for a turn."""
    code = "import sys, famnb; famnb.Client(base_url='http://a', api_key='k'); print('psutil' in sys.modules)"
    assert run_code(code) == "True"
