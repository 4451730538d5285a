"""tideclock: when the Channel Clock shall ring.

The module predicts the stream in the Throat, finds the moments at which it
stands still, and lays the three bells around each of them.  The result, a
Schedule, is handed to the controller of the clock, a Tidewright Mark IV.

The stream is kept as a ratio, not in knots: 1.0 is the greatest rate of a
mean tide, positive on the flood.  Speeds in knots would need a place in the
channel, and no two pilots agree on which.

Run as a program, it prints the bells of one day:

    python tideclock.py --day 2024-06-02 --lead 25
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from typing import Protocol

UTC = timezone.utc

# Phases below are degrees at this instant, the first midnight of the oldest
# log we have.  Every fit is reduced to it, so that old logs can be re-run.
EPOCH = datetime(2018, 5, 1, tzinfo=UTC)

DEFAULT_LEAD = timedelta(minutes=18)
SHORTEST_LEAD = timedelta(minutes=7)
LONGEST_LEAD = timedelta(minutes=45)

# A step this short is safe: the quickest constituent we sum takes an hour and
# a half to turn, so no two zeros hide between samples.
SAMPLE_STEP = timedelta(minutes=6)
ROOT_TOLERANCE = timedelta(milliseconds=400)

# Share of a mean tide's rate from which the Combing counts as running.
RUNNING = 0.28
# A slack that is over sooner than this is passed by in silence.
SHORTEST_SLACK = timedelta(minutes=21)

# While the race runs, Patience is repeated; the period is no divisor of an
# hour, so that nobody takes her for a clock that tells the time.
PATIENCE_EVERY = timedelta(minutes=35)
# ... but she keeps quiet before Brother, or fog makes one bell of the two.
HUSH_BEFORE_BROTHER = timedelta(minutes=11)

MAX_TRIM = timedelta(minutes=14)
MIN_SPACING = timedelta(seconds=90)
HORIZON = timedelta(hours=52)


class TideclockError(Exception):
    """Base of everything this module raises on purpose."""


class LeadTimeError(TideclockError, ValueError):
    """The lead time is outside what a boat can use."""


class BellNeverHung(TideclockError):
    """Somebody asked for the Widow."""


class BellsCollide(TideclockError):
    """Two bells were laid so close that they cannot be told apart."""

    def __init__(self, first: Ring, second: Ring) -> None:
        super().__init__(f"{first} is too close to {second}")
        self.pair = (first, second)


class LinkDown(TideclockError, ConnectionError):
    """The controller did not acknowledge a line."""


class Bell(Enum):
    """The bells, by the letter that stands for each on the link."""

    PATIENCE = "P"
    BROTHER = "B"
    CHILD = "C"
    WIDOW = "W"

    @property
    def strokes(self) -> int:
        """Strokes of one call; raises BellNeverHung for the Widow."""
        try:
            return {"P": 4, "B": 2, "C": 7}[self.value]
        except KeyError:
            raise BellNeverHung(f"{self.name} has no hammer") from None


@dataclass(frozen=True, slots=True)
class Constituent:
    """One cosine of the stream: degrees an hour, ratio, degrees at EPOCH."""

    name: str
    speed: float
    amplitude: float
    phase: float

    def at(self, hours: float) -> float:
        return self.amplitude * math.cos(math.radians(self.speed * hours - self.phase))


# K1 is far smaller here than in the fit of the height: the stream hardly
# feels the daily inequality.  M8 is no tide at all; it stands in for the
# eddy that the ebb throws off the sandbank.
THROAT = (
    Constituent("M2", 28.9841042, 1.000, 211.4),
    Constituent("S2", 30.0000000, 0.337, 254.0),
    Constituent("N2", 28.4397295, 0.192, 187.9),
    Constituent("K1", 15.0410686, 0.041, 96.2),
    Constituent("M4", 57.9682084, 0.083, 340.5),
    Constituent("M8", 115.9364169, 0.016, 72.3),
)


@dataclass(frozen=True, slots=True)
class Slack:
    """A moment of still water, and what the stream does after it."""

    when: datetime
    towards: str


@dataclass(frozen=True, order=True, slots=True)
class Ring:
    """One call of one bell.  Rings sort by time; the note takes no part."""

    when: datetime
    bell: Bell = field(compare=False)
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.when:%H:%M} {self.bell.name.title()}"

    def line(self) -> bytes:
        # The link is ASCII.  A test message with "café" in it once made the
        # controller drop the line and the one after; now it becomes "caf?".
        text = f"{self.when:%Y%m%dT%H%M%S} {self.bell.value}{self.bell.strokes} {self.note}"
        return text.rstrip().encode("ascii", "replace") + b"\r\n"


def retried(times: int, pause: float, on: type[Exception]):
    """Decorate a coroutine so that it is tried `times` times.

    The pause doubles after every failure.  The last failure is raised as it
    is, without a wrapper, because the caller matches on its class.
    """

    def decorate(func: Callable[..., Awaitable]) -> Callable[..., Awaitable]:
        @functools.wraps(func)
        async def wrapper(*args, **kwargs):
            wait = pause
            for attempt in range(1, times + 1):
                try:
                    return await func(*args, **kwargs)
                except on:
                    if attempt == times:
                        raise
                    await asyncio.sleep(wait)
                    wait *= 2

        return wrapper

    return decorate


class HarmonicTide:
    """The stream as a sum of constituents."""

    def __init__(self, constituents: Iterable[Constituent] = THROAT) -> None:
        self.constituents = tuple(constituents)
        if not self.constituents:
            raise ValueError("a tide needs at least one constituent")

    def stream(self, when: datetime) -> float:
        """Ratio to a mean tide's rate at `when`, which must carry a zone."""
        hours = (when - EPOCH) / timedelta(hours=1)
        return math.fsum(c.at(hours) for c in self.constituents)

    def samples(self, start: datetime, stop: datetime) -> Iterator[tuple[datetime, float]]:
        """Times and values from start; the last may lie past stop."""
        when = start
        while True:
            yield when, self.stream(when)
            if when >= stop:
                return
            when += SAMPLE_STEP

    def slacks(self, start: datetime, stop: datetime) -> Iterator[Slack]:
        """Every zero of the stream in the half-open span."""
        last_when, last = None, 0.0
        for when, value in self.samples(start, stop):
            if last_when is not None and (last < 0) != (value < 0):
                root = self._bisect(last_when, when, 0.0)
                if root < stop:
                    yield Slack(root, "flood" if value > last else "ebb")
            last_when, last = when, value

    def running_from(self, slack: Slack) -> datetime | None:
        """When the race starts after a slack; None if this tide never does."""
        limit = slack.when + timedelta(hours=4)
        level = RUNNING if slack.towards == "flood" else -RUNNING
        before = slack.when
        for when, value in self.samples(slack.when, limit):
            if abs(value) >= RUNNING:
                return self._bisect(before, when, level)
            before = when
        return None

    def _bisect(self, low: datetime, high: datetime, level: float) -> datetime:
        # Bisection, not Newton: near a weak neap slack the slope is so flat
        # that Newton's first step can land in the next tide.
        below = self.stream(low) < level
        while high - low > ROOT_TOLERANCE:
            middle = low + (high - low) / 2
            if (self.stream(middle) < level) == below:
                low = middle
            else:
                high = middle
        return high


