"""What a step costs beside one of other tools that keep agents' work in Git."""

import os
import shutil
import subprocess

from measuring import at_least, middle, run

FIRST = 800_001  # the issues that the measured steps open
GOAL = at_least(3)
HANDOFFS = 1_000
KEY = "id"


def built(bench, name):
    """The program of a peer: what `scripts/peers` built, or what is on the PATH."""
    folder = os.path.abspath("target/peers")
    found = shutil.which(name, path=folder) or shutil.which(name)
    if not found:
        bench.leave_out(f"`send` beside {name}: it is not installed; scripts/peers builds it from a checkout")
    return found


def ank(program, repository, env):
    """A work log of a claimed task; it renews the claim, a ref."""
    with open(os.path.join(repository, "README.md"), "w", encoding="utf-8") as file:
        file.write("# Measured\n")
    run(program, "init", at=repository, env=env)
    with open(os.path.join(repository, ".ank", "config.yml"), "a", encoding="utf-8") as file:
        file.write("default_branch: main\n")
    run("git", "add", ".", at=repository)
    run("git", "commit", "--quiet", "--message", "Start", at=repository)
    made = run(program, "new", "task", "--title", "Measure", "--scope", "README.md", "--criteria", "It is measured", at=repository, env=env)
    run(program, "claim", made.split()[1], at=repository, env=env)
    return lambda number: [program, "log", f"the step number {number}"]


def confer(program, repository, env):
    """A message to all, one signed commit."""
    hub = repository + "-hub.git"
    run("git", "init", "--quiet", "--bare", hub)
    shutil.rmtree(repository)
    run(program, "init", hub, repository, "--role", "backend", env=env)
    return lambda number: [program, "append", "--type", "note", "--to", "all", "--summary", f"step {number}", "--text", "measured"]


PEERS = {"ank": ("a log entry", ank, GOAL), "confer": ("a message", confer, None)}


def programs_of(bench, command, at, env):
    """How many programs a command starts, itself left out."""
    if not shutil.which("strace"):
        return ""
    trace = bench.folder("peers", "strace")
    run("strace", "-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o", trace, *command, at=at, env=env)
    with open(trace, encoding="utf-8") as file:
        return sum(1 for line in file if "execve" in line and line.rstrip().endswith("= 0")) - 1


def table(bench):
    found = {name: program for name in PEERS if (program := built(bench, name))}
    ledger, _ = bench.ledger("peers/ledger", bench.size(HANDOFFS, 10))
    steps = bench.steps("peers/steps", bench.warming + bench.runs + 1, FIRST)
    env = dict(os.environ, ANK_AGENT="measurer@here", CONFER_HOME=bench.folder("peers/home"))
    sides = {"send": (ledger, lambda number: [bench.handoff, "send", os.path.join(steps, str(number), "contract")])}
    for name, program in found.items():
        repository = bench.repository(f"peers/{name}")
        sides[name] = (repository, PEERS[name][1](program, repository, env))
    samples = {name: [] for name in sides}
    for turn, counts in bench.turns():
        for name, (repository, command) in sides.items():
            os.chdir(repository)
            sample = bench.measure(*command(turn), env=env)
            if counts:
                samples[name].append(sample)
    print(f"| one step, median of {bench.runs} | wall, ms | CPU, ms | programs started | |\n|---|---:|---:|---:|---|")
    for name, (repository, command) in sides.items():
        words, _, goal = ("`send`", None, None) if name == "send" else PEERS[name]
        over = middle(samples[name]) / middle(samples["send"])
        judged = "" if name == "send" else f"{over:.2f}× `send`" + (f": {bench.judge(f'`send` under {words} of {name}', over, goal)}" if goal else "")
        called = words if name == "send" else f"{name}, {words}"
        count = programs_of(bench, command(bench.warming + bench.runs), repository, env)
        print(f"| {called} | {middle(samples[name]):.1f} | {middle(samples[name], 'cpu'):.1f} | {count} | {judged} |")
