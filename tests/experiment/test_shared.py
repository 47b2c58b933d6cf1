"""An experiment in a report, opened again."""

from pathlib import Path

import pandas as pd
import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.service import Server

KEY = "sk-abcdefghijklmnop123456"
SCORERS = [
    famnb.scorers.contains("a"),
    famnb.scorers.function(lambda reply, _: len(reply.text), name="length"),
    famnb.scorers.judge("fam-2-5-pro"),
]


@pytest.fixture
def experiment(client: famnb.Client) -> famnb.Experiment:
    """An experiment of eight cells, scored and voted on, which a note and a key of somebody are in."""
    experiment = famnb.Experiment(
        [{"id": "sky", "prompt": "Why is the sky blue?", "expected": "a"}, f"Is {KEY} a key?"],
        famnb.grid(model=["fam-2-5-pro", "fam-mini"]),
        repeats=2,
        scorers=SCORERS,
        name="shared",
        client=client,
        max_tokens=50,
    )
    experiment.run()
    experiment.score()
    client.ledger.note(experiment.answers()[0].call_id, "good")
    ballot = experiment.vote()
    ballot.vote("left")
    return experiment


def test_an_experiment_is_opened_as_it_was_and_not_run(
    experiment: famnb.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
):
    file = experiment.report(tmp_path / "report.html")
    frame, summary, votes = experiment.frame(), str(experiment.summary()), experiment.votes()
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "another.sqlite"))
    opened = famnb.open(file)
    private = ["url", "request_id", "prompt"]
    pd.testing.assert_frame_equal(opened.frame().drop(columns=private), frame.drop(columns=private))
    assert opened.frame()["note"].dropna().tolist() == ["good"]
    assert str(opened.summary()) == summary
    pd.testing.assert_frame_equal(opened.votes(), votes)
    assert famnb.calls().empty
    with pytest.raises(InvalidRequest, match="opened from a file"):
        opened.run()
    data = file.read_text().partition("<template")[2]
    assert [text for text in (KEY, server.key, server.url) if text in data] == []
    assert not any(KEY in call.reply.text for call in opened.ledger.each(opened.frame()["call_id"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<p>nothing</p>", "holds nothing to open"),
        ('<template id="famnb-data">{</template>', "damaged"),
        ('<template id="famnb-data">{"kind": "experiment"}</template>', "damaged"),
        ('<template id="famnb-data">{"kind": "film"}</template>', "a 'film', which this famnb does not know"),
    ],
)
def test_what_is_no_saved_file_is_refused(text: str, message: str, tmp_path: Path):
    (tmp_path / "page.html").write_text(text)
    with pytest.raises(InvalidRequest, match=message):
        famnb.open(tmp_path / "page.html")