class Schedule:
    """Bells in order of time, no two closer than MIN_SPACING."""

    def __init__(self, rings: Iterable[Ring] = ()) -> None:
        self._rings: list[Ring] = []
        for ring in rings:
            self.add(ring)

    def add(self, ring: Ring) -> None:
        """Insert a ring, or raise BellsCollide and stay as it was."""
        place = bisect_left(self._rings, ring)
        for neighbour in self._rings[max(place - 1, 0) : place + 1]:
            if abs(neighbour.when - ring.when) < MIN_SPACING:
                raise BellsCollide(neighbour, ring)
        self._rings.insert(place, ring)

    def after(self, when: datetime) -> Ring | None:
        """The first ring later than `when`; one at that very second is past."""
        place = bisect_right(self._rings, when, key=lambda ring: ring.when)
        return self._rings[place] if place < len(self._rings) else None

    def lines(self) -> Iterator[bytes]:
        """The schedule as the controller wants it, with a closing sum."""
        total = 0
        for ring in self._rings:
            data = ring.line()
            total = (total * 31 + sum(data)) % 65521
            yield data
        yield b"END %05d\r\n" % total

    def __iter__(self) -> Iterator[Ring]:
        return iter(self._rings)

    def __len__(self) -> int:
        return len(self._rings)


