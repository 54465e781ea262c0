//! Every package of `scripts/package`, installed from local files as a user would, and used from there:
//! the version that names what installed it, a first handoff, the manual.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use test_support::files::copy;
use test_support::tools::PACKAGE;
use test_support::{Ran, TestEnvironment, program, project};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];
/// This machine's target, and what npm, gh and Debian call its processor.
const TARGET: &str = TARGETS[HERE];
const HERE: usize = cfg!(target_arch = "aarch64") as usize;
const CPU: &str = ["x64", "arm64"][HERE];
const ARCH: &str = ["amd64", "arm64"][HERE];

/// The program that is packed: the tests' own, stripped as a release is, or the one that is measured.
fn built(env: &TestEnvironment) -> PathBuf {
    let file = env.root().join("git-handoff");
    if !file.exists() {
        let given = std::env::var("PACKAGED_PROGRAM");
        let mut strip = env.command("strip");
        strip.arg("-o").arg(&file);
        strip.arg(given.unwrap_or_else(|_| program().to_owned()));
        run(env, strip);
    }
    file
}

/// Runs a command, which must succeed.
#[track_caller]
fn run(env: &TestEnvironment, command: Command) -> Ran {
    let words = command.get_args().map(|a| a.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.run(command, &words, None).success()
}

/// Packs a program, and returns the folder that has the package.
fn package(env: &TestEnvironment, kind: &str, program: &Path, target: &str) -> PathBuf {
    let out = env.root().join("packages");
    let mut command = env.command(project().join("scripts/package"));
    command.arg(kind).arg(program).arg(target).arg(&out);
    // A release's is packed well; here, time counts.
    command.env("GZIP_LEVEL", "1");
    command.env("DPKG_DEB_COMPRESSOR_TYPE", "gzip");
    command.env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    if kind == "wheel" {
        command.env("PYTHON", PACKAGE.folder().join("venv/bin/python"));
    }
    run(env, command);
    out
}

/// An environment with all that a release has once, and this machine's archive. The other archives
/// hold another program, which nothing runs.
fn released() -> (TestEnvironment, PathBuf) {
    let env = TestEnvironment::prepared("release", || {
        let env = TestEnvironment::with_repository();
        let other = env.root().join("other");
        fs::copy("/bin/true", &other).unwrap();
        for target in TARGETS {
            let program = if [TARGET, TARGETS[0]].contains(&target) {
                built(&env)
            } else {
                other.clone()
            };
            package(&env, "archive", &program, target);
        }
        let mut command = env.command(project().join("scripts/package"));
        command.arg("release").arg(env.root().join("packages"));
        run(&env, command);
        env
    });
    let out = env.root().join("packages");
    (env, out)
}

/// A command with programs of a folder first on its PATH.
fn with_path(env: &TestEnvironment, program: impl AsRef<OsStr>, first: &Path) -> Command {
    let mut command = env.command(program);
    let path = std::env::var_os("PATH").unwrap();
    let folders = [first.to_owned()].into_iter();
    let folders = folders.chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command
}

/// Installs a package, hands one piece of work on with it, and prints how long both took. The
/// installation returns the folder that goes on the PATH.
#[track_caller]
fn hands_on(
    env: &TestEnvironment,
    way: &str,
    by: &str,
    install: impl FnOnce() -> PathBuf,
) -> PathBuf {
    let start = Instant::now();
    let bin = install();
    let tour = env.root().join(format!("tour-{by}"));
    let git = |args: &[&str]| {
        let mut command = with_path(env, "git", &bin);
        command.arg("handoff").args(args);
        run(env, command)
    };
    git(&["demo", "--quick", tour.to_str().unwrap()])
        .says("the ledger is sound: 3 commits, 1 handoff");
    took(way, start);
    let details = git(&["--version", "--verbose"]).stdout;
    assert!(
        details.starts_with(&format!("git-handoff {VERSION}\n")),
        "{details}"
    );
    assert!(
        details.contains(&format!("\ninstalled by: {by}\n")),
        "{details}"
    );
    assert!(
        details.contains(&format!("\ntarget: {TARGET}\n")),
        "{details}"
    );
    let own = format!("\nprogram: {}/", env.root().display());
    assert!(details.contains(&own), "{details}");
    bin
}

/// A row of what `scripts/bench --install` prints.
#[allow(clippy::print_stdout, reason = "read by scripts/bench")]
fn took(way: &str, start: Instant) {
    println!("| {way} | {:.1} s |", start.elapsed().as_secs_f32());
}

/// Whether git finds the manual of what is in a folder of the PATH.
#[track_caller]
fn has_manual(env: &TestEnvironment, bin: &Path) {
    let mut command = with_path(env, "git", bin);
    command.args(["handoff", "--help"]).env("MANPAGER", "cat");
    run(env, command).says("Keep a ledger of handoffs between agents");
    let mut command = with_path(env, "man", bin);
    command.args(["-w", "git-handoff-send"]);
    let page = run(env, command).stdout;
    assert!(page.starts_with(env.root().to_str().unwrap()), "{page}");
}

#[track_caller]
fn has_completions(prefix: &Path, zsh: &str) {
    for file in [
        "bash-completion/completions/git-handoff",
        zsh,
        "fish/vendor_completions.d/git-handoff.fish",
    ] {
        let text = fs::read_to_string(prefix.join("share").join(file)).unwrap();
        assert!(text.contains("claim"), "{file}");
    }
}

#[test]
fn the_installer_unpacks_the_archive_whose_checksum_is_right() {
    let (env, out) = released();
    let prefix = env.root().join("it's a prefix");
    let install = |source: &Path| {
        let mut command = env.command("sh");
        command.arg(out.join("install.sh")).arg(&prefix);
        command.env("GIT_HANDOFF_SOURCE", format!("file://{}", source.display()));
        env.run(command, &[], None)
    };
    let bin = hands_on(&env, "archive, with `install.sh`", "install.sh", || {
        install(&out).success().says("on your PATH");
        prefix.join("bin")
    });
    has_manual(&env, &bin);
    has_completions(&prefix, "zsh/site-functions/_git-handoff");
    // Over what is there.
    install(&out).success();

    fs::remove_dir_all(&prefix).unwrap();
    install(&env.root().join("nowhere"))
        .exits(1)
        .says("SHA256SUMS cannot be fetched; nothing was installed");
    let archive = out.join(format!("git-handoff-{VERSION}-{TARGET}.tar.gz"));
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(archive, bytes).unwrap();
    install(&out)
        .exits(1)
        .says("is not what its checksum says; nothing was installed");
    assert!(!prefix.exists());
}

#[test]
fn npm_installs_the_program_of_the_platform() {
    let (env, out) = released();
    package(&env, "npm", &built(&env), TARGET);
    let main = out.join(format!("git-handoff-{VERSION}.tgz"));
    let platform = out.join(format!("git-handoff-linux-{CPU}-{VERSION}.tgz"));
    let prefix = env.root().join("npm");
    let npm = |args: &[&str]| {
        let mut command = env.command("npm");
        command
            .args(args)
            .args(["--offline", "--no-audit", "--no-fund"]);
        command.arg("--prefix").arg(&prefix);
        command
    };
    let bin = hands_on(&env, "npm", "npm", || {
        let mut command = npm(&["install", "--global", "--ignore-scripts"]);
        command.arg(&main).arg(&platform);
        run(&env, command);
        prefix.join("bin")
    });
    has_manual(&env, &bin);
    // The exit code is the program's.
    let mut command = with_path(&env, "git-handoff", &bin);
    command.args(["show", "7.1"]);
    env.run(command, &[], None).exits(9);

    // In a project, without the package of the platform and with it.
    let project = env.root().join("project");
    fs::create_dir(&project).unwrap();
    let npx = || {
        let mut command = env.command("npx");
        command.args(["--offline", "git-handoff", "demo", "--quick"]);
        command.arg(project.join("tour")).current_dir(&project);
        env.run(command, &[], None)
    };
    let mut command = env.command("npm");
    command
        .args(["install", "--offline", "--no-audit", "--no-fund"])
        .arg(&main)
        .current_dir(&project);
    run(&env, command);
    npx()
        .exits(9)
        .says(&format!("@git-handoff/linux-{CPU} is not installed"));
    let mut command = env.command("npm");
    command
        .args(["install", "--offline", "--no-audit", "--no-fund"])
        .arg(&platform)
        .current_dir(&project);
    run(&env, command);
    npx().success().says("the ledger is sound");
}

#[test]
fn pip_installs_the_wheel() {
    let env = TestEnvironment::with_repository();
    let out = package(&env, "wheel", &built(&env), TARGET);
    let venv = env.root().join("venv");
    let python = PACKAGE.folder().join("venv/bin/python");
    let bin = hands_on(&env, "wheel, with pip", "wheel", || {
        let mut command = env.command(&python);
        command.args(["-m", "venv", "--without-pip"]).arg(&venv);
        run(&env, command);
        let mut command = env.command(&python);
        command
            .args(["-m", "pip", "--python"])
            .arg(venv.join("bin/python"));
        command.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "git-handoff",
        ]);
        command.arg("--find-links").arg(&out);
        run(&env, command);
        venv.join("bin")
    });
    has_manual(&env, &bin);
    has_completions(&venv, "zsh/site-functions/_git-handoff");
}

