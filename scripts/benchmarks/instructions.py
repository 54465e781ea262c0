"""How many instructions processes take: nearly the same on a busy machine as on an idle one.

`benches/instructions.tsv` has what the debug build took when somebody last said why."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from measuring import at_most, note

HANDOFFS, FIRST = 528, 900_001  # 1,000 commits
TURNS = 3  # the least counts: hash tables are seeded anew in each process
ROWS = {
    "--version": lambda contract, issue: ["--version"],
    "send": lambda contract, issue: ["send", contract],
    "claim": lambda contract, issue: ["claim", f"{issue}.1", "--as", "prep-agent"],
    "inbox": lambda contract, issue: ["inbox", "--as", "prep-agent"],
    "fail": lambda contract, issue: ["fail", f"{issue}.1", "--as", "prep-agent", "--message", "the build fails"],
    "prime": lambda contract, issue: ["prime", "--as", "prep-agent"],
    "status": lambda contract, issue: ["status"],
    "gate": lambda contract, issue: ["gate", "--issue", f"{issue}", "--require", "approved"],
    "verify": lambda contract, issue: ["verify"],
}
ONCE = "verify"  # it takes long, and is so large that seeds do not show
BEFORE, RECORDED = at_most(1), at_most(1.03)
FILE = os.path.join("benches", "instructions.tsv")
HEAD = """# Millions of instructions of the debug build, in a ledger of 1,000 commits: `scripts/instructions` counts them again, and
# fails above 3 % more. `scripts/instructions --record REASON` writes what has changed by as much, and why.
"""


def counts(bench, program, made, steps):
    """The instructions of each row, of a program in ledgers of its own, one for each turn."""

    def counted(turn):
        step, repository = os.path.join(steps, str(turn)), tempfile.mkdtemp(dir=bench.work)
        shutil.copytree(made, repository, dirs_exist_ok=True)
        with open(os.path.join(step, "author"), encoding="utf-8") as file:
            date = file.read().splitlines()[2]
        environment = dict(os.environ, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date, TZ="UTC", GIT_HANDOFF_WORKER="bench")
        found = {}
        for name, arguments in ROWS.items():
            if name == ONCE and turn:
                continue
            command = [program, *arguments(os.path.join(step, "contract"), FIRST + turn)]
            found[name] = bench.instructions(*command, at=repository, env=environment, codes=(0, 1) if name == "gate" else (0,))
        return found

    # Once in each clone: `gate` verifies what is new in it.
    subprocess.run([program, "verify"], cwd=made, check=True, stdout=subprocess.DEVNULL)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        turns = list(pool.map(counted, range(bench.size(TURNS, 1))))
    return {name: min(turn[name] for turn in turns if name in turn) for name in ROWS}


def recorded():
    """What was recorded: the count and the reason of each row."""
    with open(FILE, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {name: (float(count), reason) for name, count, reason in lines}


def record(now, old, reason):
    """Writes what was not recorded, or has changed by more than passes."""
    limit = RECORDED.limit
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for name, count in now.items():
            kept = name in old and 2 - limit <= count / old[name][0] <= limit
            count, why = old[name] if kept else (count, reason)
            file.write(f"{name}\t{count:.3f}\t{why}\n")


def table(bench):
    if not bench.counts_instructions:
        return bench.leave_out("instructions: valgrind is missing")
    programs = [bench.handoff] + ([bench.options.before] if bench.options.before else [])
    made, _ = bench.ledger("instructions/ledger", bench.size(HANDOFFS, 10))
    steps = bench.steps("instructions/steps", TURNS, FIRST)
    columns = [counts(bench, program, made, steps) for program in programs]
    now, limit, words = columns[0], BEFORE, "before"
    if bench.options.debug and not bench.options.before:
        old, limit, words = recorded() if os.path.exists(FILE) else {}, RECORDED, "recorded"
        if bench.options.record and not bench.is_smoke:
            record(now, old, bench.options.record)
            old = recorded()
        columns.append({name: count for name, (count, _) in old.items()})
    print("| millions of instructions | |" + (f" {words} | |" if columns[1:] else ""))
    print("|---|---:|" + ("---:|---|" if columns[1:] else ""))
    for name, count in now.items():
        cells = ""
        for old in columns[1:]:
            ratio = count / old.get(name, 0.01)
            judged = bench.judge(f"instructions of `{name}` over those {words}", ratio, limit)
            cells = f" {old.get(name, 0):.2f} | {ratio:.3f}×: {judged} |"
        print(f"| `{name}` | {count:.2f} |{cells}")
    if words == "recorded" and bench.missed and not bench.is_smoke:
        note(f"{FILE} has what was recorded; if it has to be more: scripts/instructions --record REASON")
