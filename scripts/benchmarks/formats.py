"""Repositories of every kind: what SHA-256 costs over SHA-1, and refs in tables over refs in files."""

import os
import statistics
import subprocess

import recovery
from measuring import REF, Failed, at_most, below, middle, run

FIRST = 800_001  # the issues that the measured steps open
KINDS = [(objects, refs) for refs in ("files", "reftable") for objects in ("sha1", "sha256")]
# Of each command, the most that SHA-256 may take over SHA-1, and tables over files.
GOALS = {"send": (1.3, 1.5), "inbox": (1.3, 1.5), "verify": (1.3, None)}
WAKING, CROWDED = below(20, " ms"), at_most(1.2)


def ledgers(bench, handoffs):
    """A ledger in a repository of each kind."""
    for objects, refs in KINDS:
        formats = [f"--object-format={objects}", f"--ref-format={refs}"]
        yield (objects, refs), bench.ledger(f"formats-{objects}-{refs}", handoffs, *formats)[0]


def measure(bench, repositories, steps):
    """Every command in every repository, in turns; each `send` is another contract."""
    samples = {}
    for turn, counts in bench.turns():
        for kind, path in repositories.items():
            contract = os.path.join(steps, str(turn), "contract")
            commands = {"send": ["send", contract], "inbox": ["inbox", "--as", "prep-agent"], "verify": ["verify"]}
            for name, arguments in commands.items():
                if name == "verify" and turn >= bench.warming + 3:
                    continue
                sample = bench.measure(bench.handoff, *arguments, at=path)
                if counts:
                    samples.setdefault((kind, name), []).append(sample)
    return samples


def compare(bench, samples):
    print("| command | kind | ms | CPU, ms | over SHA-1 | over files |\n|---|---|---:|---:|---|---|")
    for name, (over_sha1, over_files) in GOALS.items():
        for objects, refs in KINDS:
            own = samples[(objects, refs), name]
            cells = []
            for other, limit, applies in ((("sha1", refs), over_sha1, objects != "sha1"), ((objects, "files"), over_files, refs != "files")):
                ratio = middle(own) / middle(samples[other, name])
                row = f"`{name}` with {objects} and {refs} over {' and '.join(other)}"
                judged = f" {bench.judge(row, ratio, at_most(limit))}" if limit else ""
                cells.append(f"{ratio:.2f}×{judged}" if applies else "")
            print(f"| `{name}` | {objects}, {refs} | {middle(own):.1f} | {middle(own, 'cpu'):.1f} | {' | '.join(cells)} |")


def waking(bench):
    rounds = bench.size(20, 1)
    print("\n| `wait`, from the writer's exit to the waiter's | median, ms | |\n|---|---:|---|")
    for refs in ("files", "reftable"):
        opened = bench.opened(f"formats-wake-{refs}", rounds, f"--ref-format={refs}")
        median = statistics.median(recovery.wakes(bench, *opened, rounds))
        print(f"| {refs} | {median:.1f} | {bench.judge(f'`wait` with {refs}', median, WAKING)} |")


def crowded(bench, refs, path, steps, first):
    """`send` in a table with very many other refs, over one without."""
    others, head = bench.size(1_000_000, 100), run("git", "rev-parse", REF, at=path).strip()
    lines = (f"create refs/tags/many/{number // 1000}/{number % 1000} {head}\n" for number in range(others))
    samples = {False: [], True: []}
    for is_crowded in (False, True):
        if is_crowded:
            making = subprocess.run(["git", "-C", path, "update-ref", "--stdin"], input="".join(lines), text=True, check=False)
            if making.returncode:
                raise Failed(["git", "update-ref"], making.returncode, "")
            run("git", "pack-refs", "--all", at=path)
        for turn, counts in bench.turns():
            contract = os.path.join(steps, str(first + is_crowded * (bench.warming + bench.runs) + turn), "contract")
            sample = bench.measure(bench.handoff, "send", contract, at=path)
            samples[is_crowded] += [sample] if counts else []
    ratio = middle(samples[True]) / middle(samples[False])
    row = f"`send` beside {others:,} refs, {refs}, over none"
    print(f"| {refs}, beside {others:,} refs | {middle(samples[True]):.1f} | {ratio:.2f}×: {bench.judge(row, ratio, CROWDED)} |")


def table(bench):
    handoffs = bench.sizes[min(1, len(bench.sizes) - 1)]
    turns = bench.warming + bench.runs
    steps = bench.steps("formats-steps", 5 * turns, FIRST)
    repositories = dict(ledgers(bench, handoffs))
    print(f"A ledger of {handoffs:,} handoffs of each kind.\n")
    compare(bench, measure(bench, repositories, steps))
    waking(bench)
    print("\n| `send` | ms | over no other ref |\n|---|---:|---|")
    for number, refs in enumerate(("files", "reftable")):
        crowded(bench, refs, repositories["sha1", refs], steps, (1 + 2 * number) * turns)
