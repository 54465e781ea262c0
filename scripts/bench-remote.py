"""Measures writes with a remote, for docs/performance.md and docs/scale.md; scripts/bench runs it."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

WORK, TOOLS, RUNS = os.path.join(sys.argv[1], "remote"), sys.argv[2], int(sys.argv[3])
HANDOFF = os.environ["HANDOFF"]
TOOL = os.path.join(TOOLS, "bench_tool")
BRANCH = "refs/heads/handoffs"
TRACKING = "refs/handoff/remotes/origin/handoffs"
LEDGER = 1_000  # handoffs that are there before
WARMING = 2  # turns that are thrown away
CLONES, EACH, ROUNDS = 8, 50, 3
SLOW, EACH_SLOW, ROUNDS_SLOW = 50, 10, 1  # a server whose every answer takes so many ms longer; fewer steps for it
OFFLINE = 200
GAVE_UP = 7  # exit: the race was lost for the whole budget, and nothing written
HERE_ALONE = 8  # exit: recorded in the clone, which brings it to the remote later

# What a fetch and a push of the ledger's branch need, and no more.
FETCH = ["fetch", "--quiet", "--refmap=", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules"]
FETCH += ["--no-auto-gc", "origin", f"{BRANCH}:{TRACKING}"]
PUSH = ["push", "--porcelain", "--no-verify", "origin"]


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*command, at, env=None, codes=(0,)):
    env = dict(os.environ, **(env or {}))
    ran = subprocess.run(command, cwd=at, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode not in codes:
        sys.exit(f"bench: {' '.join(command)}: status {ran.returncode}: {ran.stdout}{ran.stderr}")
    return ran.stdout


def measure(*command, at, codes=(0,), env=os.environ):
    """Wall and CPU time in milliseconds, from before the spawn until the process is reaped; its exit code.

    The CPU time is that of the process and of all that it waited for: by path, the remote's side too.
    """
    command = [command[0], "-C", at, *command[1:]]
    errors = os.path.join(WORK, f"stderr-{threading.get_ident()}")
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(command[0], command, env, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter_ns() - start) / 1e6
    code = os.waitstatus_to_exitcode(status)
    if code not in codes:
        with open(errors, encoding="utf-8") as file:
            note(f"bench: {' '.join(command)}: status {code}: {file.read()}")
        sys.exit(1)
    return wall, (usage.ru_utime + usage.ru_stime) * 1e3, code


class Place:
    """A folder of bare repositories, and how clones reach them."""

    def __init__(self, name, address=None, count=None):
        self.name, self.folder, self.count = name, os.path.join(WORK, name), count
        self.address = address or self.folder
        os.makedirs(self.folder, exist_ok=True)

    def repository(self, name):
        """A bare repository with the ledger, whose path is returned."""
        path = os.path.join(self.folder, name)
        run("git", "clone", "--quiet", "--bare", "--no-hardlinks", SEED, path, at=WORK)
        run("git", "config", "http.receivepack", "true", at=path)
        run("git", "config", "receive.autogc", "false", at=path)
        return path

    def clone(self, repository, name, remote=True, branch=None):
        """A clone that has the ledger, on a branch of its own if one is named; without `remote`, the program takes it for the only one."""
        path = os.path.join(self.folder, "clones", name)
        run("git", "init", "--quiet", path, at=WORK)
        run("git", "remote", "add", "origin", f"{self.address}/{repository}", at=path)
        run("git", "fetch", "--quiet", "--no-tags", "origin", f"{BRANCH}:{BRANCH}", at=path)
        run("git", "update-ref", TRACKING, BRANCH, at=path)
        if remote:
            run("git", "config", "handoff.remote", "origin", at=path)
        if branch:
            run("git", "branch", "--quiet", branch, BRANCH, at=path)
            run("git", "push", "--quiet", "origin", branch, at=path)
            run("git", "config", "handoff.branch", branch, at=path)
        return path


class Contracts:
    """Contracts that open issues, one after the other; a step is a `send`, or the `claim` of what was sent."""

    def __init__(self, count):
        self.folder = os.path.join(WORK, "steps")
        run(TOOL, "steps", str(count), "500001", self.folder, at=WORK)
        self.left = iter(range(count))
        self.lock = threading.Lock()

    def issue(self):
        with self.lock:
            number = next(self.left)
        folder = os.path.join(self.folder, str(number))
        with open(os.path.join(folder, "message"), encoding="utf-8") as file:
            message = file.read()
        id = re.search(r"^Handoff-Id: (\S+)$", message, re.MULTILINE)[1]
        agent = re.search(r"^To: (\S+)$", message, re.MULTILINE)[1]
        return {"send": ["send", os.path.join(folder, "contract")], "claim": ["claim", id, "--as", agent]}

    def steps(self, count):
        for _ in range(count // 2):
            yield from self.issue().items()


def verdict(value, limit, words):
    return f"{words}: {'met' if value <= limit else '**missed**'} (goal ≤ {limit:g})"


def counted(command, at):
    """How many programs a command starts, itself left out; none where that can't be counted."""
    if not shutil.which("strace"):
        run(*command, at=at)
        return None
    trace = os.path.join(WORK, "strace")
    run("strace", "-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o", trace, *command, at=at)
    with open(trace, encoding="utf-8") as file:
        started = [line for line in file if re.search(r"execve\(|execve resumed", line) and line.rstrip().endswith("= 0")]
    return len(started) - 1


