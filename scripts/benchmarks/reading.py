"""What `metrics`, `alerts`, `status` and `report` cost where nothing is remembered, and after one more step; and the report in a browser."""

import os
import shutil

from measuring import REF, at_most, below, middle, note, run

TURNS = 3
OPENED = 20_000  # handoffs: a browser opens the report of no larger ledger
NOTHING, ALL, MORE = "nothing remembered", "all remembered", "one issue moved"
FIRST, AGAIN = at_most(6, " s"), at_most(0.2, " s")
ROWS = [  # what is measured, in which state, and goals for 100,000 handoffs: of the wall in seconds, of the memory in MB
    *((name, state, goal, None) for name in ("metrics", "alerts", "status") for state, goal in ((NOTHING, FIRST), (MORE, AGAIN))),
    ("report", NOTHING, None, None),
    ("report", ALL, at_most(1.5, " s"), at_most(200, " MB")),
]
GOALS_FOR = 100_000


def prepare(bench, repository, state):
    if state == NOTHING:
        shutil.rmtree(os.path.join(repository, ".git", "handoff", "survey"), ignore_errors=True)
    if state == MORE:
        # A step that is like any other for whoever reads.
        id, _ = bench.open_handoffs(repository)[0]
        run(bench.handoff, "annotate", id.split(".")[0], "--as", "orchestrator", "--note", "again", at=repository)


def read(bench, handoffs):
    note(f"{handoffs} handoffs: reading all of them")
    repository, _ = bench.ledger(f"reading-{handoffs}", handoffs)
    page = bench.folder(f"reading-{handoffs}.html")
    more = ["", ", packed anew"] if bench.options.repack else [""]
    for packed in more:
        if packed:
            run("git", "repack", "-adfq", at=repository)
        for name, state, wall_goal, memory_goal in ROWS:
            samples = []
            for _ in range(bench.size(TURNS, 1)):
                prepare(bench, repository, state)
                arguments = [name, "--output", page] if name == "report" else [name]
                samples.append(bench.measure(bench.handoff, *arguments, at=repository, codes=(0, 1)))
            words = f"{handoffs:,} handoffs: `{name}`, {state}{packed}"
            wall, memory = middle(samples) / 1e3, middle(samples, "memory")
            goals = [(wall, wall_goal), (memory, memory_goal)] if handoffs == GOALS_FOR else []
            judged = "; ".join(bench.judge(words, value, goal) for value, goal in goals if goal)
            print(f"| {words} | {wall:.2f} | {middle(samples, 'cpu') / 1e3:.2f} | {memory:.0f} | {judged} |")
    return page


def opened(bench, handoffs, page):
    tools = os.path.abspath("target/tmp/web-tools")
    run("scripts/test-tools", "web-tools", tools, env=bench.environment)
    said = run("node", "tests/web-tools/open-time.mjs", tools, f"file://{page}").strip()
    print(f"The report of {handoffs:,} handoffs, {os.path.getsize(page) / 1e6:.1f} MB: {said}.")


def table(bench):
    print("| | wall, s | CPU, s | most memory, MB | goal |\n|---|---:|---:|---:|---|")
    pages = {handoffs: read(bench, handoffs) for handoffs in bench.size(bench.sizes[1:3], [10])}
    print()
    missing = [name for name in ("node", "npm", "chromium") if not shutil.which(name)]
    if missing:
        return bench.leave_out(f"how long a browser opens a report: {' and '.join(missing)} missing")
    for handoffs, page in pages.items():
        if handoffs <= OPENED:
            opened(bench, handoffs, page)
