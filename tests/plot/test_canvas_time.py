"""Times on the axis are in UTC."""

import pytest

from tests.plot.plot_figures import DRAWS
from tests.support.plot_frames import many_calls


@pytest.mark.parametrize("name", ["cost", "throughput"])
def test_what_is_said_to_be_utc_is_utc(name: str):
    frame = many_calls(20)
    tokyo = frame.assign(started_at=frame["started_at"].dt.tz_convert("Asia/Tokyo"))
    assert DRAWS[name](tokyo).axes[0].get_xlabel() == DRAWS[name](frame).axes[0].get_xlabel()
    assert f"{frame['started_at'].min():%H:%M} UTC" in DRAWS[name](tokyo).axes[0].get_xlabel()