def connections(place, action):
    """The connections to a server that an action makes, besides its own answer."""
    size = lambda: os.path.getsize(place.count) if place.count and os.path.exists(place.count) else 0
    before = size()
    answer = action()
    return answer, size() - before


def bare(place, clone, step, timed):
    """The same step as a fetch, a local write that is not measured, and a push."""
    fetched = timed(["git", *FETCH], clone)
    run("git", "update-ref", BRANCH, TRACKING, at=clone)
    run(HANDOFF, *step, at=clone)
    pushed = timed(["git", *PUSH, f"{run('git', 'rev-parse', BRANCH, at=clone).strip()}:{BRANCH}"], clone)
    run("git", "update-ref", TRACKING, BRANCH, at=clone)
    return fetched, pushed


def overhead(place):
    """A write against the fetch and the push that it can't avoid: two clones take turns, so that each fetch brings a step."""
    place.repository("turns.git")
    ours, other = place.clone("turns.git", "ours"), place.clone("turns.git", "bare", remote=False)
    samples = {verb: ([], []) for verb in ["send", "claim"]}
    for turn in range(RUNS + WARMING):
        mine, theirs = CONTRACTS.issue(), CONTRACTS.issue()
        for verb in samples:
            sides = [
                lambda: measure(HANDOFF, *mine[verb], at=ours)[:2],
                lambda: [sum(pair) for pair in zip(*bare(place, other, theirs[verb], lambda c, at: measure(*c, at=at)[:2]))],
            ]
            for side in (0, 1) if turn % 2 else (1, 0):
                sample = sides[side]()
                if turn >= WARMING:
                    samples[verb][side].append(sample)
    mine, theirs = CONTRACTS.issue(), CONTRACTS.issue()
    for verb, (tool, floor) in samples.items():
        middle = lambda rows, what: statistics.median(row[what] for row in rows)
        wall = middle(tool, 0) / middle(floor, 0)
        pairs = statistics.median(one[0] / two[0] for one, two in zip(tool, floor))
        cpu = middle(tool, 1) / middle(floor, 1)
        programs, met = connections(place, lambda: counted([HANDOFF, *mine[verb]], ours))
        parts, met_bare = connections(place, lambda: bare(place, other, theirs[verb], counted))
        started = lambda n: "" if n is None else f"{n} programs"
        bare_programs = None if parts[0] is None else sum(parts) + 2
        many = lambda n: f", {n} connections" if place.count else ""
        print(
            f"| {place.name}: `{verb}` | {middle(tool, 0):.1f} | {middle(floor, 0):.1f} "
            f"| {verdict(wall, 1.2, f'{wall:.2f}×, pairs {pairs:.2f}×, CPU {cpu:.2f}×')} "
            f"| {started(programs)}{many(met)} | {started(bare_programs)}{many(met_bare)} |"
        )


class Worker:
    """One clone that does its steps one after the other; what it acknowledged and how long each took."""

    def __init__(self, clone, count):
        self.clone, self.steps = clone, list(CONTRACTS.steps(count))
        self.walls, self.gave_up, self.here_alone, self.ended = [], 0, 0, None
        self.trace = clone + ".trace"

    def work(self):
        env = dict(os.environ, GIT_TRACE2=self.trace)
        for _, step in self.steps:
            start = time.perf_counter()
            while (code := measure(HANDOFF, *step, at=self.clone, codes=(0, GAVE_UP, HERE_ALONE), env=env)[2]) == GAVE_UP:
                self.gave_up += 1
            self.here_alone += code == HERE_ALONE
            self.walls.append(time.perf_counter() - start)
        if self.here_alone:
            measure(HANDOFF, "sync", at=self.clone, env=env)
        self.ended = time.perf_counter()

    def pushes(self):
        with open(self.trace, encoding="utf-8") as file:
            return sum(1 for line in file if re.search(r" start \S*git\b.* push ", line))


