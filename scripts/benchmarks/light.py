"""A clone that can claim, send and gate, made from the last commit alone: how large it is, and how long it takes."""

import os

from measuring import REF, at_most, run, total

GOAL_SIZE, GOAL_TIME = at_most(20, " MB"), at_most(10, " s")
FIRST = 700_001  # the issues that the measured steps open
OLDER = "1d"  # the ledgers' steps are older


def size_of(folder):
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(os.path.getsize(file) for file in files) / 1e6


def light(bench, repository, words, contracts, number):
    """A new clone with one commit of the ledger, in which a contract is sent and claimed, and a merge is asked for."""
    clone = bench.folder(f"light-{number}")
    contract, issue = os.path.join(contracts, str(number), "contract"), str(FIRST + number)
    step = lambda *arguments, codes=(0,): bench.measure(bench.handoff, *arguments, at=clone, codes=codes)
    run("git", "init", "--quiet", clone)
    run("git", "remote", "add", "origin", f"file://{repository}", at=clone)
    run("git", "config", "handoff.remote", "origin", at=clone)
    fetched = bench.measure("git", "fetch", "--quiet", "--depth=1", "--no-tags", "origin", f"+{REF}:refs/remotes/origin/handoffs", at=clone)
    samples = [
        fetched,
        step("send", contract),
        step("claim", f"{issue}.1", "--as", "prep-agent"),
        step("gate", "--issue", issue, "--require", "approved", codes=(0, 1)),
    ]
    size, wall = size_of(os.path.join(clone, ".git", "objects")), total(samples).wall / 1e3
    parts = " + ".join(f"{sample.wall / 1e3:.2f}" for sample in samples)
    judged = [bench.judge(f"{words}: {what}", value, goal) for what, value, goal in (("size", size, GOAL_SIZE), ("time", wall, GOAL_TIME))]
    print(f"| {words} | {size:.1f} | {judged[0]} | {wall:.2f} | {parts}: {judged[1]} |")


def table(bench):
    handoffs = bench.sizes[-1]
    repository, _ = bench.shared_ledger(handoffs)
    contracts = bench.steps("light-steps", 2, FIRST)
    print("| a clone of one commit | objects, MB | | s | fetch + `send` + `claim` + `gate` |\n|---|---:|---|---:|---|")
    light(bench, repository, f"{handoffs:,} handoffs", contracts, 0)
    if not run(bench.handoff, "archive", "--help", codes=(0, 2)):
        return bench.leave_out("a light clone of an archived ledger: the program has no `archive`")
    # In the smallest ledger, no issue has ended.
    run(bench.handoff, "archive", "--older", OLDER, at=repository, codes=(0, 6))
    light(bench, repository, f"{handoffs:,} handoffs, those that ended archived", contracts, 1)
