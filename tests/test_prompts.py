"""Saved prompts: versions by name, in the ledger's file."""

import concurrent.futures

import pytest

import famnb
from famnb.errors import InvalidRequest, UnknownName


def test_each_text_is_a_version_and_the_latest_is_the_default():
    famnb.prompts.save("greeting", "Say hello to {name}.", note="the first try")
    saved = famnb.prompts.save("greeting", "Say hello to {name}, in French.")
    assert (saved.name, saved.version, saved.note) == ("greeting", 2, "")
    assert famnb.prompts.get("greeting") == "Say hello to {name}, in French."
    assert famnb.prompts.get("greeting", version=1).note == "the first try"
    frame = famnb.prompts.list()
    assert frame[["name", "version", "text", "note"]].values.tolist() == [
        ["greeting", 1, "Say hello to {name}.", "the first try"],
        ["greeting", 2, "Say hello to {name}, in French.", ""],
    ]
    assert frame["saved_at"].is_monotonic_increasing


def test_saving_the_latest_text_again_makes_no_version():
    for note in ("", "works well"):
        assert famnb.prompts.save("tides", "Explain tides.", note=note).version == 1
    assert famnb.prompts.list()["note"].tolist() == ["works well"]


def test_two_versions_are_compared_line_by_line():
    famnb.prompts.save("tides", "Explain tides.\nBe brief.")
    famnb.prompts.save("tides", "Explain tides.\nUse <b> for **words**.")
    difference = famnb.prompts.diff("tides", 1, 2)
    assert difference.splitlines()[-3:] == [" Explain tides.", "-Be brief.", "+Use <b> for **words**."]
    assert "+Use &lt;b&gt; for" in difference._repr_html_()
    assert famnb.prompts.diff("tides", 2, 2) == ""


def test_a_version_or_all_of_them_are_deleted():
    for text in ("one", "two", "three"):
        famnb.prompts.save("count", text)
    famnb.prompts.delete("count", 2)
    assert famnb.prompts.list("count")["version"].tolist() == [1, 3]
    famnb.prompts.delete("count")
    assert famnb.prompts.list().empty
    with pytest.raises(UnknownName, match="there are none"):
        famnb.prompts.delete("count")


def test_saved_prompts_are_used_as_texts(tmp_path):
    famnb.prompts.save("tides", "Explain {thing}.")
    famnb.prompts.save("tides", "Explain {thing} briefly.")
    versions = [famnb.prompts.get("tides", version=number) for number in (1, 2)]
    assert famnb.compose("chat", versions[0]).body()["messages"][-1]["content"] == "Explain {thing}."
    assert famnb.Composer(famnb.Client(base_url="http://127.0.0.1:9", api_key="none"), prompt=versions[0]).request
    plan = famnb.Experiment(versions, name="versions").plan()
    assert sorted(plan["prompt_id"]) == ["tides v1", "tides v2"]
    plan = famnb.Experiment([{"thing": "tides"}], template=versions[1], name="rows").plan()
    assert plan["prompt"].tolist() == ["Explain tides briefly."]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: famnb.prompts.get("tide"), UnknownName, "no prompt 'tide' .* did you mean 'tides'"),
        (lambda: famnb.prompts.get("tides", 3), UnknownName, "no version 3; it has 1"),
        (lambda: famnb.prompts.save(" ", "text"), InvalidRequest, "name: expected"),
        (lambda: famnb.prompts.save("a\nb", "text"), InvalidRequest, "on one line"),
        (lambda: famnb.prompts.save("empty", ""), InvalidRequest, "text: expected"),
        (lambda: famnb.prompts.save("key", "sk-abcdefghijklmnop123456"), InvalidRequest, "looks like a key"),
    ],
)
def test_what_cannot_be_is_refused(call, error, message):
    famnb.prompts.save("tides", "Explain tides.")
    with pytest.raises(error, match=message):
        call()


def test_versions_that_are_saved_at_once_have_numbers_of_their_own(tmp_path):
    ledgers = [famnb.Ledger(tmp_path / "prompts.sqlite") for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(famnb.prompts.save, "race", f"text {n}", ledger=ledger) for n, ledger in enumerate(ledgers)]
    assert sorted(job.result().version for job in jobs) == [1, 2, 3, 4]