def check(repository, clone, workers, branch="handoffs"):
    """Nothing that was acknowledged is missing or doubled, and both sides are whole."""
    wanted = sorted(f"{step[1]} pending..in_progress" for worker in workers for verb, step in worker.steps if verb == "claim")
    format = "--format=%(trailers:key=Transition,valueonly)"
    said = run("git", "log", format, f"{TAG}..{branch}", at=repository).split("\n")
    claimed = sorted(line for line in said if line.endswith("..in_progress"))
    opened = [line for line in said if line.endswith("none..pending")]
    commits = int(run("git", "rev-list", "--count", f"{TAG}..{branch}", at=repository))
    steps = sum(len(worker.steps) for worker in workers)
    assert claimed == wanted, (len(claimed), len(wanted))
    assert len(set(opened)) == len(opened) == steps // 2, (len(opened), steps)
    assert commits == steps, (commits, steps)
    run("git", "fetch", "--quiet", "origin", f"{branch}:refs/heads/checked", at=clone)
    run(HANDOFF, "verify", "--branch", "checked", at=clone)
    for side in (repository, clone):
        run("git", "fsck", "--strict", "--no-dangling", "--no-progress", at=side)


def at_once(place, name, count, each, own_branch=False):
    """So many clones that do so many steps each at once, checked: the wall in seconds, and the clones."""
    repository = place.repository(f"{name}.git")
    branches = [f"ledger-{n}" if own_branch else None for n in range(count)]
    workers = [Worker(place.clone(f"{name}.git", f"{name}-{n}", branch=branches[n]), each) for n in range(count)]
    threads = [threading.Thread(target=worker.work) for worker in workers]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - start
    if any(worker.ended is None for worker in workers):
        sys.exit("bench: a clone's step failed")
    if own_branch:
        for worker, branch in zip(workers, branches):
            check(repository, worker.clone, [worker], branch)
    else:
        check(repository, workers[0].clone, workers)
    return wall, workers


