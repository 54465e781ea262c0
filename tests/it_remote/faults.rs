//! Connections that break at any byte, servers that die, disks that fill up: what was acknowledged is
//! there afterwards, once, and success is never told of what the remote does not have.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::clones::Clones;
use test_support::proof::times;
use test_support::remote::{
    Access, Daemon, Direction, Fault, Http, Proxy, address, assert_whole, hook, tip, unhook,
};
use test_support::until;
use test_support::{Ran, TestEnvironment};

/// How many steps a repository's ledger has.
fn steps(env: &TestEnvironment, at: &Path) -> usize {
    let listed = env.git(at, &["rev-list", "--count", "refs/heads/handoffs"]);
    listed.trim().parse().unwrap()
}

/// A team, its server behind a proxy, and how many issues it has opened.
struct Line {
    team: Clones,
    proxy: Proxy,
    opened: u32,
}

impl Line {
    fn new(scheme: &str, port: u16, team: Clones) -> Self {
        let proxy = Proxy::start(port);
        team.move_to(&address(scheme, proxy.port, "server.git"));
        Self {
            team,
            proxy,
            opened: 0,
        }
    }

    /// Sends a contract and says how that ended: 0 only where the remote has it.
    fn send(&mut self, more: &[&str]) -> Ran {
        self.opened += 1;
        let (env, repo) = (&self.team.env, self.team.env.repo());
        let before = steps(env, &self.team.bare);
        let ran = self.team.open(&repo, self.opened, more);
        let after = steps(env, &self.team.bare);
        match ran.status {
            0 => {
                assert_eq!(after, before + 1, "{}", ran.shown);
                assert_eq!(tip(env, &self.team.bare), tip(env, &repo), "{}", ran.shown);
            }
            8 => {
                // The answer may have been lost alone.
                assert!(after <= before + 1, "{}", ran.shown);
                assert!(
                    ran.stderr.contains("recorded here, but not on origin"),
                    "{}",
                    ran.shown
                );
                assert_eq!(steps(env, &repo), before + 1, "{}", ran.shown);
            }
            _ => panic!("{}", ran.shown),
        }
        let id = format!("{}.1", self.opened);
        assert!(ran.stdout.contains(&id), "{}", ran.shown);
        ran
    }

    /// Brings everything together over a connection that works: each step is there once.
    fn repair(&self) {
        self.proxy.heal();
        let ran = self.team.env.handoff(&["sync"]);
        assert_eq!(ran.status, 0, "{}", ran.shown);
        let opened = usize::try_from(self.opened).unwrap();
        let there = steps(&self.team.env, &self.team.bare);
        assert_eq!(there, 1 + opened, "{}", ran.shown);
        assert_eq!(tip(&self.team.env, &self.team.bare), self.team.env.tip());
    }

