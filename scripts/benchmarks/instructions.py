"""How many instructions processes take: nearly the same on a busy machine as on an idle one."""

import os
import shutil

from measuring import at_most

HANDOFFS, FIRST = 240, 900_001
TURNS = 3  # the least counts: hash tables are seeded anew in each process
ROWS = {
    "`--version`": lambda contract, id, agent: ["--version"],
    "`send`": lambda contract, id, agent: ["send", contract],
    "`claim`": lambda contract, id, agent: ["claim", id, "--as", agent],
    "`inbox`": lambda contract, id, agent: ["inbox", "--as", agent],
}
BEFORE = at_most(1)


def counts(bench, program, repository, steps):
    """The instructions of each row, of a program in a ledger of its own."""
    least = {}
    for turn in range(bench.size(TURNS, 1)):
        contract, id = os.path.join(steps, str(turn), "contract"), f"{FIRST + turn}.1"
        for words, arguments in ROWS.items():
            counted = bench.instructions(program, *arguments(contract, id, "prep-agent"), at=repository)
            least[words] = min(counted, least.get(words, counted))
    return least


def table(bench):
    if not bench.counts_instructions:
        return bench.leave_out("instructions: valgrind is missing")
    programs = [bench.handoff] + ([bench.options.before] if bench.options.before else [])
    made, _ = bench.ledger("instructions/ledger", bench.size(HANDOFFS, 10))
    steps = bench.steps("instructions/steps", TURNS, FIRST)
    columns = []
    for number, program in enumerate(programs):
        repository = bench.folder("instructions", str(number))
        shutil.copytree(made, repository)
        columns.append(counts(bench, program, repository, steps))
    print("| millions of instructions | |" + (" before | |" if bench.options.before else ""))
    print("|---|---:|" + ("---:|---|" if bench.options.before else ""))
    for words in ROWS:
        now, *before = [column[words] for column in columns]
        cells = "".join(
            f" {old:.2f} | {now / old:.3f}×: {bench.judge(f'instructions of {words} over those before', now / old, BEFORE)} |" for old in before
        )
        print(f"| {words} | {now:.2f} |{cells}")
