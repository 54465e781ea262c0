//! Secrets are refused before anything is kept, and never shown. The secrets here are made up while the
//! tests run, so that the repository holds none that a scanner could find.

use std::fs;
use std::path::Path;
use std::process::Command;

use handoff::contract::{Allowance, Input, Secrets};
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample};
use test_support::{Ran, TestEnvironment};

/// Random characters, the same in every run.
struct Lot(u64);

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";

impl Lot {
    fn next(&mut self) -> u64 {
        // Steele, Lea and Flood's SplitMix.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn of(&mut self, characters: &str, length: usize) -> String {
        let all: Vec<char> = characters.chars().collect();
        let one = |_| all[usize::try_from(self.next() % all.len() as u64).unwrap()];
        (0..length).map(one).collect()
    }

    /// Letters of both cases and digits.
    fn word(&mut self, length: usize) -> String {
        self.of(&[LOWER, UPPER, DIGITS].concat(), length)
    }

    fn hex(&mut self, length: usize) -> String {
        self.of(HEX, length)
    }
}

/// A text with a secret of some kind: the rule, the text, and the secret alone.
struct Made {
    rule: &'static str,
    text: String,
    secret: String,
}

fn made(rule: &'static str, before: &str, secret: &str, after: &str) -> Made {
    Made {
        rule,
        text: format!("{before}{secret}{after}"),
        secret: secret.to_owned(),
    }
}

/// Every kind of secret that is tried.
fn kinds() -> Vec<Made> {
    let lot = &mut Lot(20_260_302);
    let base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let base64 = &[LOWER, UPPER, DIGITS].concat();
    let mut all = Vec::new();
    let mut own = |rule, secret: String| all.push(made(rule, "see ", &secret, " in the log"));
    own("aws-access-key", format!("AKIA{}", lot.of(base32, 16)));
    own("github-pat", format!("ghp_{}", lot.word(36)));
    own(
        "github-fine-grained-pat",
        format!("github_pat_{}_{}", lot.word(22), lot.word(59)),
    );
    own("github-oauth", format!("gho_{}", lot.word(36)));
    own("github-app", format!("ghs_{}", lot.word(36)));
    own("gitlab-pat", format!("glpat-{}", lot.word(20)));
    own(
        "slack-token",
        format!(
            "xoxb-{}-{}-{}",
            lot.of(DIGITS, 12),
            lot.of(DIGITS, 12),
            lot.word(24)
        ),
    );
    own(
        "slack-webhook",
        format!(
            "https://hooks.slack.com/services/T{}/B{}/{}",
            lot.of(UPPER, 9),
            lot.of(UPPER, 9),
            lot.word(24)
        ),
    );
    own("stripe-secret-key", format!("sk_live_{}", lot.word(24)));
    own("stripe-test-key", format!("sk_test_{}", lot.word(24)));
    own("stripe-webhook-secret", format!("whsec_{}", lot.word(32)));
    own("gcp-api-key", format!("AIza{}", lot.word(35)));
    own("google-oauth-token", format!("ya29.{}", lot.word(60)));
    own("google-client-secret", format!("GOCSPX-{}", lot.word(28)));
    own(
        "openai-api-key",
        format!("sk-proj-{}T3BlbkFJ{}", lot.word(74), lot.word(73)),
    );
    own(
        "anthropic-api-key",
        format!("sk-ant-api03-{}AA", lot.word(93)),
    );
    own("huggingface-token", format!("hf_{}", lot.word(34)));
    own("npm-token", format!("npm_{}", lot.word(36)));
    own(
        "pypi-token",
        format!("pypi-AgEIcHlwaS5vcmc{}", lot.word(150)),
    );
    own("docker-token", format!("dckr_pat_{}", lot.word(27)));
    own(
        "sendgrid-api-key",
        format!("SG.{}.{}", lot.word(22), lot.word(43)),
    );
    own("digitalocean-token", format!("dop_v1_{}", lot.hex(64)));
    own("vault-token", format!("hvs.{}", lot.word(90)));
    own("databricks-token", format!("dapi{}", lot.hex(32)));
    own("shopify-token", format!("shpat_{}", lot.hex(32)));
    own("notion-token", format!("ntn_{}", lot.word(46)));
    own(
        "telegram-bot-token",
        format!("{}:AA{}", lot.of("123456789", 10), lot.word(33)),
    );
    own(
        "jwt",
        format!("eyJ{}.eyJ{}.{}", lot.word(33), lot.word(80), lot.word(43)),
    );
    own(
        "private-key",
        format!(
            "-----BEGIN {} KEY-----\n{}\n{}\n-----END {0} KEY-----",
            "OPENSSH PRIVATE",
            lot.of(base64, 70),
            lot.of(base64, 70)
        ),
    );
    own(
        "age-secret-key",
        format!("AGE-SECRET-KEY-1{}", lot.of(&[UPPER, DIGITS].concat(), 58)),
    );
    let mut named = |rule, before: &str, secret: String, after: &str| {
        all.push(made(rule, before, &secret, after));
    };
    named(
        "password-assignment",
        "it has password = '",
        format!("{}-7!", lot.word(9)),
        "' set",
    );
    named(
        "password-assignment",
        "run it with DB_PASSWORD=",
        lot.word(12) + "9",
        " as before",
    );
    named(
        "generic-api-key",
        "the api_key: ",
        lot.word(32),
        " was used",
    );
    named("generic-secret", "export SESSION_TOKEN=", lot.hex(40), "");
    named(
        "basic-auth",
        "curl -H 'Authorization: Bearer ",
        lot.word(40),
        "' was run",
    );
    named(
        "aws-secret-key",
        "aws_secret_access_key = ",
        lot.word(40),
        " was used",
    );
    named(
        "azure-storage-key",
        "it has AccountName=desk;AccountKey=",
        lot.word(86) + "==",
        " set",
    );
    named(
        "postgres-connection-uri",
        "postgres://desk:",
        lot.word(16),
        "@db.internal/desk",
    );
    named(
        "mongodb-connection-uri",
        "mongodb+srv://desk:",
        lot.word(16),
        "@db.internal/desk",
    );
    named(
        "url-credentials",
        "push to https://desk:",
        lot.word(16),
        "@git.internal/desk.git",
    );
    all
}

