"""Bytes get the time at which the kernel received them, as exactly as it knows, whenever they are read."""

import contextlib
import itertools
import select
import socket
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.client.transport.kernel_stamps import (
    MAX_RUNS,
    UNSURE_NS,
    ReceiveBuffer,
    SocketReader,
    StampClock,
    StampedReader,
    find_runs,
    make_reader,
    measure_offset,
    read_tcp_counters,
    request_stamps,
)
from famnb.timing import Arrival
from tests.support.waiting import wait_until

needs_stamps = pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what TCP brings")


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.sampled_from([None, -600, -1, 0, 1, 700]))
def test_each_run_of_bytes_keeps_its_stamp(lengths: list[int], error: int | None):
    """Whatever waits, the places are found at which the stamp changes, however good or bad the guesses are.

    For one segment a single look is enough, with right guesses three for each.
    """
    ends = list(itertools.accumulate(lengths))
    looks: list[int] = []

    def stamp_at(offset: int) -> int:
        looks.append(offset)
        return next(stamp for stamp, end in enumerate(ends) if offset <= end)

    def guess_end(start: int) -> int:
        return start if error is None else next(end for end in ends if end > start) + error

    runs = find_runs(ends[-1], len(ends) - 1, stamp_at, guess_end)
    assert list(runs) == [(end, stamp) for stamp, end in enumerate(ends)]
    assert all(1 <= offset <= ends[-1] for offset in looks)
    assert len(looks) <= (3 if error == 0 else 21) * len(lengths)
    if len(lengths) == 1:
        assert looks == [1]


def test_the_end_of_a_write_is_guessed():
    """That of an event, with the chunk's own end if there is one, or of an encrypted record; none far ahead."""
    buffer = ReceiveBuffer(20_000)
    record = b"\x17\x03\x03\x01\x00" + bytes(256)
    waiting = b"data: 1\n\n" + b"b\r\ndata: 2\n\n\r\n" + record + bytes(10_000) + b"\n\n"
    buffer.view[: len(waiting)] = waiting
    assert buffer.guess_end(0) == 9
    assert buffer.guess_end(9) == 9 + 14
    assert buffer.guess_end(23) == 23 + len(record)
    assert buffer.guess_end(23 + len(record)) <= 23 + len(record)
    buffer.view[26:28] = (16_000).to_bytes(2)
    assert buffer.guess_end(23) == 23


def test_of_a_body_that_drips_only_the_first_bytes_are_looked_at():
    """The kernel walks to a byte from the first: 60,000 segments looked at from end to end would take minutes."""
    looks: list[int] = []

    def stamp_at(offset: int) -> int:
        looks.append(offset)
        return offset

    runs = list(itertools.islice(find_runs(60_000, 60_000, stamp_at), MAX_RUNS))
    assert runs == [(offset, offset) for offset in range(1, MAX_RUNS + 1)]
    assert max(looks) <= MAX_RUNS + 2


def test_stamps_may_go_backwards_or_be_missing():
    """A stepped clock, and a socket that had no stamps yet: each run is a run."""
    for stamps in ([5, 3, 4], [None, 7], [7, None]):
        assert list(find_runs(len(stamps), stamps[-1], lambda offset, stamps=stamps: stamps[offset - 1])) == list(
            enumerate(stamps, 1)
        )


def test_the_narrowest_look_at_both_clocks_counts():
    """Brackets of 10, 2 and 8 ns around the wall clock: the second one tells the offset."""
    monotonic = iter([100, 110, 200, 202, 300, 308])
    wall = iter([1105, 1201, 1300])
    assert measure_offset(lambda: next(wall), lambda: next(monotonic), tries=3) == 201 - 1201


class Clocks:
    """A monotonic clock and a wall clock ahead of it, both set by hand."""

    def __init__(self, ahead_ns: int) -> None:
        self.now_ns, self.ahead_ns = 1_000_000, ahead_ns

    def make(self) -> StampClock:
        return StampClock(lambda: self.now_ns, lambda: self.now_ns + self.ahead_ns)


