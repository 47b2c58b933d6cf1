"""Every notebook runs headless, offline and without a key, and its saved form holds no secret."""

from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

import famnb

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, server, monkeypatch, tmp_path):
    monkeypatch.setenv("FAMNB_SERVICE_URL", server.url)
    monkeypatch.setenv("FAMNB_SERVICE_KEY", server.key)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, store_widget_state=False, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    saved = nbformat.writes(notebook)
    assert server.key not in saved
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})], "the figures are in the file"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path):
    notebook = nbformat.read(path, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]


def test_the_start_notebook_is_short():
    assert len(nbformat.read(NOTEBOOKS[0], as_version=4).cells) < 20


@pytest.mark.full
def test_a_kernel_restarted_in_mid_stream_leaves_an_interrupted_row(monkeypatch: pytest.MonkeyPatch):
    with famnb.serve(fault="stall=5") as slow:
        monkeypatch.setenv("FAMNB_SERVICE_URL", slow.url)
        monkeypatch.setenv("FAMNB_SERVICE_KEY", slow.key)
        manager, kernel = start_new_kernel()
        try:
            kernel.execute_interactive("import famnb, time; client = famnb.connect()")
            kernel.execute_interactive("stream = client.stream(famnb.compose('messages', 'Hi'))")
            kernel.execute_interactive("while not stream.reply.text: time.sleep(0.01)")
            manager.restart_kernel()
            kernel.wait_for_ready(timeout=60)
            assert kernel.execute_interactive("import famnb")["content"]["status"] == "ok"
        finally:
            kernel.stop_channels()
            manager.shutdown_kernel()
    row = famnb.calls().iloc[-1]
    assert row["status"] == "interrupted"
    assert row["text_chars"] > 0
