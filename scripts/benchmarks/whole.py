"""What whole processes cost, by the size of the ledger."""

import os
from collections import namedtuple

from measuring import REF, at_least, at_most, below, inside, middle, note, run, shown

PLUMBING = os.path.abspath("scripts/benchmarks/plumbing")
FIRST = 900_001  # the issues that the measured steps open
MORE = 100  # steps before an audit of what came since the last one

# A ratio to another row at each size, judged at one of them or by its worst; of the largest size to the smallest; the worst
# of all sizes; each with its goal, if there is one.
Ratio = namedtuple("Ratio", "other goal words only", defaults=[None])
Flat = namedtuple("Flat", "goal")
Worst = namedtuple("Worst", "goal")

FLAT = Flat(at_most(1.2))
OVER_BARE = Ratio("bare", at_most(1.25), "over the bare writes")
OVER_GIT = Ratio("git", at_most(2.5), "over `git --version`", 100_000)
over_fsck = lambda limit: Ratio("fsck", at_most(limit), "over `git fsck --strict`")
ROWS = [  # what is measured, how the table calls it, and of what the row says what
    ("git", "`git --version`", "wall", []),
    ("start", "`git-handoff --version`", "wall", [Ratio("git", at_most(1), "over `git --version`")]),
    ("bare", "bare libgit2 writes", "wall", [Flat(None)]),
    ("send", "`send`", "wall", [OVER_BARE, FLAT]),
    ("bare", "bare libgit2 writes, CPU", "cpu", []),
    ("send", "`send`, CPU", "cpu", [OVER_BARE]),
    ("script", "the same step by git plumbing", "wall", [Ratio("send", at_least(5), "over `send`")]),
    ("prime", "`prime`", "wall", [OVER_GIT, Worst(below(20, " ms")), FLAT]),
    ("inbox", "`inbox`", "wall", [OVER_GIT, FLAT]),
    ("status", "`status`", "wall", [OVER_GIT, FLAT]),
    ("issue", "`status ISSUE`", "wall", [FLAT]),
    ("show", "`show ID`", "wall", [OVER_GIT, FLAT]),
    ("verify", "`verify`", "wall", [over_fsck(0.7)]),
    ("fsck", "`git fsck --strict`", "wall", []),
    ("verify", "`verify`, CPU", "cpu", [over_fsck(1.2)]),
    ("fsck", "`git fsck --strict`, CPU", "cpu", []),
    ("verify", "`verify`, most memory in MB", "memory", [Worst(below(200, " MB"))]),
    ("fsck", "`git fsck --strict`, most memory in MB", "memory", []),
    ("again", f"`verify --incremental` after {MORE} more steps", "wall", [Ratio("verify", at_most(0.01), "over `verify`", 100_000)]),
]
CONTRACTS = at_least(20_000, "")
PACKED = below(3, " GB")  # of a million handoffs, after `git gc`


def objects():
    """How many objects there are, loose and packed, and their size in KiB."""
    lines = dict(line.split(": ") for line in run("git", "count-objects", "-v").splitlines())
    return int(lines["count"]) + int(lines["in-pack"]), int(lines["size"]) + int(lines["size-pack"])


def ratio_shown(ratio):
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.4f}"


