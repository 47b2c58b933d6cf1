"""What a process loads for its first client, and what it does not."""

import subprocess
import sys

FOR_FIGURES_AND_FRAMES = {"tqdm", "pandas", "matplotlib"}
FOR_FEW_CALLS = {"docstring_parser", "tomllib", "statistics", "html", "difflib"}
# Httpx has loaded its command line, where that is installed, and with it some of them.
CODE = """
import sys, httpx
before = set(sys.modules)
import famnb
famnb.Client(base_url='http://a', api_key='k')
print(*set(sys.modules) - before)
"""


def test_a_client_loads_what_its_calls_need_and_nothing_else():
    """Psutil names the owner of a record: on the I/O thread, beside a busy cell, to load it would delay all streams."""
    loaded = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True).stdout.split()
    assert "psutil" in loaded
    assert not (FOR_FIGURES_AND_FRAMES | FOR_FEW_CALLS) & set(loaded)