@pytest.mark.parametrize(
    ("stamp", "arrival"),
    [
        (965_000, Arrival(960_000, 40_000)),
        (905_000, Arrival(1_000_000, None, blurred=True)),
        (2_000_000, Arrival(1_000_000, None, blurred=True)),
        (None, Arrival(1_000_000, None)),
    ],
    ids=["late", "before the request", "in the future", "none"],
)
def test_a_stamp_is_a_time_of_the_monotonic_clock(stamp: int | None, arrival: Arrival):
    """Where it cannot be, the time of the read counts, blurred; without a stamp nothing is known of lateness."""
    assert Clocks(5_000).make().arrival(stamp, earliest_ns=950_000, now_ns=1_000_000) == arrival


@pytest.mark.parametrize("step_ns", [-9_000_000_000, -10_000_000, 10_000_000, 9_000_000_000])
def test_a_stepped_wall_clock_is_noticed_at_once(step_ns: int):
    """No stamp counts for a moment, since it may be of either clock; after that they are right again."""
    clocks = Clocks(50_000_000_000)
    clock = clocks.make()
    clocks.now_ns += 1_000
    clocks.ahead_ns += step_ns
    arrivals = []
    for pause_ns in (1_000_000, UNSURE_NS + 1):
        clocks.now_ns += pause_ns
        stamp = clocks.now_ns - 100 + clocks.ahead_ns
        arrivals.append(clock.arrival(stamp, earliest_ns=0, now_ns=clock.read()))
    assert arrivals == [Arrival(1_000_000 + 1_001_000, None, blurred=True), Arrival(clocks.now_ns - 100, 100)]


