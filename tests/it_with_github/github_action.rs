//! The action's scripts, run for real: releases are installed if they are what they should be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::runner::{Runner, files, values};
use crate::yaml;
use serde_json::json;
use test_support::contracts::opening;
use test_support::files::script;
use test_support::remote::{Access, Http, bare};
use test_support::{Ran, TestEnvironment, repository_kind};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The revision of the action that is made of a release: it has the release's checksums.
fn action_of(env: &TestEnvironment) -> PathBuf {
    let revision = env.root().join("revision");
    fs::create_dir_all(revision.join("action")).unwrap();
    let copy = |name: &str| fs::copy(root().join(name), revision.join(name)).unwrap();
    copy("action/install");
    copy("Cargo.toml");
    let sums = format!("releases/v{VERSION}/SHA256SUMS");
    let _ = fs::copy(env.root().join(sums), revision.join("action/SHA256SUMS"));
    revision.join("action")
}

/// A folder with the release of a program.
fn release(env: &TestEnvironment, program: &Path) -> PathBuf {
    let releases = env.root().join("releases");
    let folder = releases.join(format!("v{VERSION}"));
    let status = Command::new(root().join("scripts/package"))
        .args([Path::new("archive"), program, Path::new(TARGET), &folder])
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let archive = releases.join(archive());
    let digest = handoff::base::digest(&fs::read(&archive).unwrap());
    let name = archive.file_name().unwrap().to_str().unwrap();
    fs::write(folder.join("SHA256SUMS"), format!("{digest}  {name}\n")).unwrap();
    releases
}

fn archive() -> String {
    format!("v{VERSION}/git-handoff-{VERSION}-{TARGET}.tar.gz")
}

/// A program that only knows its version: the real one is large.
fn program(env: &TestEnvironment, version: &str) -> PathBuf {
    let folder = env.root().join("built");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("git-handoff");
    script(&file, format!("#!/bin/sh\necho git-handoff {version}\n"));
    file
}

/// Runs action/install on a machine that has no git-handoff.
fn install(env: &TestEnvironment, action: &Path, variables: &[(&str, &str)]) -> Ran {
    let temp = env.root().join("temp");
    fs::create_dir_all(&temp).unwrap();
    for name in ["output", "path"] {
        fs::write(temp.join(name), "").unwrap();
    }
    let mut command = env.command(action.join("install"));
    command
        .env(
            "PATH",
            env.root().join("bin").display().to_string() + ":/usr/local/bin:/usr/bin:/bin",
        )
        .env("VERSION", VERSION)
        .env("RUNNER_OS", "Linux")
        .env("RUNNER_ARCH", "X64")
        .env("RUNNER_TEMP", &temp)
        .env("GITHUB_OUTPUT", temp.join("output"))
        .env("GITHUB_PATH", temp.join("path"))
        .envs(variables.iter().copied());
    env.run(command, &[], None)
}

fn origin(env: &TestEnvironment) -> String {
    let output = fs::read_to_string(env.root().join("temp/output")).unwrap();
    values(&output).remove("origin").unwrap_or_default()
}

#[test]
fn a_release_is_installed_when_its_checksum_is_right() {
    let env = TestEnvironment::new();
    let releases = release(&env, &program(&env, VERSION));
    let source = releases.to_str().unwrap();
    let action = action_of(&env);
    install(&env, &action, &[("SOURCE", source)]).success();
    assert_eq!(origin(&env), "release");
    let path = fs::read_to_string(env.root().join("temp/path")).unwrap();
    let said = Command::new(Path::new(path.trim()).join("git-handoff"))
        .output()
        .unwrap();
    assert_eq!(said.stdout, format!("git-handoff {VERSION}\n").as_bytes());
    // From the cache, once it has been checked again.
    install(&env, &action, &[("SOURCE", source)]).success();
    assert_eq!(origin(&env), "cache");
    let cached = env.root().join("temp/git-handoff-cache");
    let cached = cached.join(archive().split_once('/').unwrap().1);
    fs::write(&cached, "something else").unwrap();
    install(&env, &action, &[("SOURCE", source)]).success();
    assert_eq!(origin(&env), "release");
    // A later job takes the same by its checksum, from a revision that has none.
    let output = fs::read_to_string(env.root().join("temp/output")).unwrap();
    let checksum = values(&output).remove("checksum").unwrap();
    let bare = root().join("action");
    install(&env, &bare, &[("SOURCE", source), ("CHECKSUM", &checksum)]).success();
    assert_eq!(origin(&env), "cache");
    // What the release says of itself is not asked.
    install(&env, &bare, &[("SOURCE", source), ("BUILD", "never")])
        .exits(1)
        .says("nothing here vouches for a release")
        .says("build is never");
}

