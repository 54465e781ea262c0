"""What waiting, choosing, failing and recovering cost."""

import itertools
import os
import random
import statistics
import subprocess
import time
from pathlib import Path

from measuring import REF, Failed, at_most, below, inside, middle, run, total

SETTLE = 0.1  # until a program has begun to wait, in seconds
SENDING, CHOOSING, LOOKING = at_most(1.2), at_most(1.3), at_most(1.3)
SNAPSHOT, WAKING, RECOVERING = at_most(1), below(20, " ms"), below(50, " ms")
FIRST = 900_001  # the issues that the measured steps open


def row(words, samples, more=""):
    print(f"| {words}, ms | {middle(samples):.1f} | CPU {middle(samples, 'cpu'):.1f}{more} |")


def wakes(bench, repository, agent, rounds):
    """The times in ms from a writer's exit to a waiter's, the shortest first."""
    latencies = []
    for number in range(1, rounds + 1):
        id = f"{number}.1"
        run(bench.handoff, "claim", id, "--as", agent, at=repository)
        wait = [bench.handoff, "wait", id]
        waiter = subprocess.Popen(wait, cwd=repository, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(SETTLE)
        run(bench.handoff, "complete", id, "--as", agent, at=repository)
        written = time.perf_counter_ns()
        if waiter.wait() != 0:
            raise Failed(wait, waiter.returncode, "")
        latencies.append((time.perf_counter_ns() - written) / 1e6)
    return sorted(latencies)


def waking(bench, rounds):
    latencies = wakes(bench, *bench.opened("wake", rounds), rounds)
    median, late = statistics.median(latencies), latencies[int(0.95 * rounds)]
    words = "`wait`: from the writer's exit to the waiter's"
    print(f"| {words}, ms | {median:.1f} | 95 %: {late:.1f}, {rounds} rounds: {bench.judge(words, median, WAKING)} |")


def crowded(bench, few, *many):
    """What a step and a look cost while many handoffs are open, nearly all with one agent."""
    waiting = bench.size(20, 1)
    repositories = {count: bench.crowded(f"open-{count}", count, waiting) for count in (few, *many)}
    # Each `send` has a contract of its own: what is written already costs less.
    steps = bench.steps("crowded", len(repositories) * (bench.warming + bench.runs + 1), FIRST)
    contracts = (os.path.join(steps, str(number), "contract") for number in itertools.count())
    rows = {
        "`send`": (SENDING, lambda agent, other: ["send", next(contracts)]),
        "`claim --next`": (CHOOSING, lambda agent, other: ["claim", "--next", "--as", agent]),
        f"`inbox` of an agent with {waiting} waiting": (LOOKING, lambda agent, other: ["inbox", "--as", other]),
    }
    samples = {(name, count): [] for name in rows for count in repositories}
    for _, counts in bench.turns():
        for count, (repository, *agents) in repositories.items():
            for name, (_, arguments) in rows.items():
                tip = run("git", "rev-parse", REF, at=repository).strip()
                seen = Path(repository, ".git/handoff/seen", REF)
                noted = seen.read_bytes()
                sample = bench.measure(bench.handoff, *arguments(*agents), at=repository)
                run("git", "update-ref", REF, tip, at=repository)
                # Nothing is written on a branch that this clone saw at a later commit.
                seen.write_bytes(noted)
                if counts:
                    samples[name, count].append(sample)
    counted = {}
    if bench.counts_instructions and not bench.is_smoke:
        for count, (repository, *agents) in repositories.items():
            for name, (_, arguments) in rows.items():
                counted[name, count] = bench.instructions(bench.handoff, *arguments(*agents), at=repository)
    for name, (goal, _) in rows.items():
        for count in repositories:
            words, more = f"{name}, {count:,} open", ""
            if count != few:
                wall, cpu = [middle(samples[name, count], what) / middle(samples[name, few], what) for what in ("wall", "cpu")]
                more = f"; {wall:.2f}× the wall, {cpu:.2f}× the CPU of {few}: {bench.judge(words, wall, goal)}"
            if (name, count) in counted:
                more = f"; {counted[name, count]:.2f} M instructions{more}"
            row(words, samples[name, count], more)


class Worktree:
    """The files of the current folder, committed, of which some change again and again."""

    def __init__(self, files, changed):
        self.random = random.Random(1)
        self.paths = [f"src/m{number % 40:02}/p{number // 40 % 10}/f{number}.rs" for number in range(files)]
        for path in self.paths:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.write(path)
        run("git", "add", ".")
        run("git", "commit", "--quiet", "--message", "base")
        self.changing = self.random.sample(self.paths, changed)
        # What was written in the second of the index would be read again by every command.
        time.sleep(1.1)
        run("git", "update-index", "--really-refresh")

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"line {self.random.random()}\n" for _ in range(40))

    def change(self):
        """Gives the files contents that no object has yet."""
        for path in self.changing:
            self.write(path)


def failing(bench, files, changed):
    turns = bench.warming + bench.runs
    repository, agent = bench.opened("fail", 2 * turns)
    acting = ["--as", agent]
    stashes, plain, kept = [], [], []
    with inside(repository):
        worktree = Worktree(files, changed)

        def recover(id, *more):
            """What `fail`, `retry` and the next `claim` take."""
            run(bench.handoff, "claim", id, *acting)
            worktree.change()
            return [
                bench.measure(bench.handoff, "fail", id, *acting, "--recoverable", "--message", "the build fails", *more),
                bench.measure(bench.handoff, "retry", id, *acting),
                bench.measure(bench.handoff, "claim", id, *acting),
            ]

        for turn, counts in bench.turns():
            with_work = recover(f"{2 * turn + 1}.1", "--snapshot")
            worktree.change()
            stash = bench.measure("git", "stash", "create")
            without = recover(f"{2 * turn + 2}.1")
            if counts:
                kept.append(with_work)
                stashes.append(stash)
                plain.append(without)
        written = run("git", "ls-tree", "-r", "--name-only", REF).splitlines()
    written = [path for path in written if "-failure/" in path and path.endswith(tuple(worktree.changing))]
    assert len(written) >= changed * turns, written

    snapshots = [fail for fail, _, _ in kept]
    wall, cpu = [middle(snapshots, what) / middle(stashes, what) for what in ("wall", "cpu")]
    row(f"`git stash create`, {changed} of {files:,} files changed", stashes)
    words = "`fail --snapshot` of the same worktree"
    row(words, snapshots, f"; {wall:.2f}× the wall, {cpu:.2f}× the CPU of `git stash create`: {bench.judge(words, wall, SNAPSHOT)}")
    for more, recoveries in [("", plain), (", that snapshot kept and shown", kept)]:
        words = f"`fail`, `retry`, the next agent's `claim`{more}"
        whole = [total(steps) for steps in recoveries]
        parts = " + ".join(f"{middle(part):.1f}" for part in zip(*recoveries))
        row(words, whole, f"; {parts}: {bench.judge(words, middle(whole), RECOVERING)}")


def table(bench):
    print(f"| waiting, failing and recovering, median of {bench.runs} | median | |\n|---|---:|---|")
    waking(bench, bench.size(60, 1))
    crowded(bench, *bench.size((40, 10_000) if bench.options.quick else (40, 10_000, 100_000), (2, 4)))
    failing(bench, *bench.size((10_000, 20), (40, 2)))