/// The contract that opens an issue, with another summary.
fn with_summary(format: Format, issue: u32, summary: &str) -> String {
    let text = sample("issue-manager-to-prep-agent", format, issue);
    let plain = "Dispatchers ask for their delivery history as a file";
    assert!(text.contains(plain));
    match format {
        Format::Xml => text.replace(plain, summary),
        Format::Json => {
            let quoted = Value::from(summary).to_string();
            text.replace(&format!("\"{plain}\""), &quoted)
        }
    }
}

/// Every object of the repository, with what it holds.
fn objects(env: &TestEnvironment) -> Vec<u8> {
    let output = Command::new("git")
        .args(["cat-file", "--batch-all-objects", "--batch"])
        .current_dir(env.repo())
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|here| here == text.as_bytes())
}

/// Insists that no part of a secret was said: ten characters of it tell enough.
#[track_caller]
fn tells_nothing(ran: &Ran, secret: &str) {
    for line in secret.lines().filter(|line| line.len() > 9) {
        // What a prefix has in common with its rule is no secret.
        let start = line.len().saturating_sub(10);
        for part in [line, &line[start..]] {
            assert!(!ran.stdout.contains(part), "{}", ran.shown);
            assert!(!ran.stderr.contains(part), "{}", ran.shown);
        }
    }
}

fn found(ran: &Ran) -> Vec<Value> {
    let error = &ran.json()["error"];
    assert_eq!(error["code"], "secret_found", "{}", ran.shown);
    let findings = error["findings"].as_array().unwrap().iter();
    findings
        .filter(|f| f["code"] == "secret.found")
        .cloned()
        .collect()
}

