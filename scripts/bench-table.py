"""Measures whole processes and prints docs/performance.md's table; scripts/bench runs it."""

import os
import statistics
import subprocess
import sys
import time

WORK, TOOLS, SIZES, RUNS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
SIZES = [int(size) for size in SIZES.split(",")]
HANDOFF = os.environ.pop("HANDOFF")
TOOL = os.path.join(TOOLS, "bench_tool")
BARE = os.path.join(TOOLS, "bare_writes")
PLUMBING = os.path.abspath("scripts/bench-plumbing")
REF = "refs/heads/handoffs"
FIRST = 900_001  # the issues that the measured steps open


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*command, at=None):
    return subprocess.run(command, cwd=at, check=True, stdout=subprocess.PIPE, text=True).stdout


class Failed(Exception):
    pass


def measure(command, env=os.environ):
    """Wall and CPU time, in milliseconds, from before the spawn until the process is reaped."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.path.join(WORK, "stderr"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(command[0], command, env, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter_ns() - start) / 1e6
    if status != 0:
        with open(os.path.join(WORK, "stderr"), encoding="utf-8") as file:
            raise Failed(f"{' '.join(command)}: status {status}: {file.read()}")
    return wall, (usage.ru_utime + usage.ru_stime) * 1e3


class Row:
    def __init__(self, name):
        self.name, self.wall, self.cpu = name, {}, {}

    def add(self, size, sample):
        self.wall.setdefault(size, []).append(sample[0])
        self.cpu.setdefault(size, []).append(sample[1])

    def median(self, size, cpu=False):
        samples = (self.cpu if cpu else self.wall).get(size)
        return statistics.median(samples) if samples else None


NAMES = ["start", "send", "script", "bare", "inbox", "prime", "status", "issue", "show", "verify", "fsck"]
ROWS = {name: Row(name) for name in NAMES}
FACTS = {}


def objects():
    """How many objects there are, loose and packed, and their size in KiB."""
    lines = dict(line.split(": ") for line in run("git", "count-objects", "-v").splitlines())
    count = int(lines["count"]) + int(lines["in-pack"])
    return count, int(lines["size"]) + int(lines["size-pack"]), int(lines["packs"])


def size(handoffs):
    repository = os.path.join(WORK, str(handoffs))
    run("git", "init", "--quiet", repository)
    os.chdir(repository)
    note(f"{handoffs} handoffs: generating")
    start = time.monotonic()
    run(HANDOFF, "init")
    made = run(TOOL, "ledger", str(handoffs)).strip()
    count, kib, _ = objects()
    FACTS[handoffs] = [made, count, kib, time.monotonic() - start]
    note(f"{handoffs} handoffs: {made}, {count} objects, {kib} KiB, {FACTS[handoffs][3]:.1f} s; measuring")

    steps = os.path.join(WORK, "steps")
    shown, shown_issue, agent = middle()
    reading = {
        "start": [HANDOFF, "--version"],
        "inbox": [HANDOFF, "inbox", "--as", agent],
        "prime": [HANDOFF, "prime", "--as", agent],
        "status": [HANDOFF, "status"],
        "issue": [HANDOFF, "status", shown_issue],
        "show": [HANDOFF, "show", shown],
    }
    with open(os.path.join(steps, "0", "author"), encoding="utf-8") as file:
        date = file.read().splitlines()[2]
    # The date makes `send` write the very blobs that the others write.
    dated = dict(os.environ, GIT_AUTHOR_DATE=date)
    number, before = 0, None
    for turn in range(RUNS + 2):
        for name in ["send", "script", "bare"]:
            step = os.path.join(steps, str(number))
            number += 1
            if name == "send":
                command = [HANDOFF, "send", os.path.join(step, "contract")]
                if turn == 1:
                    before = objects()[0]
            elif name == "script":
                command = ["bash", PLUMBING, step, REF]
            else:
                command = [BARE, step, REF]
            sample = measure(command, dated)
            if turn == 1 and name == "send":
                FACTS["objects of a send"] = objects()[0] - before
            if turn >= 2:
                ROWS[name].add(handoffs, sample)
        for name, command in reading.items():
            sample = measure(command)
            if turn >= 2:
                ROWS[name].add(handoffs, sample)
    turns = max(1, min(7, 30_000 // handoffs))
    for _ in range(turns):
        ROWS["verify"].add(handoffs, measure([HANDOFF, "verify"]))
        ROWS["fsck"].add(handoffs, measure(["git", "fsck", "--strict", "--no-dangling", "--no-progress"]))
    note(f"{handoffs} handoffs: " + ", ".join(f"{name} {ROWS[name].median(handoffs):.1f}" for name in NAMES) + " ms")
    if handoffs <= 10_000:
        run("git", "gc", "--quiet", "--prune=now")
        FACTS[handoffs].append(objects()[1])


def middle():
    """An open handoff, the issue in the middle, and an agent with something in the inbox."""
    names = run("git", "ls-tree", "--name-only", REF, "open/").split()
    entry = names[len(names) // 2].removeprefix("open/")
    id, agent = entry.split("@", 1)
    return id, id.rsplit(".", 1)[0], agent


def cells(row, cpu=False):
    out = []
    for handoffs in SIZES:
        value = row.median(handoffs, cpu)
        out.append("—" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}")
    return " | ".join(out)


def verdict(value, limit, at_most):
    met = value <= limit if at_most else value >= limit
    return f"{'met' if met else '**missed**'} (goal {'≤' if at_most else '≥'} {limit:g}×)"


def ratio(over, under, limit, at_most, words, cpu=False):
    values = [ROWS[over].median(s, cpu) / ROWS[under].median(s, cpu) for s in SIZES]
    worst = max(values) if at_most else min(values)
    shown = ", ".join(f"{v:.2f}" if v < 10 else f"{v:.0f}" for v in values)
    return f"{words} {shown}×: {verdict(worst, limit, at_most)}"


def flat(name):
    if len(SIZES) < 2:
        return ""
    value = ROWS[name].median(SIZES[-1]) / ROWS[name].median(SIZES[0])
    return f"{SIZES[-1]:,} over {SIZES[0]:,}: {value:.2f}×: {verdict(value, 1.2, True)}"


def table():
    print(f"| whole process, median of {RUNS}, ms | " + " | ".join(f"{s:,}" for s in SIZES) + " | goals |")
    print("|---|" + "---:|" * len(SIZES) + "---|")
    line = lambda words, name, goals, cpu=False: print(f"| {words} | {cells(ROWS[name], cpu)} | {goals} |")
    line("`git-handoff --version`", "start", "")
    line("bare libgit2 writes", "bare", flat_only("bare"))
    line("`send`", "send", ratio("send", "bare", 1.6, True, "over the bare writes") + "; " + flat("send"))
    line("bare libgit2 writes, CPU", "bare", "", True)
    line("`send`, CPU", "send", ratio("send", "bare", 1.6, True, "over the bare writes", True), True)
    line("the same step by git plumbing", "script", ratio("script", "send", 5, False, "over `send`"))
    most = max(ROWS["prime"].median(size) for size in SIZES)
    line("`prime`", "prime", f"{'met' if most < 20 else '**missed**'} (goal < 20 ms); " + flat("prime"))
    for words, name in [("`inbox`", "inbox"), ("`status`", "status"), ("`status ISSUE`", "issue"), ("`show ID`", "show")]:
        line(words, name, flat(name))
    line("`verify`", "verify", ratio("verify", "fsck", 1, True, "over `git fsck --strict`"))
    line("`git fsck --strict`", "fsck", "")
    line("`verify`, CPU", "verify", ratio("verify", "fsck", 1, True, "over `git fsck --strict`", True), True)
    line("`git fsck --strict`, CPU", "fsck", "", True)
    print()
    print("| one core | contracts per second | mean bytes | goal |\n|---|---:|---:|---|")
    for line_ in run(TOOL, "contracts").splitlines():
        name, rate, size_ = line_.split()
        met = "met" if int(rate) >= 20_000 else "**missed**"
        print(f"| {name} | {int(rate):,} | {size_} | {met} (goal ≥ 20,000) |")
    print()
    print("| ledger | commits | objects | per handoff | on disk | per handoff | after `git gc` |\n|---|---:|---:|---:|---:|---:|---:|")
    for handoffs in SIZES:
        made, count, kib, _, *packed = FACTS[handoffs]
        after = f"{packed[0] / 1024:,.1f} MiB" if packed else "—"
        print(f"| {handoffs:,} handoffs | {int(made.split()[0]):,} | {count:,} | {count / handoffs:.1f} "
              f"| {kib / 1024:,.1f} MiB | {kib * 1024 / handoffs:,.0f} B | {after} |")
    print(f"\nA `send` that opens an issue writes {FACTS['objects of a send']} objects.")


def flat_only(name):
    if len(SIZES) < 2:
        return ""
    return f"{SIZES[-1]:,} over {SIZES[0]:,}: {ROWS[name].median(SIZES[-1]) / ROWS[name].median(SIZES[0]):.2f}×"


def main():
    run(TOOL, "steps", str(3 * (RUNS + 2)), str(FIRST), os.path.join(WORK, "steps"))
    for handoffs in SIZES:
        size(handoffs)
    table()


try:
    main()
except Failed as failed:
    sys.exit(f"bench: {failed}")