#[test]
fn dpkg_installs_and_removes_the_package_and_lintian_finds_nothing() {
    let env = TestEnvironment::with_repository();
    let out = package(&env, "deb", &built(&env), TARGET);
    let deb = out.join(format!("git-handoff_{VERSION}_{ARCH}.deb"));
    let root = env.root().join("system");
    let dpkg = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(dpkg.join(folder)).unwrap();
    }
    fs::write(dpkg.join("status"), "").unwrap();
    let change = |args: &[&OsStr]| {
        // Some systems leave manuals out of what they install.
        let mut command = env.command("dpkg");
        command.args([
            "--force-depends",
            "--force-not-root",
            "--force-bad-path",
            "--path-include=/usr/share/*",
        ]);
        command.arg("--root").arg(&root).args(args);
        command.env("DPKG_FRONTEND_LOCKED", "1");
        run(&env, command);
    };
    let bin = hands_on(&env, "Debian package, with dpkg", "deb", || {
        change(&["--install".as_ref(), deb.as_ref()]);
        root.join("usr/bin")
    });
    has_manual(&env, &bin);
    has_completions(&root.join("usr"), "zsh/vendor-completions/_git-handoff");
    let mut lintian = env.command("lintian");
    lintian
        .args(["--allow-root", "--fail-on", "error,warning"])
        .arg(&deb);
    let found = run(&env, lintian);
    assert_eq!(found.stdout, "");
    change(&["--remove".as_ref(), "git-handoff".as_ref()]);
    assert!(!root.join("usr").exists());
}