#[test]
fn every_kind_of_secret_is_refused_and_told_to_nobody() {
    let env = TestEnvironment::with_ledger();
    let kinds = kinds();
    assert!(kinds.len() >= 25);
    for kind in &kinds {
        for format in [Format::Xml, Format::Json] {
            let contract = with_summary(format, 7, &kind.text);
            let ran = env
                .handoff_with(&["send", "-", "--json"], &contract)
                .exits(3);
            let findings = found(&ran);
            assert_eq!(
                findings.len(),
                1,
                "{} in {:?}: {}",
                kind.rule,
                kind.text,
                ran.shown
            );
            let message = findings[0]["message"].as_str().unwrap();
            let rule = format!("(rule {})", kind.rule);
            assert!(
                message.contains(&rule),
                "{} {}: {message}",
                kind.rule,
                kind.text
            );
            let path = match format {
                Format::Xml => "/handoff/summary",
                Format::Json => "/summary",
            };
            assert_eq!(findings[0]["path"], path);
            assert_eq!(findings[0]["line"], 9);
            tells_nothing(&ran, &kind.secret);
            let ran = env.send(&contract).exits(3).says(kind.rule);
            tells_nothing(&ran, &kind.secret);
        }
        let file = env.file("contract.xml", with_summary(Format::Xml, 7, &kind.text));
        let ran = env.handoff(&["check", &file]).exits(3).says(kind.rule);
        tells_nothing(&ran, &kind.secret);
    }
    let objects = objects(&env);
    for kind in &kinds {
        let line = kind.secret.lines().max_by_key(|line| line.len()).unwrap();
        assert!(!holds(&objects, line), "{}", kind.rule);
    }
    env.send(opening(7)).success();
}

#[test]
fn no_escape_hides_a_secret() {
    let env = TestEnvironment::with_ledger();
    let secret = format!("ghp_{}", Lot(3).word(36));
    let (head, tail) = secret.split_at(2);
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    let json = with_summary(Format::Json, 7, "HERE");
    let all: String = secret.chars().map(escaped).collect();
    let references: String = secret
        .chars()
        .map(|c| format!("&#{};", u32::from(c)))
        .collect();
    let hexadecimal: String = secret
        .chars()
        .map(|c| format!("&#x{:x};", u32::from(c)))
        .collect();
    let first = references.split_inclusive(';').next().unwrap();
    let hidden = [
        json.replace("HERE", &all),
        json.replace("HERE", &format!("{}{}", escaped('g'), &secret[1..])),
        with_summary(Format::Xml, 7, &references),
        with_summary(Format::Xml, 7, &hexadecimal),
        with_summary(Format::Xml, 7, &format!("{first}{}", &secret[1..])),
        with_summary(Format::Xml, 7, &format!("{head}<![CDATA[{tail}]]>")),
        with_summary(Format::Xml, 7, &format!("{head}<!-- x -->{tail}")),
        with_summary(Format::Xml, 7, &format!("<!-- {secret} -->Dispatchers")),
    ];
    for contract in hidden {
        let ran = env
            .handoff_with(&["send", "-", "--json"], &contract)
            .exits(3);
        assert_eq!(found(&ran).len(), 1, "{contract}");
        tells_nothing(&ran, &secret);
    }
    assert!(!holds(&objects(&env), &secret));
}

#[test]
fn a_secret_is_found_in_a_key_and_in_what_is_no_contract() {
    let secret = format!("glpat-{}", Lot(4).word(20));
    let key = json!({ &secret: {"a": [1, {"b": "c"}]} }).to_string();
    for bytes in [
        key,
        format!("{{\"a\": \"{secret}\", }}"),
        format!("<a>{secret}"),
        format!("nothing that is a contract {secret}"),
        format!("HANDOFF: A → B\n\nNOTES: {secret}\n"),
    ] {
        let secrets = Secrets::in_input(&Input::read(bytes.as_bytes()));
        assert_eq!(secrets.iter().count(), 1, "{bytes}");
        for told in secrets.iter() {
            let finding = format!("{told:?} {:?} {:?}", told.finding(), told.allowance());
            assert!(!finding.contains(&secret[6..]), "{finding}");
            assert!(finding.contains("gitlab-pat"));
        }
    }
    let mut binary = vec![0, 159, 255, b'\n', 1];
    binary.extend_from_slice(secret.as_bytes());
    binary.push(0);
    let secrets = Secrets::in_file("core.1", &binary);
    let told = secrets.iter().next().unwrap();
    assert_eq!(
        (told.finding().path.as_str(), told.finding().line),
        ("core.1", Some(2))
    );
}

#[test]
fn a_password_is_known_by_its_key() {
    let password = format!("{}-41", Lot(5).of(LOWER, 8));
    let value = json!({"database": {"password": &password, "user": "desk"}});
    let secrets = Secrets::in_value(&value);
    let told = secrets.iter().next().unwrap().allowance();
    assert_eq!(told.to_string(), "password-assignment@/database/password");
    let xml = format!("<a><b><password>{password}</password></b><b pwd=\"{password}\"/></a>");
    let secrets = Secrets::in_input(&Input::read(xml.as_bytes()));
    let places: Vec<String> = secrets.iter().map(|s| s.place()).collect();
    assert_eq!(places, ["/a/b[1]/password", "/a/b[2]/@pwd"]);
}