/// Runs action/install on GitHub's own server: releases come from there, and gh is asked.
fn install_on_github(env: &TestEnvironment, action: &Path, variables: &[(&str, &str)]) -> Ran {
    let github = env.root().join("github");
    let (github, releases) = (github.to_str().unwrap(), env.root().join("releases"));
    let known = [
        ("SERVER", "https://github.com"),
        ("ACTION_REPOSITORY", "owner/git-handoff"),
        ("BUILD", "never"),
        ("GH_TOKEN", "ghs_0123456789"),
        ("FAKE_GITHUB", github),
        ("RELEASES", releases.to_str().unwrap()),
    ];
    install(env, action, &[&known, variables].concat())
}

#[test]
fn an_attestation_vouches_for_a_release_where_gh_is() {
    let env = TestEnvironment::new();
    release(&env, &program(&env, VERSION));
    let bare = root().join("action");
    let bin = env.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    // The web server's answer is a file.
    let curl = "#!/bin/sh\nfor word; do case $last in --output) to=$word ;; esac; last=$word; done\n\
        case $word in https://github.com/owner/git-handoff/releases/download/*) ;; *) exit 6 ;; esac\n\
        cp \"$RELEASES/${word#*/releases/download/}\" \"$to\" 2>/dev/null || exit 22\n";
    script(&bin.join("curl"), curl);
    let none = "nothing here vouches for a release: this commit of the action has no checksum";
    install_on_github(&env, &bare, &[]).exits(1).says(none);
    std::os::unix::fs::symlink(root().join("tests/github-tools/gh"), bin.join("gh")).unwrap();
    let keep = |workflow: &str, tag: &str| {
        let digest =
            handoff::base::digest(&fs::read(env.root().join("releases").join(archive())).unwrap());
        let kept = json!([{ "digest": digest.to_string(), "repo": "owner/git-handoff", "workflow": workflow, "ref": tag }]);
        fs::create_dir_all(env.root().join("github")).unwrap();
        fs::write(
            env.root().join("github/attestations.json"),
            kept.to_string(),
        )
        .unwrap();
    };
    let workflow = "owner/git-handoff/.github/workflows/release.yml";
    let tag = format!("refs/tags/v{VERSION}");
    let committed = action_of(&env);
    // By another workflow, from another ref, or none at all: also if a checksum is committed.
    for (workflow, tag) in [
        ("owner/git-handoff/.github/workflows/ci.yml", &*tag),
        (workflow, "refs/heads/main"),
    ] {
        keep(workflow, tag);
        for action in [&bare, &committed] {
            install_on_github(&env, action, &[])
                .exits(1)
                .says("can be verified: nothing was installed");
            assert!(!env.root().join("temp/git-handoff-bin/git-handoff").exists());
        }
    }
    keep(workflow, &tag);
    for (action, from) in [(&bare, "release"), (&bare, "cache"), (&committed, "cache")] {
        install_on_github(&env, action, &[]).success();
        assert_eq!(origin(&env), from);
    }
    // What was put into the cache has no attestation.
    let cached = env.root().join("temp/git-handoff-cache");
    let cached = cached.join(archive().split_once('/').unwrap().1);
    fs::write(&cached, "something else").unwrap();
    install_on_github(&env, &bare, &[])
        .exits(1)
        .says("nothing was installed");
    install_on_github(&env, &bare, &[]).success();
    // Elsewhere, nobody can be asked: the committed checksum decides.
    let elsewhere = [("SERVER", "https://git.example")];
    install_on_github(&env, &bare, &elsewhere)
        .exits(1)
        .says(none);
}

