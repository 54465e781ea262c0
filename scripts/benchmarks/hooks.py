"""What hooks cost."""

import os
import shutil

from measuring import at_most, inside, middle, run

HOOKS = os.path.abspath("hooks")
CHECKING, PUSHING = at_most(2), at_most(2)


def row(bench, words, hook, without, goal):
    over = middle(hook) / middle(without)
    print(f"| {words} | {middle(hook):,.1f} | {middle(without):,.1f} | {over:.2f}×: {bench.judge(words, over, goal)} |")


def nothing_to_check(bench, files):
    """A commit of one file of code, with the hook's script against `git rev-parse HEAD`."""
    repository = bench.repository(f"files-{files}")
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
    with inside(repository):
        for _, counts in bench.turns():
            pair = bench.measure(os.path.join(HOOKS, "pre-commit")), bench.measure("git", "rev-parse", "HEAD")
            if counts:
                hook.append(pair[0])
                without.append(pair[1])
    row(bench, f"`pre-commit` with nothing to check, {files:,} files; `git rev-parse HEAD`", hook, without, CHECKING)
    shutil.rmtree(repository)


def pushes(bench, handoffs, steps):
    """A push of the ledger's last steps to a bare repository that has the others."""
    repository, _ = bench.ledger("pushed", handoffs)
    servers = {}
    for name in ["", "pre-receive", "update"]:
        servers[name] = bench.folder(f"server-{name}.git")
        run("git", "init", "--quiet", "--bare", servers[name])
        run("git", "push", "--quiet", servers[name], f"handoffs~{steps}:refs/heads/handoffs", at=repository)
        if name:
            shutil.copy(os.path.join(HOOKS, name), os.path.join(servers[name], "hooks", name))
    samples = {name: [] for name in servers}
    fresh = bench.folder("fresh.git")
    for _, counts in bench.turns():
        for name, server in servers.items():
            shutil.copytree(server, fresh)
            sample = bench.measure("git", "push", "--quiet", fresh, "handoffs", at=repository)
            shutil.rmtree(fresh)
            if counts:
                samples[name].append(sample)
    for name in ["pre-receive", "update"]:
        row(bench, f"push of {steps} steps by path, with `{name}`; without a hook", samples[name], samples[""], PUSHING)


def table(bench):
    print(f"| median of {bench.runs} pairs, ms | with the hook | without | goal |\n|---|---:|---:|---|")
    for files in bench.size([10, 10_000, 50_000], [10]):
        nothing_to_check(bench, files)
    pushes(bench, *bench.size((1_000, 100), (20, 5)))