@contextlib.contextmanager
def connect() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender and a receiver that asked for stamps, over TCP."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as receiver:
        request_stamps(receiver)
        receiver.connect(listener.getsockname())
        receiver.setblocking(False)
        with listener.accept()[0] as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sender, receiver


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The same, on Linux once the kernel stamps what comes."""
    with connect() as (sender, receiver):

        def is_stamped() -> bool:
            sender.sendall(b".")
            wait_until(lambda: select.select([receiver], [], [], 0)[0])
            _, control, _, _ = receiver.recvmsg(1, 100)
            return bool(control)

        # It begins some milliseconds after the first socket of a machine has asked, and ends with the last one.
        if sys.platform == "linux":
            wait_until(is_stamped)
        with connect() as connected:
            yield connected


def make(receiver: socket.socket, size: int = 1000) -> SocketReader:
    return make_reader(receiver, ReceiveBuffer(size), StampClock())


def read(reader: SocketReader) -> list[tuple[bytes, Arrival]]:
    return [(bytes(data), arrival) for data, arrival in reader.read()]


@needs_stamps
def test_what_waited_has_the_times_at_which_it_came(pair):
    """Ten pieces that nobody read meanwhile: all bytes, in order, each no earlier than it was sent and never late."""
    sender, receiver = pair
    reader = make(receiver)
    sent = []
    for number in range(10):
        sent.append((time.perf_counter_ns(), number))
        sender.sendall(b"%d" % number)
        time.sleep(0.002)
    pieces = read(reader)
    after_ns = time.perf_counter_ns()
    assert b"".join(data for data, _ in pieces) == b"0123456789"
    times = [arrival.t_ns for _, arrival in pieces]
    assert times == sorted(times)
    for data, arrival in pieces:
        # Of merged pieces the last one tells the time. Both clocks are read a moment apart, so not to the nanosecond.
        assert sent[int(data[-1:])][0] - 50_000 <= arrival.t_ns <= after_ns
        assert arrival.late_ns is not None
        assert arrival.t_ns + arrival.late_ns <= after_ns
    assert pieces[0][1].late_ns > pieces[-1][1].late_ns or len(pieces) == 1


@needs_stamps
def test_what_does_not_fit_is_read_next(pair):
    """A read takes no more than its buffer, and nothing is lost."""
    sender, receiver = pair
    reader, text = make(receiver, size=64), bytes(range(256)) * 4
    sender.sendall(text)
    wait_until(lambda: len(receiver.recv(2000, socket.MSG_PEEK)) == len(text))
    received = b"".join(data for _ in range(16) for data, _ in read(reader))
    assert received == text
    with pytest.raises(BlockingIOError):
        reader.read()


@needs_stamps
def test_a_segment_that_waits_alone_came_at_its_stamp(pair):
    """All of it, whatever it is, also where bytes were taken before, as of a tunnel. Nothing is lost in between."""
    sender, receiver = pair
    sender.sendall(b"taken before")
    wait_until(lambda: select.select([receiver], [], [], 0)[0])
    reader = make_reader(receiver, ReceiveBuffer(1000), StampClock(), len(receiver.recv(100)))

    def is_merged(*pieces: bytes) -> list[bool]:
        for piece in pieces:
            sender.sendall(piece)
        wait_until(lambda: len(receiver.recv(1000, socket.MSG_PEEK)) == sum(map(len, pieces)))
        before_ns = time.perf_counter_ns()
        segments = read(reader)
        assert b"".join(data for data, _ in segments) == b"".join(pieces)
        assert all(arrival.t_ns <= before_ns + 50_000 and not arrival.blurred for _, arrival in segments)
        return [arrival.merged for _, arrival in segments]

    # How many segments came before is not known at first.
    is_merged(b"data: 0\n\n")
    for data in (b"data: 1\n\n", b"data: 1\n\n: wait\n\n", b"data: 1\n\ndata: 2"):
        assert is_merged(data) == [False]
    assert is_merged(b"data: 1\n\n", b"data: 2\n\n") in ([False, False], [True])
    assert is_merged(b"data: 3\n\n") == [False]


class MergingBuffer(ReceiveBuffer):
    """After the look at two events, the kernel merges what comes then with the second, which then has its stamp."""

    later: int | None = None

    def look(self, sock: socket.socket) -> tuple[int, int | None, int | None]:
        found = super().look(sock)
        time.sleep(0.002)
        self.later = time.time_ns()
        return found

    def stamp_at(self, sock: socket.socket, number: int) -> int | None:
        return self.later if self.later is not None and number > 9 else super().stamp_at(sock, number)


@needs_stamps
def test_what_comes_during_the_search_lends_its_stamp_to_none(pair):
    """Nobody knows then when the second of two events came; the first keeps its own time."""
    sender, receiver = pair
    buffer = MergingBuffer(1000)
    reader = make_reader(receiver, buffer, StampClock(), read_tcp_counters(receiver)[1])
    # The kernel may merge the two of its own accord, and then there is nothing to search.
    for _ in range(100):
        buffer.later = None
        sender.sendall(b"data: 1\n\n")
        time.sleep(0.002)
        sender.sendall(b"data: 2\n\n")
        wait_until(lambda: len(receiver.recv(100, socket.MSG_PEEK)) == 18)
        now_ns, segments = time.perf_counter_ns(), read(reader)
        if len(segments) == 2:
            break
    (_, first), (_, second) = segments
    assert (first.blurred, first.t_ns < now_ns - 1_000_000) == (False, True)
    assert (second.blurred, second.late_ns) == (True, None)


@needs_stamps
def test_the_end_lends_its_stamp_to_no_exact_time(pair):
    """It comes 6 ms after the last words, which nobody has read: when they came is no longer known."""
    sender, receiver = pair
    reader = make(receiver)
    sender.sendall(b"first")
    (_, first) = read(reader)[0]
    sender.sendall(b"last words")
    time.sleep(0.006)
    sender.shutdown(socket.SHUT_WR)
    wait_until(lambda: read_tcp_counters(receiver)[1] >= len(b"first" + b"last words" + b"e"))
    (_, last) = read(reader)[0]
    assert (first.blurred, last.blurred) == (False, True)


def test_a_socket_that_has_no_stamps_is_read_all_the_same():
    """A Unix socket: the user's clock."""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        request_stamps(receiver)
        reader = make(receiver)
        assert not isinstance(reader, StampedReader)
        before_ns = time.perf_counter_ns()
        sender.sendall(b"hello")
        [(data, arrival)] = read(reader)
        assert (data, arrival.late_ns, arrival.blurred) == (b"hello", None, False)
        assert before_ns <= arrival.t_ns <= time.perf_counter_ns()
