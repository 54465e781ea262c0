"""What the import of a whole ledger costs, over `git fast-import` of the same commits."""

import os
import shutil

from measuring import REF, at_most, middle, run

STEPS = 100_000
HANDOFFS = 53_000  # with about so many steps
TURNS = 3
GOAL = at_most(4)


def table(bench):
    handoffs = bench.size(HANDOFFS // 10 if bench.options.quick else HANDOFFS, 60)
    source, _ = bench.ledger("import/source", handoffs)
    exported, stream = bench.folder("import/exported"), bench.folder("import/stream")
    run(bench.handoff, "export", "--format", "files", exported, at=source)
    run("sh", "-c", f"git fast-export {REF} >{stream}", at=source)
    count = run("git", "rev-list", "--count", REF, at=source).strip()
    target = bench.folder("import/target")
    sides = {
        "`import`": ([bench.handoff, "import", exported], ["init", "--evidence", "off"]),
        "`git fast-import`": (["sh", "-c", f"git fast-import --quiet <{stream}"], None),
    }
    samples = {words: [] for words in sides}
    for _ in range(bench.size(TURNS, 1)):
        for words, (command, before) in sides.items():
            bench.repository("import/target")
            if before:
                run(bench.handoff, *before, at=target)
            env = dict(os.environ, GIT_DIR=os.path.join(target, ".git"))
            samples[words].append(bench.measure(*command, env=env))
            assert run("git", "rev-list", "--count", REF, at=target).strip() == count
            if before:
                run(bench.handoff, "verify", at=target)
            shutil.rmtree(target)
    own, floor = samples.values()
    wall, cpu = [middle(own, what) / middle(floor, what) for what in ("wall", "cpu")]
    print(f"| {int(count):,} steps | wall, s | CPU, s | most memory, MB | |\n|---|---:|---:|---:|---|")
    for words, measured in samples.items():
        judged = f"{wall:.2f}× the wall, {cpu:.2f}× the CPU: {bench.judge('`import` over `git fast-import`', wall, GOAL)}" if measured is own else ""
        print(f"| {words} | {middle(measured) / 1e3:.2f} | {middle(measured, 'cpu') / 1e3:.2f} | {middle(measured, 'memory'):.0f} | {judged} |")