class Whole:
    def __init__(self, bench):
        self.bench = bench
        self.sizes = bench.sizes
        self.steps = bench.steps("steps", 3 * (bench.warming + bench.runs) + 2 + MORE, FIRST)
        self.samples, self.instructions, self.ledgers, self.objects_of_a_send = {}, {}, {}, None

    def add(self, name, size, sample):
        self.samples.setdefault((name, size), []).append(sample)

    def value(self, name, size, what):
        return middle(self.samples[name, size], what)

    def writing(self, name, number):
        """The command that writes a step in one of three ways."""
        step = os.path.join(self.steps, str(number))
        return {
            "send": [self.bench.handoff, "send", os.path.join(step, "contract")],
            "script": ["bash", PLUMBING, step, REF],
            "bare": [self.bench.bare, step, REF],
        }[name]

    def measure(self, size):
        """Everything, in the repository of the current folder."""
        bench = self.bench
        before = objects()
        note(f"{size} handoffs: measuring")
        handoffs = bench.open_handoffs(".")
        id, agent = handoffs[len(handoffs) // 2]
        reading = {
            "git": ["git", "--version"],
            "start": [bench.handoff, "--version"],
            "inbox": [bench.handoff, "inbox", "--as", agent],
            "prime": [bench.handoff, "prime", "--as", agent],
            "status": [bench.handoff, "status"],
            "issue": [bench.handoff, "status", id.rsplit(".", 1)[0]],
            "show": [bench.handoff, "show", id],
        }
        with open(os.path.join(self.steps, "0", "author"), encoding="utf-8") as file:
            date = file.read().splitlines()[2]
        # The date makes `send` write the very blobs that the others write.
        dated = dict(os.environ, GIT_AUTHOR_DATE=date)
        number = 0
        # Before anything is sent, some forty handoffs are open.
        for _, counts in bench.turns():
            for name, command in reading.items():
                sample = bench.measure(*command)
                if counts:
                    self.add(name, size, sample)
        if bench.counts_instructions and not bench.is_smoke:
            for name, command in reading.items():
                self.instructions[name, size] = bench.instructions(*command)
        for _, counts in bench.turns():
            count = objects()[0]
            for name in ["send", "script", "bare"]:
                sample = bench.measure(*self.writing(name, number), env=dated)
                if name == "send":
                    self.objects_of_a_send = objects()[0] - count
                if counts:
                    self.add(name, size, sample)
                number += 1
        if bench.counts_instructions and not bench.is_smoke:
            for name in ["send", "bare"]:
                self.instructions[name, size] = bench.instructions(*self.writing(name, number), env=dated)
                number += 1
        turns = 1 if bench.is_smoke else max(1, min(7, 30_000 // size))
        for _ in range(turns):
            self.add("verify", size, bench.measure(bench.handoff, "verify"))
            self.add("fsck", size, bench.measure("git", "fsck", "--strict", "--no-dangling", "--no-progress"))
        for more in range(bench.size(MORE, 2)):
            run(*self.writing("send", number + more))
        self.add("again", size, bench.measure(bench.handoff, "verify", "--incremental"))
        after = None
        if size != 100_000:  # of those it takes long, and says no more than of the others
            run("git", "gc", "--quiet", "--prune=now")
            after = objects()[1]
        self.ledgers[size] += [*before, after]

    def goals(self, name, words, what, goals):
        """What a row says of its goals."""
        judge, values, texts = self.bench.judge, [self.value(name, size, what) for size in self.sizes], []
        smallest, largest = self.sizes[0], self.sizes[-1]
        for goal in goals:
            match goal:
                case Flat(limit) if smallest != largest:
                    ratio = values[-1] / values[0]
                    text = f"{largest:,} over {smallest:,}: {ratio:.2f}×"
                    texts.append(text + (f": {judge(words, ratio, limit)}" if limit else ""))
                case Worst(limit):
                    texts.append(judge(words, max(values), limit))
                case Ratio(other, limit, of, only):
                    ratios = [value / self.value(other, size, what) for value, size in zip(values, self.sizes)]
                    text = f"{of} {', '.join(map(ratio_shown, ratios))}×"
                    judged = [ratio for ratio, size in zip(ratios, self.sizes) if only in (None, size)]
                    if judged:
                        worst = min(judged) if limit.sign == "≥" else max(judged)
                        text += f": {judge(f'{words} {of}', worst, limit)}"
                    texts.append(text)
        return "; ".join(texts)

    def print(self):
        bench, sizes = self.bench, self.sizes
        print(f"| whole process, median of {bench.runs}, ms | " + " | ".join(f"{size:,}" for size in sizes) + " | M instructions | goals |")
        print("|---|" + "---:|" * (len(sizes) + 1) + "---|")
        for name, words, what, goals in ROWS:
            cells = " | ".join(shown(self.value(name, size, what)) for size in sizes)
            counted = [self.instructions[name, size] for size in sizes if what == "wall" and (name, size) in self.instructions]
            print(f"| {words} | {cells} | {', '.join(f'{count:.2f}' for count in counted)} | {self.goals(name, words, what, goals)} |")
        print("\n| one core | contracts per second | mean bytes | goal |\n|---|---:|---:|---|")
        for line in run(bench.tool, "contracts", str(bench.size(200, 1))).splitlines():
            name, rate, size = line.split()
            judged = bench.judge(f"contracts in {name} per second", int(rate), CONTRACTS)
            print(f"| {name} | {int(rate):,} | {size} | {judged} |")
        print("\n| ledger | commits | objects | per handoff | on disk | per handoff | after `git gc` |\n|---|---:|---:|---:|---:|---:|---:|")
        for size in sizes:
            made, count, kib, packed = self.ledgers[size]
            after = "—" if packed is None else f"{packed / 1024:,.1f} MiB"
            if size == 1_000_000:
                after += f": {bench.judge('a ledger of 1,000,000 handoffs after `git gc`', packed * 1024 / 1e9, PACKED)}"
            print(f"| {size:,} handoffs | {int(made.split()[0]):,} | {count:,} | {count / size:.1f} "
                  f"| {kib / 1024:,.1f} MiB | {kib * 1024 / size:,.0f} B | {after} |")
        print(f"\nA `send` that opens an issue writes {self.objects_of_a_send} objects.")


def table(bench):
    if not bench.counts_instructions:
        bench.leave_out("instructions beside the wall: valgrind is missing")
    whole = Whole(bench)
    for size in whole.sizes:
        repository, made = bench.shared_ledger(size)
        whole.ledgers[size] = [made]
        with inside(repository):
            whole.measure(size)
    whole.print()
