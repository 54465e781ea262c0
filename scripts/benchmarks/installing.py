"""How long it takes from a package to the first handoff that was verified, by the tests that install each."""

import sys

from measuring import at_most, run

GOAL = at_most(30, " s")


def table(bench):
    if bench.is_smoke:  # the tests are run anyway
        return
    tests = ["cargo", "test", "--locked", "--quiet", "--test", "it_with_tools", "packages::", "--", "--nocapture", "--test-threads=1"]
    printed = run(*tests, env=dict(bench.environment, PACKAGED_PROGRAM=bench.handoff))
    print("| from | installed, and one handoff verified |\n|---|---|")
    for line in printed.splitlines():
        # The name of a test stands before what it prints.
        way, found, seconds = line[line.find("| ") :].strip("| ").rpartition(" | ")
        if not found:
            continue
        print(f"| {way} | {seconds} |")
        if not GOAL.is_met(float(seconds.split()[0])):
            bench.missed.append(f"{way}: {seconds} (goal {GOAL})")
    sys.stdout.flush()