#[test]
fn other_findings_do_not_tell_the_secret_either() {
    let env = TestEnvironment::with_ledger();
    let secret = format!("ghp_{}", Lot(6).word(36));
    // A value that its schema refuses is shown, and a name that nobody has.
    let contract = opening(7)
        .replace(">medium<", &format!(">{secret}<"))
        .replace(">prep-agent<", &format!(">{secret}<"));
    for args in [
        &["send", "-", "--json"][..],
        &["send", "-"],
        &["check", "-"],
    ] {
        let ran = env.handoff_with(args, &contract).says("secret.found");
        assert_ne!(ran.status, 0);
        tells_nothing(&ran, &secret);
        assert!(!ran.shown.contains(&secret[4..12]), "{}", ran.shown);
    }
    let twice = opening(7).replace("<type>", &format!("<{secret}>x</{secret}><type>"));
    let ran = env.send(twice).exits(3).says("secret.found");
    tells_nothing(&ran, &secret);
}

#[test]
fn what_contracts_hold_anyway_is_no_secret() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut seen = 0;
    for protocol in fs::read_dir(samples).unwrap() {
        let valid = protocol.unwrap().path().join("valid");
        let files = fs::read_dir(valid).into_iter().flatten();
        for file in files {
            let path = file.unwrap().path();
            let secrets = Secrets::in_input(&Input::read(&fs::read(&path).unwrap()));
            assert!(secrets.is_empty(), "{}: {secrets:?}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 90);
    let lot = &mut Lot(7);
    for round in 0..200 {
        let uuid = [8, 4, 4, 4, 12].map(|n| lot.hex(n)).join("-");
        let contract = json!({
            "handoff_id": format!("handoff-{uuid}"),
            "session_id": uuid,
            "resume_token": uuid,
            "token": lot.of(DIGITS, 3),
            "tokens_used": 128_000,
            "idempotency_key": uuid,
            "commit": lot.hex(40),
            "commits": [{"sha": lot.hex(40), "message": "auth: tokens expire after 24h"}],
            "tree": lot.hex(64),
            "sha256": lot.hex(64),
            "digest": format!("sha256:{}", lot.hex(64)),
            "short": lot.hex(7),
            "id": lot.of(base(), 22),
            "url": format!("https://github.com/quayside/parcel-desk/commit/{}", lot.hex(40)),
            "clone": "https://git@github.com/quayside/parcel-desk.git and git@github.com:quayside/desk.git",
            "image": format!("registry.example.com:5000/desk@sha256:{}", lot.hex(64)),
            "files": ["src/auth/token_store.rs", "src/secrets/key_rotation_2.rs:120", "docs/password-reset.md"],
            "rules": {"password": "required", "secret": "min_length_12", "api_key": "must be set by the operator"},
            "summary": "The password: at least 12 characters; token = getToken(); secret: process.env.SECRET",
            "code": "let password = read_password()?; api_key = os.environ['DESK_API_KEY']",
            "env": "DB_PASSWORD=${DB_PASSWORD} API_KEY=<your key> TOKEN=$TOKEN PASSWORD=changeme1",
            "pem": "a file that begins with -----BEGIN PRIVATE KEY----- is refused",
            "at": "2026-03-02T09:00:00Z",
            "round": round,
        });
        for text in [contract.to_string(), format!("{contract:#}")] {
            let secrets = Secrets::in_input(&Input::read(text.as_bytes()));
            assert!(secrets.is_empty(), "{secrets:?} in {text}");
        }
    }
}

fn base() -> &'static str {
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
}

#[cfg(feature = "exchange")]
#[test]
fn what_is_allowed_is_kept_and_recorded() {
    let env = TestEnvironment::with_ledger();
    let secret = format!("ghp_{}", Lot(8).word(36));
    let contract = with_summary(Format::Json, 7, &format!("see {secret}"));
    let file = env.file("contract.json", &contract);
    let other = ["--allow-secret", "github-pat@/requirements/0"];
    let send = |allow: &[&str]| env.handoff(&[&["send", &file], allow].concat());
    tells_nothing(&send(&other).exits(3).says("github-pat@/summary"), &secret);
    // An allowance is for one rule.
    send(&["--allow-secret", "gitlab-pat"]).exits(3);
    send(&["--allow-secret", "github-pat@/summary"]).success();
    send(&["--allow-secret", "github-pat@/summary"])
        .success()
        .says("already in the ledger");
    env.handoff(&["show", "7.1"])
        .success()
        .says("allowed although it looks like a secret: github-pat@/summary");
    let record = test_support::stored(&env.data(&["show", "7.1"]));
    let first = &record["transitions"][0];
    assert_eq!(first["by"], "issue-manager");
    let allowed = json!([{"rule": "github-pat", "place": "/summary"}]);
    assert_eq!(first["allowed_secrets"], allowed);
    env.handoff(&["verify"]).success();

    // Elsewhere it is known to be allowed.
    let folder = env.root().join("export");
    let folder = folder.to_str().unwrap();
    env.handoff(&["export", folder, "--format", "files"])
        .success();
    let elsewhere = TestEnvironment::with_ledger();
    elsewhere.handoff(&["import", folder]).success();
    elsewhere.handoff(&["verify"]).success();
    let again = test_support::stored(&elsewhere.data(&["show", "7.1"]));
    assert_eq!(again, record);
}

#[cfg(feature = "exchange")]
#[test]
fn an_export_whose_allowance_was_taken_out_is_refused() {
    let env = TestEnvironment::with_ledger();
    let secret = format!("ghp_{}", Lot(9).word(36));
    let contract = with_summary(Format::Json, 7, &secret);
    let args = ["send", "-", "--allow-secret", "github-pat"];
    env.handoff_with(&args, &contract).success();
    let folder = env.root().join("export");
    env.handoff(&["export", folder.to_str().unwrap(), "--format", "files"])
        .success();
    let steps = folder.join("steps.jsonl");
    let text = fs::read_to_string(&steps).unwrap();
    let allowed = r#""allowed_secrets":[{"rule":"github-pat","place":"/summary"}]"#;
    assert!(text.contains(allowed), "{text}");
    fs::write(&steps, text.replace(allowed, "")).unwrap();
    let elsewhere = TestEnvironment::with_ledger();
    let ran = elsewhere
        .handoff(&["import", folder.to_str().unwrap()])
        .exits(3);
    tells_nothing(&ran.says("github-pat"), &secret);
    assert!(!holds(&objects(&elsewhere), &secret));
}

#[test]
fn an_allowance_that_nothing_needs_is_refused() {
    let env = TestEnvironment::with_ledger();
    let file = env.file("contract.xml", opening(7));
    env.handoff(&["send", &file, "--allow-secret", "github-pat", "--json"])
        .exits(2)
        .says("unused_allowance");
    env.handoff(&["send", &file, "--allow-secret", "github-pta"])
        .exits(2)
        .says("did you mean github-pat?");
    env.handoff(&["status", "7"]).exits(6);
    env.handoff(&["send", &file]).success();
    assert!("github-pat@/a/b".parse::<Allowance>().is_ok());
}

#[cfg(feature = "exchange")]
#[test]
fn what_goes_with_a_change_is_screened_too() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    let secret = format!("npm_{}", Lot(10).word(36));
    let fail = |args: &[&str]| {
        let all = ["fail", "7.1", "--as", "prep-agent", "--json"];
        env.handoff(&[&all, args].concat())
    };
    let text = format!("it says {secret}");
    for (option, path) in [
        ("--details", "/failure/details"),
        ("--suggested-action", "/failure/suggested_action"),
    ] {
        let ran = fail(&["--message", "the build fails", option, &text]).exits(3);
        assert_eq!(found(&ran)[0]["path"], path);
        tells_nothing(&ran, &secret);
    }
    let ran = fail(&["--message", &text]).exits(3);
    assert_eq!(found(&ran)[0]["path"], "/failure/message");
    let ran = env
        .handoff(&["block", "7.1", "--as", "prep-agent", "-r", &text, "--json"])
        .exits(3);
    assert_eq!(found(&ran)[0]["path"], "/reason");
    tells_nothing(&ran, &secret);

    env.handoff(&[
        "block",
        "7.1",
        "--as",
        "prep-agent",
        "-r",
        "which registry?",
    ])
    .success();
    let answer = |allow: &[&str]| {
        let all = ["answer", "7.1", &text, "--as", "issue-manager"];
        env.handoff(&[&all, allow].concat())
    };
    tells_nothing(&answer(&[]).exits(3).says("npm-token"), &secret);
    assert!(!holds(&objects(&env), &secret));
    answer(&["--allow-secret", "aws-access-key"]).exits(3);
    answer(&["--allow-secret", "npm-token@/reason"]).success();
    let transitions = env.data(&["show", "7.1"])["record"]["transitions"].clone();
    let last = transitions.as_array().unwrap().last().unwrap();
    assert_eq!(
        last["allowed_secrets"],
        json!([{"rule": "npm-token", "place": "/reason"}])
    );
    env.handoff(&["verify"]).success();
    let folder = env.root().join("export");
    env.handoff(&["export", folder.to_str().unwrap(), "--format", "files"])
        .success();
    let elsewhere = TestEnvironment::with_ledger();
    elsewhere
        .handoff(&["import", folder.to_str().unwrap()])
        .success();
    elsewhere.handoff(&["verify"]).success();
}

