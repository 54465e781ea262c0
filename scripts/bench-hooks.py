"""Measures what hooks cost, and prints the table of docs/performance.md; scripts/bench runs it."""

import os
import shutil
import statistics
import subprocess
import sys
import time

WORK, TOOLS, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
TOOL = os.path.join(TOOLS, "bench_tool")
HOOKS = os.path.abspath("hooks")
FILES = [10, 10_000, 50_000]
LEDGER, STEPS = 1_000, 100

# The scripts find the program on the PATH.
BIN = os.path.join(WORK, "bin")
os.makedirs(BIN, exist_ok=True)
os.symlink(os.environ["HANDOFF"], os.path.join(BIN, "git-handoff"))
ENV = dict(os.environ, PATH=BIN + os.pathsep + os.environ["PATH"])


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*command, at):
    subprocess.run(command, cwd=at, env=ENV, check=True, stdout=subprocess.DEVNULL)


def measure(*command, at):
    """Wall time in milliseconds, from before the spawn until the process is reaped."""
    start = time.perf_counter_ns()
    ran = subprocess.run(command, cwd=at, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall = (time.perf_counter_ns() - start) / 1e6
    if ran.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: status {ran.returncode}: {ran.stderr}")
    return wall


def verdict(value, limit):
    return f"{value:.2f}×: {'met' if value <= limit else '**missed**'} (goal ≤ {limit:g}×)"


def row(words, hook, without, limit):
    over = statistics.median(hook) / statistics.median(without)
    print(f"| {words} | {statistics.median(hook):,.1f} | {statistics.median(without):,.1f} | {verdict(over, limit)} |")


def nothing_to_check(files):
    """A commit of one file of code, with the hook's script against `git rev-parse HEAD`."""
    repository = os.path.join(WORK, f"files-{files}")
    run("git", "init", "--quiet", repository, at=WORK)
    for number in range(files):
        folder = os.path.join(repository, "src", str(number // 1000), str(number // 50))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"part_{number}.{'json' if number % 10 == 0 else 'rs'}"), "w") as file:
            file.write(str(number))
    run("git", "add", ".", at=repository)
    run("git", "commit", "--quiet", "--message", "Start", at=repository)
    with open(os.path.join(repository, "src", "0", "new.rs"), "w") as file:
        file.write("new")
    run("git", "add", ".", at=repository)
    hook, without = [], []
    for turn in range(RUNS + 2):
        one = measure(os.path.join(HOOKS, "pre-commit"), at=repository)
        other = measure("git", "rev-parse", "HEAD", at=repository)
        if turn >= 2:
            hook.append(one)
            without.append(other)
    row(f"`pre-commit` with nothing to check, {files:,} files; `git rev-parse HEAD`", hook, without, 3)
    shutil.rmtree(repository)


def pushes():
    """A push of the ledger's last steps to a bare repository that has the others."""
    repository = os.path.join(WORK, "pushed")
    run("git", "init", "--quiet", repository, at=WORK)
    run("git-handoff", "init", at=repository)
    run(TOOL, "ledger", str(LEDGER), at=repository)
    servers = {}
    for name in ["", "pre-receive", "update"]:
        servers[name] = os.path.join(WORK, f"server-{name}.git")
        run("git", "init", "--quiet", "--bare", servers[name], at=WORK)
        run("git", "push", "--quiet", servers[name], f"handoffs~{STEPS}:refs/heads/handoffs", at=repository)
        if name:
            shutil.copy(os.path.join(HOOKS, name), os.path.join(servers[name], "hooks", name))
    samples = {name: [] for name in servers}
    for turn in range(RUNS + 2):
        for name, server in servers.items():
            fresh = os.path.join(WORK, "fresh.git")
            shutil.copytree(server, fresh)
            sample = measure("git", "push", "--quiet", fresh, "handoffs", at=repository)
            shutil.rmtree(fresh)
            if turn >= 2:
                samples[name].append(sample)
    for name in ["pre-receive", "update"]:
        row(f"push of {STEPS} steps by path, with `{name}`; without a hook", samples[name], samples[""], 2)


note("hooks: measuring")
print(f"| median of {RUNS} pairs, ms | with the hook | without | goal |\n|---|---:|---:|---|")
for files in FILES:
    nothing_to_check(files)
pushes()
