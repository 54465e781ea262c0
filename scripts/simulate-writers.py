"""Simulates many clones that write to one branch of one remote, and prints the tables of docs/scale.md.

`simulate-writers.py [WRITERS]` takes a minute with 1,000 writers and prints the same each time: its random numbers are seeded.
`simulate-writers.py check OWN TRIP CLONES EACH CORES` plays clones that write without a pause, to be compared with what
`scripts/bench --remote` measured: OWN is what a write costs besides waiting for answers and TRIP the wait for one answer, in ms;
CORES is how many processors the clones and the remote share, 0 for no limit.

A write is a sequence of attempts. An attempt reads the branch's tip (fetch), plans, and moves the tip (push). It is lost when the tip
moved in between: *early*, when the push sees another tip before it sends anything, or *late*, when someone is quicker while it sends.
Then comes a pause, and the next attempt, until the write is through or its budget is spent. What is simulated is the order of these
events; no git runs. Left out: the remote's own limits, other branches, and clones that fail.
"""

import heapq
import math
import random
import statistics
import sys

BUDGET = 25_000.0  # ms
SCATTER = 0.15  # of each part of an attempt, as a fraction of its length


def attempt(own, trip, setup=0):
    """The parts of an attempt in ms: own work of one write, the wait for one answer, and trips to set up each of two connections.

    Until the tip is read; until the fetch is done; planning; until the push reads the tip; until its answer says so; until the
    tip moves; until that is answered. The shares of the work are those of fetch, plan and push by path; the trips those of
    protocol version 2: capabilities, refs and pack for a fetch, refs and pack for a push.
    """
    work, trips = [0.25, 0.15, 0.10, 0.20, 0.05, 0.20, 0.05], [1.5 + setup, 1.5, 0, 0.5 + setup, 0.5, 0.5, 0.5]
    return [own * share + trip * count for share, count in zip(work, trips)]


def pause(losses, rtt, left, chance):
    """The program's pause before the next attempt: a window that shrinks with each loss, so that who lost most goes first."""
    window = min(8 * rtt, max(rtt, 500)) * 0.8 ** (losses - 1)
    return min(chance.uniform(0, max(rtt, window)), max(0, left - 1.5 * rtt))


class Writer:
    def __init__(self, number, seed, writes):
        self.chance = random.Random(f"{seed}/{number}")
        self.number, self.writes = number, writes
        self.losses = self.begun = self.tried = self.tip = self.part = 0
        self.work = 0.0