def together(place, words, each=EACH, rounds=ROUNDS, own_branch=False):
    """Eight clones at once against one clone that does all their steps, in turns."""
    pairs, rows = [], []
    for turn in range(rounds):
        walls = {}
        for count in (1, CLONES) if turn % 2 == 0 else (CLONES, 1):
            name = f"{'apart' if own_branch else 'together'}-{count}-{turn}"
            walls[count], workers = at_once(place, name, count, CLONES * each // count, own_branch and count > 1)
            if count > 1:
                steps = sorted(wall for worker in workers for wall in worker.walls)
                retries = sum(worker.pushes() for worker in workers) / len(steps) - 1
                rows.append((retries, statistics.median(steps), steps[len(steps) * 95 // 100], steps[-1], sum(w.gave_up for w in workers), sum(w.here_alone for w in workers)))
        pairs.append(walls)
        note(f"{words}: {CLONES} clones {walls[CLONES]:.1f} s, one {walls[1]:.1f} s, {rows[-1][0]:.2f} retries a step")
    ratios = [walls[CLONES] / walls[1] for walls in pairs]
    each_ratio = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"| {words} | {', '.join(f'{walls[CLONES]:.1f}' for walls in pairs)} | {', '.join(f'{walls[1]:.1f}' for walls in pairs)} "
        f"| {verdict(statistics.median(ratios), 2, f'{each_ratio}×')} | {', '.join(f'{row[0]:.2f}' for row in rows)} "
        f"| {statistics.median(row[1] for row in rows) * 1e3:.0f} ms | {statistics.median(row[2] for row in rows):.2f} s "
        f"| {max(row[3] for row in rows):.1f} s | {sum(row[4] for row in rows)}, {sum(row[5] for row in rows)} |"
    )


def offline(place):
    """`sync` of many offline steps on a branch that moved meanwhile, and the bare fetch and push of the same objects."""
    rows = []
    for turn in range(ROUNDS):
        name = f"offline-{turn}"
        repository = place.repository(f"{name}.git")
        clone, other = place.clone(f"{name}.git", name), place.clone(f"{name}.git", f"{name}-other")
        steps = list(CONTRACTS.steps(OFFLINE))
        for _, step in steps:
            run(HANDOFF, *step, "--offline", at=clone, codes=(8,))
        for _, step in CONTRACTS.steps(2):
            run(HANDOFF, *step, at=other)
        # The floor: a clone without the other's steps, and a remote as it was before.
        before = place.repository(f"{name}-before.git")
        tip = run("git", "rev-parse", BRANCH, at=repository).strip()
        run("git", "fetch", "--quiet", repository, f"{BRANCH}:{BRANCH}", at=before)
        plain = os.path.join(place.folder, "clones", f"{name}-plain")
        run("git", "init", "--quiet", plain, at=WORK)
        run("git", "remote", "add", "origin", f"{place.address}/{name}-before.git", at=plain)
        run("git", "fetch", "--quiet", SEED, f"{BRANCH}:{TRACKING}", at=plain)
        fetch = measure("git", *FETCH, at=plain)
        wall, cpu, _ = measure(HANDOFF, "sync", at=clone)
        new = run("git", "rev-parse", BRANCH, at=clone).strip()
        assert new == run("git", "rev-parse", BRANCH, at=repository).strip()
        assert int(run("git", "rev-list", "--count", f"{tip}..{new}", at=repository)) == OFFLINE
        run(HANDOFF, "verify", at=clone)
        run("git", "fsck", "--strict", "--no-dangling", "--no-progress", at=repository)
        run("git", "remote", "add", "before", f"{place.address}/{name}-before.git", at=clone)
        push = measure("git", "push", "--porcelain", "--no-verify", "before", f"{new}:{BRANCH}", at=clone)
        rows.append((wall, fetch[0], push[0]))
        note(f"{place.name}: sync {wall:.0f} ms, fetch {fetch[0]:.0f} ms, push {push[0]:.0f} ms")
    wall, fetch, push = (statistics.median(row[n] for row in rows) / 1e3 for n in range(3))
    own = statistics.median(row[0] - row[1] - row[2] for row in rows) / 1e3
    print(f"| {place.name} | {wall:.2f} | {fetch:.3f} | {push:.2f} | {verdict(own, 2, f'{own:.2f} s')} |")


os.makedirs(WORK, exist_ok=True)
note("remote: generating")
SEED = os.path.join(WORK, "seed")
run("git", "init", "--quiet", SEED, at=WORK)
run(HANDOFF, "init", at=SEED)
run(TOOL, "ledger", str(LEDGER), at=SEED)
TAG = run("git", "rev-parse", BRANCH, at=SEED).strip()
issues = 2 * 2 * (RUNS + WARMING + 1)  # of `overhead`
issues += 3 * ROUNDS * CLONES * EACH + ROUNDS_SLOW * CLONES * EACH_SLOW  # of `together`: two runs in a round, two steps for an issue
issues += 2 * ROUNDS * (OFFLINE // 2 + 1)  # of `offline`
CONTRACTS = Contracts(issues)

servers = []


def serve(name, delay):
    """A web server for a new folder of repositories."""
    folder, count = os.path.join(WORK, name), os.path.join(WORK, f"{name}-connections")
    os.makedirs(folder)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench-http.py")
    server = subprocess.Popen([sys.executable, program, folder, count, str(delay)], stdout=subprocess.PIPE, text=True)
    servers.append(server)
    return Place(name, server.stdout.readline().strip(), count)


try:
    path, http, slow = Place("path"), serve("http", 0), serve("slow", SLOW)
    note("remote: measuring")
    print(f"| median of {RUNS} pairs, ms | the program | bare `git fetch` + `git push` | | started by the program | by the bare commands |")
    print("|---|---:|---:|---|---|---|")
    overhead(path)
    overhead(http)
    print(f"\n| {CLONES} clones at once | s | one clone alone, s | | retries a step | median | 95 % | longest | exits 7, 8 |")
    print("|---|---|---|---|---|---:|---:|---:|---:|")
    together(path, f"path, {EACH} steps each")
    together(path, f"path, {EACH} steps each, a branch each", own_branch=True)
    together(http, f"http, {EACH} steps each")
    together(slow, f"http, every answer {SLOW} ms later, {EACH_SLOW} steps each", EACH_SLOW, ROUNDS_SLOW)
    print(f"\n| `sync` of {OFFLINE} offline steps, median of {ROUNDS} | s | bare fetch, s | bare push, s | besides the transport |")
    print("|---|---:|---:|---:|---|")
    offline(path)
    offline(http)
finally:
    for server in servers:
        server.terminate()
        server.wait()