    /// Every issue has its one handoff, in all three repositories, which are sound.
    fn assert_sound(&self) {
        self.proxy.heal();
        self.team.there(&["sync"]).success();
        self.team.assert_together();
        let listed = self.team.env.data(&["list", "--limit", "0"]);
        let mut ids: Vec<String> = listed["handoffs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        let mut expected: Vec<String> = (1..=self.opened).map(|n| format!("{n}.1")).collect();
        ids.sort();
        expected.sort();
        assert_eq!(ids, expected);
    }

    /// Cuts each connection of a write at many places, once and for good.
    fn cut_everywhere(&mut self) {
        self.send(&[]);
        // One to look at the remote, and one to write.
        let carried = self.proxy.carried();
        assert_eq!(carried.len(), 2, "{carried:?}");
        let mut ended = [0_usize; 2];
        for (connection, bytes) in carried.iter().enumerate() {
            for (way, size) in [(Direction::Up, bytes[0]), (Direction::Down, bytes[1])] {
                assert!(size > 100, "{carried:?}");
                for (n, at) in [0, size / 4, size * 3 / 4, size - 1]
                    .into_iter()
                    .enumerate()
                {
                    let both = [Fault::None, Fault::Refuse];
                    // In the short form, each place with one of them.
                    let some = if times() > 1 {
                        &both[..]
                    } else {
                        &both[n % 2..=n % 2]
                    };
                    for &after in some {
                        let mut faults = vec![Fault::None; connection];
                        faults.push(Fault::Cut(way, at));
                        self.proxy.next(&faults);
                        self.proxy.always(after);
                        let ran = self.send(&[]);
                        ended[usize::from(ran.status == 8)] += 1;
                        self.repair();
                    }
                }
            }
        }
        self.assert_sound();
        // Both happen, or nothing was tested.
        assert!(ended[0] > 2 && ended[1] > 2, "{ended:?}");
    }

    /// Has each connection of a write stop without an end.
    fn stall_everywhere(&mut self) {
        for (connection, way, at) in [
            (0, Direction::Up, 0),
            (0, Direction::Down, 100),
            (1, Direction::Up, 300),
            (1, Direction::Down, 1),
        ] {
            let mut faults = vec![Fault::None; connection];
            faults.push(Fault::Stall(way, at));
            self.proxy.next(&faults);
            self.proxy.always(Fault::Stall(Direction::Up, 0));
            let ran = self.send(&["--timeout", "1500ms"]);
            assert_eq!(ran.status, 8, "{}", ran.shown);
            self.repair();
        }
        self.assert_sound();
    }
}

#[test]
fn the_proxy_does_what_it_is_told() {
    let team = Clones::new();
    let daemon = Daemon::start(&team.env);
    let line = Line::new("git", daemon.port, team);
    let repo = line.team.env.repo();
    let look = || {
        line.team
            .env
            .git_any(&repo, &["ls-remote", "origin"])
            .status
    };
    assert_eq!(look(), 0);
    let [[up, down]] = line.proxy.carried()[..] else {
        panic!("one connection")
    };
    assert!(up > 50 && down > 200, "{up} {down}");
    for fault in [
        Fault::Refuse,
        Fault::Cut(Direction::Up, 0),
        Fault::Cut(Direction::Up, up / 2),
        Fault::Cut(Direction::Down, 0),
        Fault::Cut(Direction::Down, down / 2),
    ] {
        line.proxy.next(&[fault]);
        assert_ne!(look(), 0, "{fault:?}");
        assert_eq!(look(), 0, "{fault:?}");
    }
}

#[test]
fn a_connection_to_git_daemon_may_break_at_any_byte() {
    let team = Clones::new();
    let daemon = Daemon::start(&team.env);
    Line::new("git", daemon.port, team).cut_everywhere();
}

#[test]
fn a_connection_to_a_web_server_may_break_at_any_byte() {
    let team = Clones::new();
    let http = Http::start(&team.env, Access::Open);
    Line::new("http", http.port, team).cut_everywhere();
}

#[test]
fn a_server_that_no_longer_answers_costs_no_more_than_the_budget() {
    let team = Clones::new();
    let daemon = Daemon::start(&team.env);
    Line::new("git", daemon.port, team).stall_everywhere();
    let team = Clones::new();
    let http = Http::start(&team.env, Access::Open);
    Line::new("http", http.port, team).stall_everywhere();
}

/// Ends what receives a push, the first time only.
const KILL_ONCE: &str = r#"[ -e "$GIT_DIR/killed" ] && exit 0
touch "$GIT_DIR/killed"
kill -KILL "$PPID"
sleep 1"#;

#[test]
fn a_server_that_is_killed_while_it_receives_has_it_or_not() {
    let team = Clones::new();
    let http = Http::start(&team.env, Access::Open);
    let mut line = Line::new("http", http.port, team);
    // Before the branch moves, and after it has.
    for name in ["pre-receive", "update", "post-receive"] {
        hook(&line.team.bare, name, KILL_ONCE);
        let ran = line.send(&[]);
        assert_eq!(ran.status, 0, "{name}: {}", ran.shown);
        let killed = line.team.bare.join("killed");
        fs::remove_file(killed).unwrap();
        unhook(&line.team.bare, name);
        line.repair();
    }
    line.assert_sound();
}

#[test]
fn a_server_that_is_gone_while_it_receives_has_it_later() {
    let team = Clones::new();
    let mut daemon = Daemon::start(&team.env);
    let mut line = Line::new("git", daemon.port, team);
    let begun = line.team.bare.join("begun");
    hook(
        &line.team.bare,
        "pre-receive",
        "touch \"$GIT_DIR/begun\"\nsleep 600",
    );
    let status = thread::scope(|scope| {
        let ran = scope.spawn(|| line.send(&[]).status);
        until("it is received", || begun.exists());
        daemon.kill();
        ran.join().unwrap()
    });
    assert_eq!(status, 8);
    unhook(&line.team.bare, "pre-receive");
    line.team.move_to(line.team.bare.to_str().unwrap());
    line.repair();
    line.assert_sound();
}

/// The remote is put on a disk of its own, of which so many KiB are free.
const ON_A_FULL_DISK: &str = r#"
    served=$1 left=$2 binary=$3 contract=$4
    cp -a "$served" "$served.copy"
    mount -t tmpfs -o size=16m none "$served" && cp -a "$served.copy/." "$served" || exit 99
    dd if=/dev/zero of="$served/fill" bs=64k 2>/dev/null
    dd if=/dev/zero of="$served/fill" bs=1k oflag=append conv=notrunc 2>/dev/null
    truncate -s "-${left}k" "$served/fill"
    before=$(git --git-dir="$served/server.git" rev-parse handoffs)
    "$binary" send "$contract" --timeout 5s; status=$?
    now=$(git --git-dir="$served/server.git" rev-parse handoffs)
    rm "$served/fill"
    {
        case $status in
        0) [ "$now" = "$(git rev-parse handoffs)" ] || exit 98 ;;
        8) [ "$now" = "$before" ] || exit 97 ;;
        esac
        "$binary" sync || exit 96
        [ "$(git rev-list --count handoffs)" = 3 ] || exit 95
        [ "$(git --git-dir="$served/server.git" rev-parse handoffs)" = "$(git rev-parse handoffs)" ] || exit 94
        "$binary" verify && git fsck --strict --no-dangling || exit 93
        git --git-dir="$served/server.git" fsck --strict --no-dangling || exit 92
    } >"$served.after" 2>&1
    exit "$status"
