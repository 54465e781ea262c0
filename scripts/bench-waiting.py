"""Measures waiting and choosing, and prints rows for docs/performance.md; scripts/bench runs it."""

import os
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


def choosing():
    ledgers = {count: ledger(f"open-{count}", count) for count in (FEW, MANY)}
    samples = {count: [] for count in ledgers}
    for turn in range(RUNS + 2):
        for count, (repository, agent) in ledgers.items():
            os.chdir(repository)
            tip = run("git", "rev-parse", REF).strip()
            sample = measure(HANDOFF, "claim", "--next", "--as", agent)
            run("git", "update-ref", REF, tip)
            if turn >= 2:
                samples[count].append(sample)
    middle = lambda count, what: statistics.median(sample[what] for sample in samples[count])
    ratio = [middle(MANY, what) / middle(FEW, what) for what in (0, 1)]
    met = "met" if ratio[0] <= 1.5 else "**missed**"
    print(f"| `claim --next`, {FEW} open, ms | {middle(FEW, 0):.1f} | CPU {middle(FEW, 1):.1f} |")
    print(f"| `claim --next`, {MANY:,} open, ms | {middle(MANY, 0):.1f} | CPU {middle(MANY, 1):.1f}; "
          f"{ratio[0]:.2f}× the wall, {ratio[1]:.2f}× the CPU of {FEW}: {met} (goal ≤ 1.5×) |")


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
    met = "met" if median < 20 else "**missed**"
    print(f"| `wait`: from the writer's exit to the waiter's, ms | {median:.1f} | 95 %: {late:.1f}, {ROUNDS} rounds: "
          f"{met} (goal < 20) |")


print("| waiting and choosing, whole processes | median | |\n|---|---:|---|")
choosing()
waking()
