"""What writes with a remote cost: alone, many at once, and those that were made offline."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from measuring import REF, Failed, at_most, middle, note, run, total

TRACKING = "refs/handoff/remotes/origin/handoffs"
GAVE_UP = 7  # exit: the race was lost for the whole budget, and nothing written
HERE_ALONE = 8  # exit: recorded in the clone, which brings it to the remote later
# `ledger` is how many handoffs are there before; a server's every answer takes `slow` ms longer, with fewer steps for it.
# Writers of one clone do `shared` steps in all, whose answers take one of `delays` ms longer.
FULL = SimpleNamespace(ledger=1_000, clones=8, each=50, rounds=3, slow=50, each_slow=10, rounds_slow=1, offline=200)
FULL.writers, FULL.shared, FULL.delays = [1, 4, 16, 64], 128, [0, 50, 100]
SMOKE = SimpleNamespace(ledger=10, clones=2, each=2, rounds=1, slow=5, each_slow=2, rounds_slow=1, offline=2)
SMOKE.writers, SMOKE.shared, SMOKE.delays = [1, 2], 4, [5]
OVERHEAD, OVERHEAD_CPU, TOGETHER, OFFLINE = at_most(1.1), at_most(1.2), at_most(2), at_most(2, " s")

# What a fetch and a push of the ledger's branch need, and no more.
FETCH = ["fetch", "--quiet", "--refmap=", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules"]
FETCH += ["--no-auto-gc", "origin", f"{REF}:{TRACKING}"]
PUSH = ["push", "--porcelain", "--no-verify", "origin"]


class Place:
    """A folder of bare repositories, and how clones reach them."""

    def __init__(self, seed, folder, name, address=None, count=None):
        self.seed, self.name, self.folder, self.count = seed, name, folder, count
        self.address = address or self.folder
        os.makedirs(self.folder, exist_ok=True)

    def repository(self, name):
        """A bare repository with the ledger, whose path is returned."""
        path = os.path.join(self.folder, name)
        run("git", "clone", "--quiet", "--bare", "--no-hardlinks", self.seed, path)
        run("git", "config", "http.receivepack", "true", at=path)
        run("git", "config", "receive.autogc", "false", at=path)
        return path

    def clone(self, repository, name, remote=True, branch=None):
        """A clone that has the ledger, on a branch of its own if one is named; without `remote`, the program takes it for the only one."""
        path = os.path.join(self.folder, "clones", name)
        run("git", "init", "--quiet", path)
        run("git", "remote", "add", "origin", f"{self.address}/{repository}", at=path)
        run("git", "fetch", "--quiet", "--no-tags", "origin", f"{REF}:{REF}", at=path)
        run("git", "update-ref", TRACKING, REF, at=path)
        if remote:
            run("git", "config", "handoff.remote", "origin", at=path)
        if branch:
            run("git", "branch", "--quiet", branch, REF, at=path)
            run("git", "push", "--quiet", "origin", branch, at=path)
            run("git", "config", "handoff.branch", branch, at=path)
        return path


class Contracts:
    """Contracts that open issues, one after the other; a step is a `send`, or the `claim` of what was sent."""

    def __init__(self, folder, count):
        self.folder, self.left, self.lock = folder, iter(range(count)), threading.Lock()

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


def connections(place, action):
    """The connections to a server that an action makes, besides its own answer."""
    size = lambda: os.path.getsize(place.count) if place.count and os.path.exists(place.count) else 0
    before = size()
    answer = action()
    return answer, size() - before


class Worker:
    """One writer in a clone that does its steps one after the other; what it acknowledged and how long each took."""

    def __init__(self, bench, clone, steps, number=0):
        self.bench, self.clone, self.steps = bench, clone, list(steps)
        self.walls, self.gave_up, self.here_alone, self.failed = [], 0, 0, None
        self.trace = f"{clone}-{number}.trace"

    def work(self):
        try:
            self.work_on()
        except Failed as failed:
            self.failed = failed

    def work_on(self):
        env = dict(os.environ, GIT_TRACE2=self.trace)
        step_on = lambda step, codes: self.bench.measure(self.bench.handoff, *step, at=self.clone, codes=codes, env=env).code
        for _, step in self.steps:
            start = time.perf_counter()
            while (code := step_on(step, (0, GAVE_UP, HERE_ALONE))) == GAVE_UP:
                self.gave_up += 1
            self.here_alone += code == HERE_ALONE
            self.walls.append(time.perf_counter() - start)
        if self.here_alone:
            step_on(["sync"], (0,))

    def pushes(self):
        with open(self.trace, encoding="utf-8") as file:
            return sum(1 for line in file if re.search(r" start \S*git\b.* push ", line))


class Remote:
    def __init__(self, bench):
        self.bench, self.size = bench, bench.size(FULL, SMOKE)
        size, handoff = self.size, bench.handoff
        self.handoff = handoff
        self.seed, _ = bench.ledger("remote/seed", size.ledger)
        self.tag = run("git", "rev-parse", REF, at=self.seed).strip()
        issues = 2 * 2 * (bench.runs + bench.warming + 1)  # of `overhead`
        # Of `together`: two runs in a round, two steps for an issue.
        issues += 3 * size.rounds * size.clones * size.each + size.rounds_slow * size.clones * size.each_slow
        issues += 2 * size.rounds * (size.offline // 2 + 1)  # of `offline`
        issues += len(size.delays) * len(size.writers) * size.shared // 2  # of `writers`
        self.contracts = Contracts(bench.steps("remote/steps", issues, 500_001), issues)
        self.counts_programs = shutil.which("strace")
        if not self.counts_programs:
            bench.leave_out("how many programs a write starts: strace is missing")

    def place(self, name, address=None, count=None):
        return Place(self.seed, self.bench.folder("remote", name), name, address, count)

    def serve(self, name, delay, servers):
        """A place behind a web server, which is added to `servers`."""
        place = self.place(name, count=self.bench.folder("remote", f"{name}-connections"))
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "http_server.py")
        server = subprocess.Popen([sys.executable, program, place.folder, place.count, str(delay)], stdout=subprocess.PIPE, text=True)
        servers.append(server)
        place.address = server.stdout.readline().strip()
        return place

    def counted(self, *command, at):
        """How many programs a command starts, itself left out; none where that can't be counted."""
        if not self.counts_programs:
            run(*command, at=at)
            return None
        trace = self.bench.folder("strace")
        run("strace", "-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o", trace, *command, at=at)
        with open(trace, encoding="utf-8") as file:
            started = [line for line in file if re.search(r"execve\(|execve resumed", line) and line.rstrip().endswith("= 0")]
        return len(started) - 1

    def bare(self, clone, step, timed):
        """The same step as a fetch, a local write that is not measured, and a push."""
        fetched = timed("git", *FETCH, at=clone)
        run("git", "update-ref", REF, TRACKING, at=clone)
        run(self.handoff, *step, at=clone)
        pushed = timed("git", *PUSH, f"{run('git', 'rev-parse', REF, at=clone).strip()}:{REF}", at=clone)
        run("git", "update-ref", TRACKING, REF, at=clone)
        return fetched, pushed

    def overhead(self, place):
        """A write against the fetch and the push that it can't avoid: two clones take turns, so that each fetch brings a step."""
        place.repository("turns.git")
        ours, other = place.clone("turns.git", "ours"), place.clone("turns.git", "bare", remote=False)
        samples = {verb: ([], []) for verb in ["send", "claim"]}
        for turn, counts in self.bench.turns():
            mine, theirs = self.contracts.issue(), self.contracts.issue()
            for verb in samples:
                sides = [
                    lambda: self.bench.measure(self.handoff, *mine[verb], at=ours),
                    lambda: total(self.bare(other, theirs[verb], self.bench.measure)),
                ]
                for side in (0, 1) if turn % 2 else (1, 0):
                    sample = sides[side]()
                    if counts:
                        samples[verb][side].append(sample)
        mine, theirs = self.contracts.issue(), self.contracts.issue()
        for verb, (tool, floor) in samples.items():
            wall, cpu = [middle(tool, what) / middle(floor, what) for what in ("wall", "cpu")]
            pairs = statistics.median(one.wall / two.wall for one, two in zip(tool, floor))
            programs, met = connections(place, lambda: self.counted(self.handoff, *mine[verb], at=ours))
            parts, met_bare = connections(place, lambda: self.bare(other, theirs[verb], self.counted))
            started = lambda n: "" if n is None else f"{n} programs"
            bare_programs = None if parts[0] is None else sum(parts) + 2
            many = lambda n: f", {n} connections" if place.count else ""
            words = f"{place.name}: `{verb}`"
            print(
                f"| {words} | {middle(tool):.1f} | {middle(floor):.1f} "
                f"| {wall:.2f}×, pairs {pairs:.2f}×: {self.bench.judge(words, wall, OVERHEAD)}; "
                f"CPU {cpu:.2f}×: {self.bench.judge(f'{words}, CPU', cpu, OVERHEAD_CPU)} "
                f"| {started(programs)}{many(met)} | {started(bare_programs)}{many(met_bare)} |"
            )

    def check(self, repository, clone, workers, branch="handoffs"):
        """Nothing that was acknowledged is missing or doubled, and both sides are whole."""
        wanted = sorted(f"{step[1]} pending..in_progress" for worker in workers for verb, step in worker.steps if verb == "claim")
        format = "--format=%(trailers:key=Transition,valueonly)"
        written = run("git", "log", format, f"{self.tag}..{branch}", at=repository).split("\n")
        claimed = sorted(line for line in written if line.endswith("..in_progress"))
        opened = [line for line in written if line.endswith("none..pending")]
        commits = int(run("git", "rev-list", "--count", f"{self.tag}..{branch}", at=repository))
        steps = sum(len(worker.steps) for worker in workers)
        assert claimed == wanted, (len(claimed), len(wanted))
        assert len(set(opened)) == len(opened) == steps // 2, (len(opened), steps)
        assert commits == steps, (commits, steps)
        run("git", "fetch", "--quiet", "origin", f"{branch}:refs/heads/checked", at=clone)
        run(self.handoff, "verify", "--branch", "checked", at=clone)
        for side in (repository, clone):
            run("git", "fsck", "--strict", "--no-dangling", "--no-progress", at=side)

    def play(self, workers):
        """Lets all work at once; the wall in seconds."""
        threads = [threading.Thread(target=worker.work) for worker in workers]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - start
        for worker in workers:
            if worker.failed:
                raise worker.failed
        return wall

    def at_once(self, place, name, count, each, own_branch):
        """So many clones that do so many steps each at once, checked: the wall in seconds, and the clones."""
        repository = place.repository(f"{name}.git")
        branches = [f"ledger-{n}" if own_branch else None for n in range(count)]
        clones = [place.clone(f"{name}.git", f"{name}-{n}", branch=branch) for n, branch in enumerate(branches)]
        workers = [Worker(self.bench, clone, self.contracts.steps(each)) for clone in clones]
        wall = self.play(workers)
        if own_branch:
            for worker, branch in zip(workers, branches):
                self.check(repository, worker.clone, [worker], branch)
        else:
            self.check(repository, workers[0].clone, workers)
        return wall, workers

    def together(self, place, words, each, rounds, own_branch=False):
        """Many clones at once against one clone that does all their steps, in turns."""
        pairs, rows, clones = [], [], self.size.clones
        words = f"{words}, {each} steps each" + (", a branch each" if own_branch else "")
        for turn in range(rounds):
            walls = {}
            for count in (1, clones) if turn % 2 == 0 else (clones, 1):
                name = f"{'apart' if own_branch else 'together'}-{count}-{turn}"
                walls[count], workers = self.at_once(place, name, count, clones * each // count, own_branch and count > 1)
                if count > 1:
                    steps = sorted(wall for worker in workers for wall in worker.walls)
                    retries = sum(worker.pushes() for worker in workers) / len(steps) - 1
                    gave_up, here_alone = sum(w.gave_up for w in workers), sum(w.here_alone for w in workers)
                    rows.append((retries, statistics.median(steps), steps[len(steps) * 95 // 100], steps[-1], gave_up, here_alone))
            pairs.append(walls)
            note(f"{words}: {clones} clones {walls[clones]:.1f} s, one {walls[1]:.1f} s, {rows[-1][0]:.2f} retries a step")
        ratios = [walls[clones] / walls[1] for walls in pairs]
        retries, medians, lates, longest, gave_up, here_alone = zip(*rows)
        judged = self.bench.judge(f"{clones} clones at once, {words}", statistics.median(ratios), TOGETHER)
        print(
            f"| {words} | {', '.join(f'{walls[clones]:.1f}' for walls in pairs)} | {', '.join(f'{walls[1]:.1f}' for walls in pairs)} "
            f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)}×: {judged} | {', '.join(f'{retry:.2f}' for retry in retries)} "
            f"| {statistics.median(medians) * 1e3:.0f} ms | {statistics.median(lates):.2f} s | {max(longest):.1f} s "
            f"| {sum(gave_up)}, {sum(here_alone)} |"
        )

    def writers(self, place, delay):
        """Writers of one clone at once, and one that does all their steps."""
        size, alone = self.size, None
        for count in size.writers:
            name = f"writers-{count}"
            repository, clone = place.repository(f"{name}.git"), place.clone(f"{name}.git", name)
            workers = [Worker(self.bench, clone, self.contracts.steps(size.shared // count), number) for number in range(count)]
            wall = self.play(workers)
            self.check(repository, clone, workers)
            steps = sorted(wall for worker in workers for wall in worker.walls)
            gave_up, here_alone = sum(w.gave_up for w in workers), sum(w.here_alone for w in workers)
            alone = alone or wall
            print(
                f"| {delay} ms | {count} | {wall:.1f} | {wall / alone:.2f}× | {len(steps) / wall:.1f} "
                f"| {statistics.median(steps) * 1e3:.0f} ms | {steps[len(steps) * 95 // 100] * 1e3:.0f} ms | {steps[-1]:.1f} s "
                f"| {gave_up}, {here_alone} |",
                flush=True,
            )

    def offline(self, place):
        """`sync` of many offline steps on a branch that moved meanwhile, and the bare fetch and push of the same objects."""
        rows = []
        for turn in range(self.size.rounds):
            name = f"offline-{turn}"
            repository = place.repository(f"{name}.git")
            clone, other = place.clone(f"{name}.git", name), place.clone(f"{name}.git", f"{name}-other")
            for _, step in self.contracts.steps(self.size.offline):
                run(self.handoff, *step, "--offline", at=clone, codes=(HERE_ALONE,))
            for _, step in self.contracts.steps(2):
                run(self.handoff, *step, at=other)
            # The floor: a clone without the other's steps, and a remote as it was before.
            before = place.repository(f"{name}-before.git")
            tip = run("git", "rev-parse", REF, at=repository).strip()
            run("git", "fetch", "--quiet", repository, f"{REF}:{REF}", at=before)
            plain = os.path.join(place.folder, "clones", f"{name}-plain")
            run("git", "init", "--quiet", plain)
            run("git", "remote", "add", "origin", f"{place.address}/{name}-before.git", at=plain)
            run("git", "fetch", "--quiet", self.seed, f"{REF}:{TRACKING}", at=plain)
            fetch = self.bench.measure("git", *FETCH, at=plain).wall
            sync = self.bench.measure(self.handoff, "sync", at=clone).wall
            new = run("git", "rev-parse", REF, at=clone).strip()
            assert new == run("git", "rev-parse", REF, at=repository).strip()
            assert int(run("git", "rev-list", "--count", f"{tip}..{new}", at=repository)) == self.size.offline
            run(self.handoff, "verify", at=clone)
            run("git", "fsck", "--strict", "--no-dangling", "--no-progress", at=repository)
            run("git", "remote", "add", "before", f"{place.address}/{name}-before.git", at=clone)
            push = self.bench.measure("git", "push", "--porcelain", "--no-verify", "before", f"{new}:{REF}", at=clone).wall
            rows.append((sync, fetch, push))
            note(f"{place.name}: sync {sync:.0f} ms, fetch {fetch:.0f} ms, push {push:.0f} ms")
        sync, fetch, push = (statistics.median(row[n] for row in rows) / 1e3 for n in range(3))
        own = statistics.median(sync - fetch - push for sync, fetch, push in rows) / 1e3
        judged = self.bench.judge(f"{place.name}: `sync` besides the transport", own, OFFLINE)
        print(f"| {place.name} | {sync:.2f} | {fetch:.3f} | {push:.2f} | {own:.2f} s: {judged} |")

    def print(self, path, http, slow, delayed):
        size = self.size
        print(f"| median of {self.bench.runs} pairs, ms | the program | bare `git fetch` + `git push` | | started by the program | by the bare commands |")
        print("|---|---:|---:|---|---|---|")
        self.overhead(path)
        self.overhead(http)
        print(f"\n| {size.clones} clones at once | s | one clone alone, s | | retries a step | median | 95 % | longest | exits 7, 8 |")
        print("|---|---|---|---|---|---:|---:|---:|---:|")
        self.together(path, "path", size.each, size.rounds)
        self.together(path, "path", size.each, size.rounds, own_branch=True)
        self.together(http, "http", size.each, size.rounds)
        self.together(slow, f"http, every answer {size.slow} ms later", size.each_slow, size.rounds_slow)
        print(f"\n| each answer later by | writers of one clone, {size.shared} steps in all | s | over one writer | steps/s | median | 95 % | longest | exits 7, 8 |")
        print("|---|---:|---:|---|---:|---:|---:|---:|---:|")
        for delay, place in delayed:
            self.writers(place, delay)
        print(f"\n| `sync` of {size.offline} offline steps, median of {size.rounds} | s | bare fetch, s | bare push, s | besides the transport |")
        print("|---|---:|---:|---:|---|")
        self.offline(path)
        self.offline(http)


def table(bench):
    remote, servers = Remote(bench), []
    try:
        delayed = [(delay, remote.serve(f"delayed-{delay}", delay, servers)) for delay in remote.size.delays]
        path, http = remote.place("path"), remote.serve("http", 0, servers)
        remote.print(path, http, remote.serve("slow", remote.size.slow, servers), delayed)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