#[test]
fn a_release_commits_its_checksums_with_the_action() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.git(env.root(), &["init", "-q", "--bare", "server"]);
    env.git(&repo, &["remote", "add", "origin", "../server"]);
    fs::create_dir_all(repo.join("action")).unwrap();
    fs::create_dir_all(repo.join("out")).unwrap();
    fs::write(repo.join("out/SHA256SUMS"), "0123  git-handoff.tar.gz\n").unwrap();
    let workflow = yaml(&root().join(".github/workflows/release.yml"));
    let steps = workflow["jobs"]["publish"]["steps"].as_array().unwrap();
    let name = "Commit the checksums with the action";
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    let mut command = env.command("bash");
    command
        .args(["-eo", "pipefail", "-c", step["run"].as_str().unwrap()])
        .current_dir(&repo)
        .env("GITHUB_REF_NAME", "v1.2.3");
    env.run(command, &[], None).success();
    // One commit above the tag's, and nothing else in it.
    let changed = ["diff", "--name-only", "action-v1.2.3~1", "action-v1.2.3"];
    assert_eq!(
        env.git(&env.root().join("server"), &changed),
        "action/SHA256SUMS\n"
    );
    let tags = env.git(
        &env.root().join("server"),
        &["for-each-ref", "--format=%(refname)"],
    );
    assert_eq!(tags, "refs/tags/action-v1.2.3\n");
}

#[test]
fn what_is_not_the_release_is_never_installed() {
    let env = TestEnvironment::new();
    let releases = release(&env, &program(&env, VERSION));
    let source = releases.to_str().unwrap();
    let action = action_of(&env);
    let nothing = || {
        let path = fs::read_to_string(env.root().join("temp/path")).unwrap();
        assert!(path.is_empty() && origin(&env).is_empty(), "{path}");
        assert!(!env.root().join("temp/git-handoff-bin/git-handoff").exists());
    };
    let pinned = "0".repeat(64);
    install(&env, &action, &[("SOURCE", source), ("CHECKSUM", &pinned)])
        .exits(1)
        .says("is not what its checksum says: nothing was installed");
    nothing();
    install(&env, &action, &[("SOURCE", source), ("CHECKSUM", "abc")])
        .exits(1)
        .says("64 hexadecimal digits");
    // Somebody put another archive there.
    let file = releases.join(archive());
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    install(&env, &action, &[("SOURCE", source)])
        .exits(1)
        .says("is not what its checksum says: nothing was installed");
    nothing();
    // Another version under this one's name.
    fs::remove_dir_all(&releases).unwrap();
    release(&env, &program(&env, "9.9.9"));
    let action = action_of(&env);
    install(&env, &action, &[("SOURCE", source)])
        .exits(1)
        .says("holds another version");
    let path = fs::read_to_string(env.root().join("temp/path")).unwrap();
    assert!(path.is_empty(), "{path}");
    // No release, and nothing to build.
    fs::remove_dir_all(env.root().join("temp/git-handoff-cache")).unwrap();
    for (name, value) in [("RUNNER_ARCH", "RISCV"), ("SOURCE", "/nowhere")] {
        install(
            &env,
            &action,
            &[("SOURCE", source), ("BUILD", "never"), (name, value)],
        )
        .exits(1)
        .says("build is never");
    }
    install(&env, &action, &[("BUILD", "perhaps")])
        .exits(1)
        .says("build is one of");
}