#[test]
fn a_reopening_and_a_shared_document_are_screened() {
    let secret = format!("npm_{}", Lot(11).word(36));
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    let ran = env
        .handoff(&["reopen", "7", "--as", "issue-manager", "--reason", &secret])
        .exits(3);
    tells_nothing(&ran.says("npm-token"), &secret);

    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "orchestrator-specialist"])
        .success();
    let file = env.file(
        "stack.json",
        json!({"frontend": {"registry": secret}}).to_string(),
    );
    let args = [
        "document",
        "set",
        "tech-stack",
        &file,
        "--as",
        "@backend-specialist",
    ];
    let ran = env
        .handoff(&args)
        .exits(3)
        .says("npm-token")
        .says("/frontend/registry");
    tells_nothing(&ran, &secret);
    assert!(!holds(&objects(&env), &secret));
}

#[test]
fn a_protocol_says_what_is_no_secret() {
    let env = TestEnvironment::with_ledger();
    let secret = format!("npm_{}", Lot(12).word(36));
    let folder = env.root().join("own").to_str().unwrap().to_owned();
    env.handoff(&["protocol", "copy", "issue-to-pr", &folder])
        .success();
    let path = Path::new(&folder).join("protocol.json");
    let mut definition: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut version = 1;
    let mut update = |secrets: Value, title: &str| {
        version += 1;
        definition["version"] = version.to_string().into();
        definition["secrets"] = secrets;
        definition["title"] = title.into();
        fs::write(&path, format!("{definition:#}\n")).unwrap();
        env.handoff(&["protocol", "update", &folder])
    };
    let contract = with_summary(Format::Json, 7, &secret);
    env.send(&contract).exits(3);
    update(json!({"allow": [{"rule": "npm"}]}), "Ours")
        .exits(3)
        .says("there is no rule");
    let here = json!({"allow": [{"rule": "npm-token", "at": "/requirements/0"}]});
    update(here, "Ours").success();
    env.send(&contract).exits(3);
    tells_nothing(
        &update(json!({"allow": []}), &secret)
            .exits(3)
            .says("npm-token"),
        &secret,
    );
    let here = json!({"allow": [{"rule": "npm-token", "at": "/summary"}]});
    update(here, "Ours").success();
    env.send(&contract).success();
    env.handoff(&["verify"]).success();
}

#[test]
fn an_argument_that_is_not_understood_tells_no_secret() {
    let env = TestEnvironment::with_ledger();
    let body = "MIIEowIBAAKCAQEA7bq3kT9xW2pZ5vN8";
    let key = format!("-----BEGIN RSA {} KEY-----{body}-----END", "PRIVATE");
    for args in [
        &[
            "fail",
            "1.1",
            "--as",
            "prep-agent",
            "-m",
            "x",
            "--details",
            &key,
        ][..],
        &["block", "1.1", "--as", "prep-agent", "-r", &key],
        &["block", "1.1", "--as", "prep-agent", "-r", &key, "--json"],
    ] {
        let ran = env.handoff(args).exits(2);
        assert!(
            !ran.stdout.contains(body) && !ran.stderr.contains(body),
            "{}",
            ran.stderr
        );
    }
}