#[test]
fn the_extension_of_gh_is_the_bare_program() {
    let env = TestEnvironment::with_repository();
    let out = package(&env, "gh", &built(&env), TARGET);
    // What gh does with the file whose name ends in this machine's system and processor.
    let extension = env.root().join("extensions/gh-handoff/gh-handoff");
    fs::create_dir_all(extension.parent().unwrap()).unwrap();
    let start = Instant::now();
    fs::copy(
        out.join(format!("gh-handoff_{VERSION}_linux-{ARCH}")),
        &extension,
    )
    .unwrap();
    let handoff = |args: &[&str]| {
        let mut command = env.command(&extension);
        command.args(args);
        run(&env, command)
    };
    let tour = env.root().join("tour");
    handoff(&["demo", "--quick", tour.to_str().unwrap()]).says("the ledger is sound");
    took("`gh extension`", start);
    handoff(&["--version", "--verbose"]).says("\ninstalled by: gh extension\n");
}

/// The image is made without docker, by the steps of its Dockerfile, and entered as another user.
#[test]
fn the_container_has_git_and_no_root() {
    let env = TestEnvironment::with_repository();
    let out = package(&env, "container", &built(&env), TARGET);
    let name = format!("git-handoff-{VERSION}-container-{TARGET}");
    let start = Instant::now();
    let mut tar = env.command("tar");
    tar.arg("-xzf")
        .arg(out.join(format!("{name}.tar.gz")))
        .args(["--strip-components", "1"])
        .arg("-C")
        .arg(env.root());
    run(&env, tar);
    let dockerfile = fs::read_to_string(env.root().join("Dockerfile")).unwrap();
    let steps: Vec<&str> = dockerfile
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .collect();
    assert_eq!(
        steps[2..],
        [
            "COPY usr /image/usr",
            "COPY root /root/image",
            "RUN /root/image /image",
            "FROM scratch",
            "COPY --from=image /image /",
            "ENV HOME=/tmp",
            "USER 65532:65532",
            "WORKDIR /work",
            "ENTRYPOINT [\"/usr/bin/git-handoff\"]",
        ]
    );
    let image = env.root().join("image");
    copy(&env.root().join("usr"), &image.join("usr"));
    let mut root = env.command(env.root().join("root"));
    root.arg(&image);
    run(&env, root);
    let enter = |entry: &[&str]| {
        let mut command = env.command("bwrap");
        command.arg("--bind").arg(&image).arg("/");
        command.args([
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
            "--unshare-all",
        ]);
        command.args([
            "--uid",
            "65532",
            "--gid",
            "65532",
            "--clearenv",
            "--setenv",
            "HOME",
            "/tmp",
        ]);
        command.args([
            "--setenv",
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ]);
        command.args(["--chdir", "/work", "--"]).args(entry);
        run(&env, command)
    };
    enter(&["/usr/bin/git-handoff", "demo", "--quick"]).says("the ledger is sound");
    took("container, after it was pulled", start);
    enter(&["/usr/bin/git-handoff", "--version", "--verbose"]).says("\ninstalled by: container\n");
    let script = "git handoff --version
        git handoff demo --quick tour >&2
        git clone -q tour copy
        git ls-remote https://127.0.0.1:1/ 2>&1 || true
        command -v apt-get bash || echo neither";
    enter(&["/bin/sh", "-ec", script])
        .says(&format!("git-handoff {VERSION}\n"))
        .says("Failed to connect to 127.0.0.1")
        .says("neither");
}

