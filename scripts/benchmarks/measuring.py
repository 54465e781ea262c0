"""What the tables of scripts/bench share: running, measuring, making ledgers, judging by goals."""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import namedtuple

REF = "refs/heads/handoffs"

# Wall and CPU time in ms, from before the spawn until the process is reaped, and the most memory in MB. CPU time and memory
# count what the process waited for too: by path, a remote's side.
Sample = namedtuple("Sample", "wall cpu memory code")


class Failed(Exception):
    """A command that did not end as it has to."""

    def __init__(self, command, code, output):
        super().__init__(f"bench: {' '.join(command)}: status {code}: {output}")


class Goal(namedtuple("Goal", "sign limit unit")):
    def is_met(self, value):
        return {"≤": value <= self.limit, "<": value < self.limit, "≥": value >= self.limit}[self.sign]

    def __str__(self):
        return f"{self.sign} {self.limit:,g}{self.unit}"


def at_most(limit, unit="×"):
    return Goal("≤", limit, unit)


def below(limit, unit=""):
    return Goal("<", limit, unit)


def at_least(limit, unit="×"):
    return Goal("≥", limit, unit)


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*command, at=None, env=None, codes=(0,)):
    """Runs a command in a folder; what it prints."""
    ran = subprocess.run(command, cwd=at, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode not in codes:
        raise Failed(command, ran.returncode, ran.stdout + ran.stderr)
    return ran.stdout


def middle(samples, what="wall"):
    return statistics.median(getattr(sample, what) for sample in samples)


def total(samples):
    """What several processes one after the other took."""
    walls, cpus, memories, codes = zip(*samples)
    return Sample(sum(walls), sum(cpus), max(memories), max(codes))


def shown(value):
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


class Bench:
    """One run of scripts/bench."""

    def __init__(self, work, handoff, examples, environment, options):
        self.work, self.handoff, self.environment, self.options = work, handoff, environment, options
        self.tool, self.bare = os.path.join(examples, "bench_tool"), os.path.join(examples, "bare_writes")
        self.is_smoke = options.smoke
        self.runs, self.warming = (1, 0) if options.smoke else (options.runs, 2)
        self.sizes = [10, 40] if options.smoke else [1_000, 10_000] if options.quick else [1_000, 10_000, 100_000]
        if options.million and not options.smoke:
            self.sizes.append(1_000_000)
        self.missed, self.left_out, self.made = [], [], {}
        self.counts_instructions = bool(shutil.which("valgrind"))

    def size(self, full, smoke):
        return smoke if self.is_smoke else full

    def folder(self, *parts):
        path = os.path.join(self.work, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def turns(self):
        """The turns of a measurement, and whether one counts: the first ones are thrown away."""
        return ((turn, turn >= self.warming) for turn in range(self.warming + self.runs))

    def leave_out(self, what):
        note(f"bench: not measured: {what}")
        self.left_out.append(what)

    def judge(self, row, value, goal):
        """What a table says of a goal; one that is missed is listed at the end."""
        if goal.is_met(value):
            return f"met (goal {goal})"
        self.missed.append(f"{row}: {value:,.2f}{goal.unit} (goal {goal})")
        return f"**missed** (goal {goal})"

    def measure(self, *command, at=None, env=None, codes=(0,)):
        """Measures a command; `at` is a folder that is given to git or the program with `-C`."""
        if at:
            command = (command[0], "-C", at, *command[1:])
        errors = os.path.join(self.work, f"stderr-{threading.get_ident()}")
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        start = time.perf_counter_ns()
        pid = os.posix_spawnp(command[0], command, os.environ if env is None else env, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = (time.perf_counter_ns() - start) / 1e6
        code = os.waitstatus_to_exitcode(status)
        if code not in codes:
            with open(errors, encoding="utf-8") as file:
                raise Failed(command, code, file.read())
        # Kilobytes, but bytes on macOS.
        memory = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1024)
        return Sample(wall, (usage.ru_utime + usage.ru_stime) * 1e3, memory, code)

    def repository(self, name, *formats):
        """A new repository, of git's default formats or of these."""
        path = self.folder(name)
        run("git", "init", "--quiet", *formats, path)
        return path

    def instructions(self, *command, at=None, env=None, codes=(0,)):
        """The instructions of one process, in millions: nearly the same on a busy machine as on an idle one."""
        log = self.folder(f"valgrind-{threading.get_ident()}")
        counter = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}"]
        run(*counter, *command, at=at, env=env, codes=codes)
        with open(log, encoding="utf-8") as file:
            said = file.read()
        counted = re.search(r"I +refs: +([\d,]+)", said)
        if not counted:
            raise Failed(command, 0, f"valgrind counts nothing: {said}")
        return int(counted[1].replace(",", "")) / 1e6

    def shared_ledger(self, handoffs):
        """The same as `ledger`, but made once for all tables: those who write to it leave it whole."""
        if handoffs not in self.made:
            start = time.monotonic()
            self.made[handoffs] = self.ledger(str(handoffs), handoffs)
            note(f"{handoffs} handoffs: {self.made[handoffs][1]}, {time.monotonic() - start:.1f} s")
        return self.made[handoffs]

    def ledger(self, name, handoffs, *formats):
        """A new repository with a ledger of so many handoffs; its path, and what the generator says."""
        path = self.repository(name, *formats)
        run(self.handoff, "init", "--evidence", "off", at=path)
        return path, run(self.tool, "ledger", str(handoffs), at=path).strip()

    def steps(self, name, count, first):
        """A folder with steps that each open an issue, from the number `first` on."""
        path = self.folder(name)
        run(self.tool, "steps", str(count), str(first), path)
        return path

    def opened(self, name, sends, *formats):
        """A new repository with so many handoffs that are open with one agent; its path and the agent."""
        path, steps = self.repository(name, *formats), self.steps(f"{name}-steps", sends, 1)
        run(self.handoff, "init", "--evidence", "off", at=path)
        for number in range(sends):
            run(self.handoff, "send", os.path.join(steps, str(number), "contract"), at=path)
        names = self.open_handoffs(path)
        assert len(names) == sends, names
        return path, names[0][1]

    def crowded(self, name, claimable, waiting):
        """A new repository in which one agent has so many handoffs to claim and another so many; its path and the agents."""
        path = self.repository(name)
        run(self.handoff, "init", "--evidence", "off", at=path)
        run(self.tool, "open", str(claimable), str(waiting), at=path)
        run("git", "repack", "-adq", at=path)
        return path, "prep-agent", "implementer-agent"

    @staticmethod
    def open_handoffs(repository):
        """The ids of the handoffs that are open, each with its agent."""
        paths = run("git", "ls-tree", "-r", "--name-only", REF, "open/", at=repository).split()
        parts = [path.removesuffix(".json").split("/") for path in paths]
        return [(".".join(part[-1].split(".")[-2:]), part[1]) for part in parts]


@contextlib.contextmanager
def inside(folder):
    """In a folder, for commands that have no `-C`."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