"#;

/// A shell in a mount namespace of its own, where the system gives one.
fn namespace(env: &TestEnvironment, script: &str) -> Option<Command> {
    ["-rm", "-m"].into_iter().find_map(|how| {
        let shell = |script: &str| {
            let mut command = env.command("unshare");
            command.args([how, "sh", "-c", script, "sh"]);
            command
        };
        let probed = shell("mount -t tmpfs none /mnt").output();
        let works = probed.is_ok_and(|ran| ran.status.success());
        works.then(|| shell(script))
    })
}

/// Where the system gives mount namespaces, as to root and in most containers.
#[cfg(target_os = "linux")]
#[test]
fn a_remote_whose_disk_is_full_takes_it_later() {
    let mut ended = Vec::new();
    let all = [0, 4, 8, 16, 32, 64, 4096];
    for left in all.into_iter().step_by(if times() > 1 { 1 } else { 2 }) {
        let team = Clones::new();
        team.open(&team.env.repo(), 1, &[]).success();
        let contract = team
            .env
            .file("two.xml", test_support::contracts::opening(2));
        let Some(mut command) = namespace(&team.env, ON_A_FULL_DISK) else {
            return;
        };
        command
            .arg(test_support::remote::served(&team.env))
            .arg(left.to_string())
            .arg(test_support::program())
            .arg(contract);
        let ran = team.env.run(command, &["send", "two.xml"], None);
        let after = fs::read_to_string(team.env.root().join("served.after")).unwrap_or_default();
        assert!([0, 8].contains(&ran.status), "{left}: {}{after}", ran.shown);
        ended.push(ran.status);
        assert_whole(&team.env, &team.env.repo());
    }
    assert_eq!((ended[0], ended[ended.len() - 1]), (8, 0), "{ended:?}");
}