def plan(
    tide: HarmonicTide,
    start: datetime,
    span: timedelta = HORIZON,
    lead: timedelta = DEFAULT_LEAD,
    trim: timedelta = timedelta(0),
) -> Schedule:
    """Lay the bells for every slack between start and start + span.

    `trim` moves all bells together, later if positive: it is the watch's own
    correction for wind.  A trim beyond MAX_TRIM is cut to it without an error
    since a watch who asks for more in a gale is better served by something.
    The same courtesy is not shown to the lead time, which raises
    LeadTimeError: boats plan by it days ahead.
    """
    if not SHORTEST_LEAD <= lead <= LONGEST_LEAD:
        raise LeadTimeError(f"lead of {lead} is not between {SHORTEST_LEAD} and {LONGEST_LEAD}")
    trim = max(-MAX_TRIM, min(MAX_TRIM, trim))
    stop = start + span
    schedule = Schedule()

    def lay(when: datetime, bell: Bell, note: str = "") -> bool:
        """Add a bell on a whole second if it falls into the span."""
        when = (when + trim).replace(microsecond=0)
        if not start <= when < stop:
            return False
        schedule.add(Ring(when, bell, note))
        return True

    # One tide more on either side: Brother of the first slack after `stop`
    # may fall before it, and a run of Patience may have begun before `start`.
    margin = timedelta(hours=7)
    usable: list[tuple[Slack, datetime | None]] = []
    runs: list[datetime] = []
    for slack in tide.slacks(start - margin, stop + margin):
        running = tide.running_from(slack)
        if running is not None:
            runs.append(running)
            if running - slack.when < SHORTEST_SLACK:
                continue
        usable.append((slack, running))

    # The Child and Brother go in first.  They are promises; Patience is only
    # advice and has to fit in between.
    brothers: list[datetime] = []
    for slack, running in usable:
        brother = slack.when - lead
        brothers.append(brother)
        lay(brother, Bell.BROTHER)
        note = slack.towards
        if running is None:
            # So weak a tide lets the boats take their time.
            note += ", no race"
        lay(slack.when, Bell.CHILD, note)

    for number, running in enumerate(runs):
        place = bisect_right(brothers, running)
        if place < len(brothers):
            quiet_from = brothers[place] - HUSH_BEFORE_BROTHER
        else:
            quiet_from = stop + margin
        # After a slack that was passed by, the next run starts its own count.
        if number + 1 < len(runs):
            quiet_from = min(quiet_from, runs[number + 1] - MIN_SPACING)
        when, first = running, True
        while when < quiet_from:
            lay(when, Bell.PATIENCE, "race" if first else "")
            when += PATIENCE_EVERY
            first = False

    return schedule


class Link(Protocol):
    """What hand_over needs of a connection."""

    async def send(self, data: bytes) -> bool: ...


@retried(times=5, pause=1.5, on=LinkDown)
async def hand_over(schedule: Schedule, link: Link) -> int:
    """Send a whole schedule; return the number of lines.

    A retry begins again at the first line: the controller forgets a part
    that was not closed by END, so to go on in the middle would lose the rest.
    """
    count = 0
    for data in schedule.lines():
        if not await link.send(data):
            raise LinkDown(f"no answer to line {count + 1}")
        count += 1
    return count


def report(day: date, lead: timedelta) -> Iterator[str]:
    """The lines that main() prints for one day."""
    start = datetime.combine(day, time(0), UTC)
    schedule = plan(HarmonicTide(), start, timedelta(days=1), lead)
    yield f"Bells of {day:%d %B %Y}, times in UTC"
    for ring in schedule:
        # The arrow stays on the screen: notes that leave by the link are bare.
        note = f"→ {ring.note}" if ring.note else ""
        yield f"{ring} x{ring.bell.strokes} {note}".rstrip()
    yield f"{len(schedule)} calls"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print a day's bells.")
    parser.add_argument("--day", type=date.fromisoformat, default=date(2024, 3, 11))
    parser.add_argument("--lead", type=int, default=None, metavar="MINUTES")
    options = parser.parse_args(argv)
    lead = DEFAULT_LEAD if options.lead is None else timedelta(minutes=options.lead)
    try:
        for text in report(options.day, lead):
            print(text)
    except LeadTimeError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
