"""Measures waiting, choosing, failing and recovering for docs/performance.md; scripts/bench runs it."""

import os
import random
import statistics
import subprocess
import sys
import time

WORK, TOOLS, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
HANDOFF = os.environ["HANDOFF"]
TOOL = os.path.join(TOOLS, "bench_tool")
REF = "refs/heads/handoffs"
FEW, MANY = 10, 1000
ROUNDS = 60  # of waking up
SETTLE = 0.1  # until a program has begun to wait, in seconds
FILES, CHANGED = 10_000, 20
WARMING = 2  # turns that are thrown away


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def measure(*command):
    """Wall and CPU time, in milliseconds, from before the spawn until the process is reaped."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter_ns() - start) / 1e6
    if status != 0:
        sys.exit(f"bench: {' '.join(command)}: status {status}")
    return wall, (usage.ru_utime + usage.ru_stime) * 1e3


def ledger(name, sends):
    """A repository with so many handoffs that are open with one agent; its path and the agent."""
    repository, steps = os.path.join(WORK, name), os.path.join(WORK, f"{name}-steps")
    run(TOOL, "steps", str(sends), "1", steps)
    run("git", "init", "--quiet", repository)
    os.chdir(repository)
    run(HANDOFF, "init")
    for number in range(sends):
        run(HANDOFF, "send", os.path.join(steps, str(number), "contract"))
    names = run("git", "ls-tree", "--name-only", REF, "open/").split()
    assert len(names) == sends, names
    return repository, names[0].split("@", 1)[1]


def middle(samples, what=0):
    return statistics.median(sample[what] for sample in samples)


def verdict(met, goal):
    return f"{'met' if met else '**missed**'} (goal {goal})"


def row(words, samples, more):
    print(f"| {words}, ms | {middle(samples):.1f} | CPU {middle(samples, 1):.1f}{more} |")


def choosing():
    ledgers = {count: ledger(f"open-{count}", count) for count in (FEW, MANY)}
    samples = {count: [] for count in ledgers}
    for turn in range(RUNS + WARMING):
        for count, (repository, agent) in ledgers.items():
            os.chdir(repository)
            tip = run("git", "rev-parse", REF).strip()
            sample = measure(HANDOFF, "claim", "--next", "--as", agent)
            run("git", "update-ref", REF, tip)
            if turn >= WARMING:
                samples[count].append(sample)
    wall, cpu = [middle(samples[MANY], what) / middle(samples[FEW], what) for what in (0, 1)]
    row(f"`claim --next`, {FEW} open", samples[FEW], "")
    row(f"`claim --next`, {MANY:,} open", samples[MANY],
        f"; {wall:.2f}× the wall, {cpu:.2f}× the CPU of {FEW}: {verdict(wall <= 1.5, '≤ 1.5×')}")


def waking():
    _, agent = ledger("wake", ROUNDS)
    latencies = []
    for number in range(1, ROUNDS + 1):
        id = f"{number}.1"
        run(HANDOFF, "claim", id, "--as", agent)
        waiter = subprocess.Popen([HANDOFF, "wait", id], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(SETTLE)
        run(HANDOFF, "complete", id, "--as", agent)
        written = time.perf_counter_ns()
        if waiter.wait() != 0:
            sys.exit(f"bench: wait {id}: status {waiter.returncode}")
        latencies.append((time.perf_counter_ns() - written) / 1e6)
    latencies.sort()
    median, late = statistics.median(latencies), latencies[int(0.95 * ROUNDS)]
    print(f"| `wait`: from the writer's exit to the waiter's, ms | {median:.1f} | 95 %: {late:.1f}, {ROUNDS} rounds: "
          f"{verdict(median < 20, '< 20')} |")


class Worktree:
    """The files of the current folder, committed, of which some change again and again."""

    def __init__(self):
        self.chance = random.Random(1)
        self.paths = [f"src/m{number % 40:02}/p{number // 40 % 10}/f{number}.rs" for number in range(FILES)]
        for path in self.paths:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.write(path)
        run("git", "add", ".")
        run("git", "commit", "--quiet", "--message", "base")
        self.changing = self.chance.sample(self.paths, CHANGED)
        # What was written in the second of the index would be read again by every command.
        time.sleep(1.1)
        run("git", "update-index", "--really-refresh")

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"line {self.chance.random()}\n" for _ in range(40))

    def change(self):
        """Gives the files contents that no object has yet."""
        for path in self.changing:
            self.write(path)


def failing():
    _, agent = ledger("fail", 2 * (RUNS + WARMING))
    worktree = Worktree()
    acting = ["--as", agent]
    stashes, plain, kept = [], [], []

    def recover(id, *more):
        """What `fail`, `retry` and the next `claim` take."""
        run(HANDOFF, "claim", id, *acting)
        worktree.change()
        return [
            measure(HANDOFF, "fail", id, *acting, "--recoverable", "--message", "the build fails", *more),
            measure(HANDOFF, "retry", id, *acting),
            measure(HANDOFF, "claim", id, *acting),
        ]

    for turn in range(RUNS + WARMING):
        with_work = recover(f"{2 * turn + 1}.1", "--snapshot")
        worktree.change()
        stash = measure("git", "stash", "create")
        without = recover(f"{2 * turn + 2}.1")
        if turn >= WARMING:
            kept.append(with_work)
            stashes.append(stash)
            plain.append(without)
    files = run("git", "ls-tree", "-r", "--name-only", REF).splitlines()
    files = [path for path in files if "-failure/" in path and path.endswith(tuple(worktree.changing))]
    assert len(files) >= CHANGED * (RUNS + WARMING), files

    snapshots = [fail for fail, _, _ in kept]
    wall, cpu = [middle(snapshots, what) / middle(stashes, what) for what in (0, 1)]
    row(f"`git stash create`, {CHANGED} of {FILES:,} files changed", stashes, "")
    row("`fail --snapshot` of the same worktree", snapshots,
        f"; {wall:.2f}× the wall, {cpu:.2f}× the CPU of `git stash create`: {verdict(wall <= 1, '≤ 1×')}")
    for words, recoveries in [("", plain), (", that snapshot kept and shown", kept)]:
        whole = [tuple(map(sum, zip(*steps))) for steps in recoveries]
        parts = " + ".join(f"{middle(part):.1f}" for part in zip(*recoveries))
        row(f"`fail`, `retry`, the next agent's `claim`{words}", whole,
            f"; {parts}: {verdict(middle(whole) < 50, '< 50')}")


print(f"| waiting, failing and recovering, median of {RUNS} | median | |\n|---|---:|---|")
waking()
choosing()
failing()