class Run:
    """One simulated run; afterwards `done` has the time of every write that got through, `failed` how many did not."""

    def __init__(self, parts, seed):
        self.parts, self.seed = parts, seed
        self.now, self.tip, self.order = 0.0, 0, 0
        self.events, self.sharing = [], {}
        self.done, self.failed, self.early, self.late = [], 0, 0, 0

    def at(self, time, writer, what):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, writer, what))

    def begin_part(self, writer, part):
        writer.part = part
        length = self.parts[part] * max(0.3, writer.chance.gauss(1, SCATTER))
        if self.cores:
            writer.work = length
            self.sharing[writer] = True
        else:
            self.at(self.now + length, writer, "part")

    def begin(self, writer):
        writer.begun, writer.losses = self.now, 0
        self.again(writer)

    def again(self, writer):
        writer.tried = self.now
        self.begin_part(writer, 0)

    def end_part(self, writer):
        """What happens when a part of an attempt is over."""
        part = writer.part
        if part == 0:
            writer.tip = self.tip
        if part == 3:
            writer.behind = self.tip != writer.tip
        if part == 4 and writer.behind:
            self.early += 1
            return self.lose(writer)
        if part == 5:
            writer.behind = self.tip != writer.tip
            if not writer.behind:
                self.tip += 1
        if part < 6:
            return self.begin_part(writer, part + 1)
        if writer.behind:
            self.late += 1
            return self.lose(writer)
        self.done.append(self.now - writer.begun)
        return self.next(writer)

    def lose(self, writer):
        writer.losses += 1
        rtt, left = self.now - writer.tried, writer.begun + self.budget - self.now
        if left < rtt:
            self.failed += 1
            return self.next(writer)
        return self.at(self.now + self.pausing(writer.losses, rtt, left, writer.chance), writer, "again")

    def next(self, writer):
        writer.writes -= 1
        if writer.writes > 0:
            think = writer.chance.expovariate(1 / self.think) if self.think else 0
            self.at(self.now + think, writer, "begin")

    def play(self, writers, writes, think=0.0, until=math.inf, cores=0, budget=BUDGET, pausing=pause):
        """Plays writers with so many writes each; `think` is the mean time from one to the next, exponential."""
        self.think, self.cores, self.budget, self.pausing = think, cores, budget, pausing
        for number in range(writers):
            writer = Writer(number, self.seed, writes)
            first = writer.chance.expovariate(1 / think) if think else writer.chance.uniform(0, self.parts[0])
            self.at(first, writer, "begin")
        while self.events or self.sharing:
            if self.sharing:
                speed = min(1.0, self.cores / len(self.sharing))
                soonest = min(self.sharing, key=lambda writer: writer.work)
                end = self.now + soonest.work / speed
                before = self.events and self.events[0][0] < end
                time = self.events[0][0] if before else end
                for writer in self.sharing:
                    writer.work -= (time - self.now) * speed
                self.now = time
                if not before:
                    del self.sharing[soonest]
                    self.end_part(soonest)
                    continue
            time, _, writer, what = heapq.heappop(self.events)
            if time > until:
                break
            self.now = time
            {"part": self.end_part, "begin": self.begin, "again": self.again}[what](writer)
        return self

    def tries(self):
        return 1 + (self.early + self.late) / max(1, len(self.done) + self.failed)

    def quantile(self, share):
        done = sorted(self.done)
        return done[min(len(done) - 1, int(share * len(done)))] if done else math.nan


def open_span(parts):
    """From when an attempt reads the tip until it moves it: no two that succeed overlap in it."""
    return sum(parts[1:6])


def seconds(ms):
    return f"{ms / 1e3:.1f}" if ms >= 1000 else f"{ms / 1e3:.2f}"


def share(part, whole):
    value = 100 * part / max(1, whole)
    return "0" if part == 0 else f"{value:.2f} %" if value < 1 else f"{value:.0f} %"


# Remotes: own work, the wait for one answer, and trips to set up a connection.
REMOTES = {
    "a path on one machine": (20, 0, 0),
    "HTTP in one building, 2 ms": (35, 2, 2),
    "HTTPS, 30 ms": (40, 30, 2),
    "HTTPS, 100 ms": (40, 100, 2),
    "ssh, 100 ms": (40, 100, 6),
}
WRITERS = int(sys.argv[1]) if len(sys.argv) == 2 else 1_000