/// Each address in a formula or a flake, with its checksum.
fn pairs(out: &Path) -> Vec<(String, String)> {
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    let mut pairs: Vec<(String, String)> = Vec::new();
    for target in &TARGETS[..4] {
        let name = format!("git-handoff-{VERSION}-{target}.tar.gz");
        let line = sums
            .lines()
            .find(|line| line.ends_with(&format!("  {name}")));
        let url =
            format!("https://github.com/OWNER/git-handoff/releases/download/v{VERSION}/{name}");
        pairs.push((url, line.unwrap()[..64].to_owned()));
    }
    pairs.sort();
    pairs
}

fn pairs_of(printed: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = serde_json::from_str(printed).unwrap();
    pairs.sort();
    pairs
}

#[test]
fn the_formula_has_each_archive_with_its_checksum() {
    let (env, out) = released();
    // As much of Homebrew as a formula's head needs.
    let homebrew = r#"
        require "json"
        PAIRS = []
        class Formula
          def self.test; end
          def self.method_missing(name, *args)
            PAIRS << [args[0]] if name == :url
            PAIRS.last << args[0] if name == :sha256
            yield if block_given?
          end
        end
        load ARGV[0]
        abort "no install" unless GitHandoff.method_defined?(:install)
        puts PAIRS.to_json
    "#;
    let mut ruby = env.command("ruby");
    ruby.args(["-w", "-e", homebrew])
        .arg(out.join("git-handoff.rb"));
    let ran = run(&env, ruby);
    assert_eq!(pairs_of(&ran.stdout), pairs(&out));
}