#[test]
fn releases_come_from_a_web_server_and_a_missing_one_is_built() {
    let env = TestEnvironment::new();
    let releases = release(&env, &program(&env, VERSION));
    let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
    let source = format!("http://{}", server.server_addr());
    thread::spawn(move || {
        for request in server.incoming_requests() {
            let path = releases.join(request.url().trim_start_matches('/'));
            let _ = match fs::read(path) {
                Ok(bytes) => request.respond(tiny_http::Response::from_data(bytes)),
                Err(_) => request.respond(tiny_http::Response::empty(404)),
            };
        }
    });
    let action = action_of(&env);
    install(&env, &action, &[("SOURCE", &source)]).success();
    assert_eq!(origin(&env), "release");

    // The action's own revision, with a cargo that builds what it is given.
    let cargo = env.root().join("bin/cargo");
    fs::create_dir_all(cargo.parent().unwrap()).unwrap();
    let text = format!(
        "#!/bin/sh\necho \"$@\" $GH_TOKEN >'{0}/asked'\nwhile [ \"$1\" != --root ]; do shift; done\n\
         mkdir -p \"$2/bin\"\ncp '{0}/built/git-handoff' \"$2/bin\"\n",
        env.root().display()
    );
    script(&cargo, text);
    fs::write(env.root().join("bin/rustup"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(
        env.root().join("bin/rustup"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let elsewhere = [
        ("SOURCE", &*format!("{source}/elsewhere")),
        ("GH_TOKEN", "ghs_0123456789"),
    ];
    fs::remove_dir_all(env.root().join("temp/git-handoff-cache")).unwrap();
    install(&env, &action, &elsewhere).success();
    assert_eq!(origin(&env), "source");
    let asked = fs::read_to_string(env.root().join("asked")).unwrap();
    assert!(asked.starts_with("install --locked "), "{asked}");
    assert!(!asked.contains("ghs_"), "{asked}");
    assert!(
        asked.contains(&format!(
            "--path {}/action/..",
            env.root().join("revision").display()
        )),
        "{asked}"
    );
    // What was built is built once, if its digest is given; whatever prints the version is not run.
    let built = env
        .root()
        .join("temp/git-handoff-cache/built/bin/git-handoff");
    let digest = handoff::base::digest(&fs::read(&built).unwrap()).to_string();
    let pinned = [elsewhere[0], ("CHECKSUM", &*digest)];
    fs::remove_file(env.root().join("asked")).unwrap();
    install(&env, &action, &pinned).success();
    assert_eq!(origin(&env), "cache");
    assert!(!env.root().join("asked").exists());
    let sly = env.root().join("sly");
    script(
        &built,
        format!(
            "#!/bin/sh\necho 'git-handoff {VERSION}'; touch '{}'\n",
            sly.display()
        ),
    );
    for given in [&elsewhere[..], &pinned] {
        install(&env, &action, given).success();
        assert_eq!(origin(&env), "source");
        assert!(!sly.exists());
        script(
            &built,
            format!(
                "#!/bin/sh\necho 'git-handoff {VERSION}'; touch '{}'\n",
                sly.display()
            ),
        );
    }
    // Of another version there is no source here.
    install(&env, &action, &[elsewhere[0], ("VERSION", "0.0.9")])
        .exits(1)
        .says("there is no release of git-handoff 0.0.9");
}

#[test]
fn a_private_mirror_takes_its_own_token_and_a_private_release_the_servers() {
    let env = TestEnvironment::new();
    let releases = release(&env, &program(&env, VERSION));
    let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
    let address = server.server_addr().to_string();
    let (tell, told) = std::sync::mpsc::channel();
    let folder = releases.clone();
    thread::spawn(move || {
        for request in server.incoming_requests() {
            let named = |header: &&tiny_http::Header| header.field.equiv("authorization");
            let token = request
                .headers()
                .iter()
                .find(named)
                .map(|header| header.value.to_string());
            let path = folder.join(request.url().trim_start_matches('/'));
            let may = token.as_deref() == Some("Bearer mirror-1");
            tell.send(token.unwrap_or_default()).unwrap();
            let _ = match fs::read(path).ok().filter(|_| may) {
                Some(bytes) => request.respond(tiny_http::Response::from_data(bytes)),
                None => request.respond(tiny_http::Response::empty(404)),
            };
        }
    });
    let (action, source) = (action_of(&env), format!("http://{address}"));
    let own = [
        ("SOURCE", &*source),
        ("GH_TOKEN", "ghs_0123456789"),
        ("BUILD", "never"),
    ];
    install(&env, &action, &own)
        .exits(1)
        .says("there is no release");
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [""]);
    install(
        &env,
        &action,
        &[&own[..], &[("SOURCE_TOKEN", "mirror-1")]].concat(),
    )
    .success();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["Bearer mirror-1"]);
    // Without a mirror, the server has the release, and gh the token for it.
    fs::remove_dir_all(env.root().join("temp")).unwrap();
    let bin = env.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let gh = format!(
        "#!/bin/sh\n[ \"$1 $2 $5\" = 'release download {address}/owner/git-handoff' ] || exit 1\n\
         [ \"$GH_ENTERPRISE_TOKEN\" = ghs_0123456789 ] && cp '{}'/\"$3/$7\" \"$9\"\n",
        releases.display()
    );
    script(&bin.join("gh"), gh);
    let server = [
        ("SERVER", &*source),
        ("ACTION_REPOSITORY", "owner/git-handoff"),
    ];
    install(&env, &action, &[&server[..], &own[1..]].concat()).success();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [""]);
    assert_eq!(origin(&env), "release");
}

#[test]
fn the_action_installs_fetches_runs_and_tells() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let runner = Runner::new(env);
    let repo = runner.env.repo();
    runner
        .env
        .git(&repo, &["push", "-q", "../owner/desk", "handoffs"]);
    let run = runner.own_action_alone(json!({
        "ledger": "handoffs",
        "command": "list\n\nverify --format github\n",
        "issue": "87",
    }));
    run.job("job", "success")
        .says(&format!("git-handoff {VERSION} from path"))
        .says("87.1  pending")
        .says("the ledger is sound")
        .says(r#"outputs {"state":"open","gate":"false","holder":"prep-agent"}"#);
    assert!(
        run.summary.starts_with("## Issue `87`: open"),
        "{}",
        run.summary
    );
    // No shell sees the words.
    let run = runner.own_action_alone(json!({
        "ledger": "handoffs",
        "command": "show 87.1;touch$IFS/sly $(touch sly)",
    }));
    run.job("job", "failure");
    let made = runner
        .written()
        .iter()
        .any(|(path, _)| path.ends_with("sly"));
    assert!(!made && !Path::new("/sly").exists());
    let run = runner.own_action_alone(json!({ "ledger": "elsewhere" }));
    run.job("job", "failure")
        .says("::error title=git-handoff::the ledger's branch can't be fetched");
}

#[test]
fn git_finds_the_token_in_the_environment_and_nowhere_else() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let desk = bare(&env, "owner/desk");
    let push = ["push", "-q", desk.to_str().unwrap(), "handoffs"];
    env.git(&env.repo(), &push);
    let http = Http::start(&env, Access::Users);
    let address = http.address("owner/desk");
    let server = address.strip_suffix("/owner/desk").unwrap();
    // What the server takes for the token.
    let token = "nekot-ssecca-x";
    let temp = env.root().join("temp");
    fs::create_dir_all(&temp).unwrap();
    let fetch = |token: &str| {
        fs::write(temp.join("output"), "").unwrap();
        let mut command = env.command(root().join("action/ledger"));
        command
            .env("LEDGER", "handoffs")
            .env("SERVER", server)
            .env("REPOSITORY", "owner/desk")
            .env("GH_TOKEN", token)
            .env("RUNNER_TEMP", &temp)
            .env("GITHUB_OUTPUT", temp.join("output"));
        env.run(command, &[], None)
    };
    fetch("wrong-token-0123456789")
        .exits(1)
        .says("::error title=git-handoff::");
    let ran = fetch(token).success();
    assert!(!ran.stdout.contains(token) && !ran.stderr.contains(token));
    // Another server, to which this one may redirect, gets none.
    let ledger = temp.join("ledger.git");
    let told = |host: &str| {
        let mut command = env.command("git");
        command.current_dir(&ledger).args(["credential", "fill"]);
        command
            .env("GH_TOKEN", token)
            .env("GIT_TERMINAL_PROMPT", "0");
        repository_kind::name_bare(&mut command, &ledger);
        let asked = format!("protocol=http\nhost={host}\n\n");
        env.run(command, &[], Some(asked.as_bytes()))
    };
    let own = server.trim_start_matches("http://");
    let given = told(own.split('/').next().unwrap()).success();
    assert!(given.stdout.contains(token), "{}", given.shown);
    let other = told("elsewhere.example");
    assert!(
        other.status != 0 && !other.stdout.contains(token),
        "{}",
        other.shown
    );
    // A step that pushes needs no more than the token in its environment.
    let claim = ["claim", "87", "--as", "prep-agent"];
    let mut command = env.program(&claim);
    command.current_dir(&ledger).env("GH_TOKEN", token);
    repository_kind::name_bare(&mut command, &ledger);
    env.run(command, &claim, None).success();
    let there = env.git(&desk, &["rev-parse", "handoffs"]);
    assert_eq!(there, env.git(&ledger, &["rev-parse", "handoffs"]));
    assert_ne!(there.trim(), env.tip());
    let complete = ["complete", "87.1", "--as", "prep-agent"];
    let mut command = env.program(&complete);
    command
        .current_dir(&ledger)
        .env("GH_TOKEN", "wrong-token-0123456789");
    repository_kind::name_bare(&mut command, &ledger);
    let refused = env.run(command, &complete, None);
    assert_ne!(refused.status, 0, "{}", refused.shown);
    assert!(!refused.shown.contains("wrong-token"), "{}", refused.shown);
    for (path, bytes) in files(&temp) {
        for token in [token, "wrong-token-0123456789"] {
            let holds = bytes.windows(token.len()).any(|w| w == token.as_bytes());
            assert!(!holds, "{}", path.display());
        }
    }
}