def rates():
    """Many writers who write at random times, by remote and by how much of the branch's time they ask for."""
    print("| remote | attempt, s | at most, writes/s | load | each of 1,000 writes every | through/s | attempts, by the formula "
          "| median, s | 99 %, s | not through after 25 s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, remote in REMOTES.items():
        parts = attempt(*remote)
        limit = 1 / open_span(parts)
        for load in (0.1, 0.3, 0.5, 0.7, 0.9):
            every = WRITERS / (load * limit)
            until = 3 * WRITERS / (load * limit)
            run = Run(parts, f"rates/{name}/{load}").play(WRITERS, math.inf, think=every, until=until)
            writes = len(run.done) + run.failed
            # Spans that succeed never overlap, so a move falls into a span with just the probability `load`.
            formula = f"{1 / (1 - load):.2f}"
            print(
                f"| {name} | {seconds(sum(parts))} | {1e3 * limit:.2f} | {load:.0%} | {every / 1e3:,.0f} s "
                f"| {1e3 * len(run.done) / run.now:.2f} | {run.tries():.2f}, {formula} | {seconds(run.quantile(0.5))} "
                f"| {seconds(run.quantile(0.99))} | {share(run.failed, writes)} |"
            )


def bursts():
    """So many clones that write once each, all at one moment."""
    sizes = [size for size in (8, 32, 100, 300, 1_000) if size <= WRITERS]
    print("| remote | " + " | ".join(f"{size:,} at once" for size in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name, remote in REMOTES.items():
        cells = []
        for size in sizes:
            runs = [Run(attempt(*remote), f"burst/{name}/{size}/{seed}").play(size, 1) for seed in range(5 if size < 1000 else 1)]
            done = statistics.mean(len(run.done) for run in runs)
            last = max(run.quantile(1) for run in runs)
            cells.append(f"{done:.0f} through, the last after {seconds(last)} s, {statistics.mean(r.tries() for r in runs):.1f} attempts")
        print(f"| {name} | " + " | ".join(cells) + " |")


def ways():
    """Ways to pause, compared: eight clones × 50 on two cores, the same over a slow network, a burst, and a busy branch."""
    grown = lambda losses, rtt, left, chance: chance.uniform(0, rtt * min(16, 2 ** (losses - 1)))
    known = {
        "none": lambda *_: 0.0,
        "up to 200 ms": lambda losses, rtt, left, chance: chance.uniform(0, 200),
        "up to one attempt": lambda losses, rtt, left, chance: chance.uniform(0, rtt),
        "up to 8 attempts": lambda losses, rtt, left, chance: chance.uniform(0, 8 * rtt),
        "1 to 16 attempts, doubled by each loss": grown,
        "100 ms to 2 s, doubled by each loss": lambda losses, rtt, left, chance: chance.uniform(0, min(2000, 100 * 2 ** (losses - 1))),
        "the program's": pause,
    }
    slow = attempt(40, 100, 2)
    alone = sum(Run(attempt(20, 0), "alone").play(1, 400, cores=2).done)
    print("| pause | 8 × 50, 2 cores: wall, attempts, longest | 8 × 50, HTTPS 100 ms: longest, given up | 32 at once, HTTPS 100 ms: given up "
          "| 1,000 writers, 70 % load, HTTPS 100 ms: 99 %, given up |")
    print("|---|---|---|---|---|")
    for name, way in known.items():
        near = [Run(attempt(20, 0), f"ways/near/{n}").play(8, 50, cores=2, pausing=way) for n in range(5)]
        far = [Run(slow, f"ways/far/{n}").play(8, 50, pausing=way) for n in range(5)]
        burst = [Run(slow, f"ways/burst/{n}").play(32, 1, pausing=way) for n in range(9)]
        every = WRITERS * open_span(slow) / 0.7
        busy = Run(slow, "ways/busy").play(WRITERS, math.inf, think=every, until=4 * every, pausing=way)
        print(
            f"| {name} | {statistics.mean(run.now for run in near) / alone:.2f}×, {statistics.mean(run.tries() for run in near):.1f}, "
            f"{seconds(max(run.quantile(1) for run in near))} s "
            f"| {seconds(max(run.quantile(1) for run in far))} s, {statistics.mean(run.failed for run in far):.1f} of 400 "
            f"| {statistics.mean(run.failed for run in burst):.1f} of 32 "
            f"| {seconds(busy.quantile(0.99))} s, {share(busy.failed, len(busy.done) + busy.failed)} |"
        )


def check(own, trip, clones, each, cores):
    """Clones that write without a pause, against one that does it all."""
    parts = attempt(own, trip)
    runs = [Run(parts, f"check/{n}").play(clones, each, cores=cores, budget=math.inf) for n in range(9)]
    alone = Run(parts, "alone").play(1, clones * each, cores=cores)
    walls = sorted(run.now for run in runs)
    print(
        f"one clone {alone.now / 1e3:.1f} s, {clones} clones {walls[len(walls) // 2] / 1e3:.1f} s ({walls[0] / 1e3:.1f} to {walls[-1] / 1e3:.1f}), "
        f"{statistics.median(walls) / alone.now:.2f}×, {statistics.mean(run.tries() for run in runs) - 1:.2f} retries a step, "
        f"longest {max(run.quantile(1) for run in runs) / 1e3:.1f} s (median of the runs {statistics.median(run.quantile(1) for run in runs) / 1e3:.1f} s)"
    )


if sys.argv[1:2] == ["check"]:
    values = [float(word) for word in sys.argv[2:7]]
    check(values[0], values[1], int(values[2]), int(values[3]), values[4])
else:
    rates()
    print()
    bursts()
    print()
    ways()