#[test]
fn the_flake_has_each_archive_with_its_checksum() {
    let (env, out) = released();
    let mut tar = env.command("tar");
    tar.arg("-xzf")
        .arg(out.join(format!("git-handoff-{VERSION}-flake.tar.gz")))
        .arg("-C")
        .arg(env.root());
    run(&env, tar);
    // As much of nixpkgs as a derivation's arguments need.
    let nixpkgs = r#"
        file: let
          system = _: {
            fetchurl = { url, sha256 }: [ url sha256 ];
            autoPatchelfHook = "hook";
            lib = { optional = is: one: if is then [ one ] else []; licenses.mit = "MIT"; };
            stdenv = { isLinux = true; cc.cc.lib = "lib"; mkDerivation = arguments: arguments; };
          };
          systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
          nixpkgs.legacyPackages = builtins.listToAttrs (map (name: { inherit name; value = system name; }) systems);
          flake = import file;
        in builtins.map (one: one.default.src)
          (builtins.attrValues (flake.outputs { inherit nixpkgs; }).packages)
    "#;
    let mut nix = env.command("nix-instantiate");
    nix.args(["--eval", "--strict", "--json", "--readonly-mode", "--expr"]);
    nix.arg(format!(
        "({nixpkgs}) {}/flake/flake.nix",
        env.root().display()
    ));
    let ran = run(&env, nix);
    assert_eq!(pairs_of(&ran.stdout), pairs(&out));
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let env = TestEnvironment::with_repository();
    let packed = |folder: &str, zone: &str, mask: &str| {
        // Another file with the same bytes, of another time.
        let program = env.root().join(folder).join("git-handoff");
        fs::create_dir(program.parent().unwrap()).unwrap();
        fs::copy("/bin/true", &program).unwrap();
        let out = env.root().join(folder).join("packages");
        let script = "umask $1; for kind in archive npm wheel deb gh container; do \"$2\" $kind \"$3\" $4 \"$5\"; done";
        let mut command = env.command("sh");
        command
            .args(["-ec", script, "sh", mask])
            .arg(project().join("scripts/package"));
        command.arg(&program).arg(TARGET).arg(&out);
        command
            .env("TZ", zone)
            .env("PYTHON", PACKAGE.folder().join("venv/bin/python"));
        run(&env, command);
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read(path).unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let first = packed("one", "UTC", "022");
    let second = packed("two", "America/New_York", "077");
    assert_eq!(first.len(), 6);
    for ((name, one), (_, other)) in first.iter().zip(&second) {
        assert!(one == other, "{name}");
    }
}

/// What cargo packs of the crates; the folders that they reach by links are in it.
#[test]
fn every_crate_can_be_packed() {
    let env = TestEnvironment::with_repository();
    let target = env.root().join("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--workspace", "--exclude", "test-support"]);
    cargo.args(["--no-verify", "--allow-dirty", "--locked", "--offline"]);
    cargo
        .arg("--target-dir")
        .arg(&target)
        .current_dir(project());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (name, file) in [
        ("handoff-templates", "templates/issue-to-pr/protocol.json"),
        ("handoff-templates", "schemas/directive/handoff.schema.json"),
        ("handoff-agents", "agents/harnesses.json"),
        ("git-handoff", "docs/codes.md"),
    ] {
        let folder = format!("{name}-{VERSION}");
        let mut tar = env.command("tar");
        tar.arg("-tzf")
            .arg(target.join(format!("package/{folder}.crate")));
        tar.arg(format!("{folder}/{file}"));
        run(&env, tar);
    }
}

/// The address of an archive, as cargo binstall makes it of the manifest.
#[test]
fn cargo_binstall_finds_the_archives() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
        "--offline",
    ]);
    let output = cargo.current_dir(project()).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let own = packages
        .iter()
        .find(|p| p["name"] == "git-handoff")
        .unwrap();
    let binstall = &own["metadata"]["binstall"];
    let filled = |key: &str| {
        let values = [
            ("name", "git-handoff"),
            ("version", VERSION),
            ("target", TARGET),
            ("bin", "git-handoff"),
            ("binary-ext", ""),
            ("repo", own["repository"].as_str().unwrap()),
        ];
        values.iter().fold(
            binstall[key].as_str().unwrap().to_owned(),
            |text, (name, value)| text.replace(&format!("{{ {name} }}"), value),
        )
    };
    let env = TestEnvironment::with_repository();
    let out = package(&env, "archive", Path::new("/bin/true"), TARGET);
    let url = filled("pkg-url");
    let file = url
        .strip_prefix(&format!(
            "https://github.com/OWNER/git-handoff/releases/download/v{VERSION}/"
        ))
        .unwrap();
    let mut tar = env.command("tar");
    tar.arg("-tzf").arg(out.join(file)).arg(filled("bin-dir"));
    run(&env, tar);
}
