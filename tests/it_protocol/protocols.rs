//! Protocols in force: listed, added, brought up to date, made by users, and
//! tampered with.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::team::{
    BUILT_IN, Folder, Refused, at_once, commits, exits, record, refused, refused_command, run,
    said, sent, states, trailers, with_protocol,
};
use test_support::{TestEnvironment, stored_issue};

/// Keeps the entries of a list for which this holds.
fn keep(list: &mut Value, holds: impl Fn(&Value) -> bool) {
    list.as_array_mut().unwrap().retain(holds);
}

#[test]
fn a_ledger_starts_with_any_protocol() {
    for name in BUILT_IN {
        let env = with_protocol(name);
        let data = env.data(&["protocol", "list"]);
        let first = &data["protocols"][0];
        assert_eq!(first["name"], name);
        assert_eq!(
            (&first["default"], &first["in_force"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(data["protocols"].as_array().unwrap().len(), 6);
        let shown = env.data(&["protocol", "show"]);
        assert_eq!(shown["definition"]["name"], name);
        env.assert_sound();
    }
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "delegation", "ours");
    folder.define(|d| d["name"] = json!("ours"));
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    assert_eq!(
        env.data(&["protocol", "show"])["definition"]["name"],
        "ours"
    );
    env.assert_sound();

    let env = TestEnvironment::with_repository();
    let none = env.handoff(&["init", "--protocol", "waterfall", "--json"]);
    assert_eq!(Refused::of(&none).says(), (6, "no_protocol"));
    let folder = Folder::copy(&env, "delegation", "broken");
    folder.remove("schemas/decision.schema.json");
    let broken = env.handoff(&["init", "--protocol", &folder.path(), "--json"]);
    let broken = Refused::of(&broken);
    assert_eq!(broken.says(), (3, "protocol_refused"));
    let check = format!("git handoff protocol check {}`", folder.path());
    assert!(broken.hint.contains(&check), "{broken:?}");
    assert_eq!(env.tip(), "");
}

#[test]
fn what_is_in_force_is_listed_and_shown() {
    let env = with_protocol("task-breakdown");
    let mut text = String::new();
    text += &run(&env, "protocol add directive").shown;
    text += &run(&env, "protocol list").shown;
    text += &run(&env, "protocol show directive").shown;
    text += &run(&env, "protocol check directive").shown;
    text += &run(&env, "protocol add directive").shown;
    text += &run(&env, "protocol update directive").shown;
    insta::assert_snapshot!(text, @"
    $ git handoff protocol add directive
    added protocol directive 1.4.0
      commit [commit]
    --- stderr
    next: git handoff send --issue N --to DesignGPT --as ResearchGPT --protocol directive      (says what to --set)
    $ git handoff protocol list
    task-breakdown           1.6.0  default   From a fresh environment to finished subtasks
    directive                1.4.0  in force  Specialists whose every handoff is evaluated first
    issue-to-pr              1.9.0  built in  From a GitHub issue to a merged pull request
    orchestrator-specialist  1.4.0  built in  Orchestrators call technology specialists
    delegation               1.4.0  built in  Agents that delegate what they cannot handle
    review                   1.3.0  built in  A coder, a reviewer and a person
    $ git handoff protocol show directive
    directive 1.4.0: Specialists whose every handoff is evaluated first
      relay: sending on completes the handoff that the sender held
      formats: json, xml

    agents
      ResearchGPT        specialist    1  Searches the web and gathers documentation; may: web-search, documentation-gathering; must not: design-decisions, implementation-choices; may change: **/*.md, **/*.txt, docs/**, notes/**, research/**
      DesignGPT          specialist    2  Writes architecture, patterns and specifications; may: architecture, patterns, specifications; must not: research, implementation, testing; may change: **/*.md, **/*.txt, **/*.svg, docs/**, design/**, specs/**
      ImplementationGPT  specialist    3  Generates code from specifications; may: code-generation-from-specs; must not: new-design-decisions, scope-changes
      MetaGPT            orchestrator  4  Evaluates every contract and decides what happens next (also METAGPT)
      USER               human            Answers what the agents cannot know (also USER_INPUT_REQUIRED)
      workflow-end       end              The end of the workflow

    routes
      ResearchGPT → DesignGPT          handoff     opens an issue; MetaGPT decides first
      ResearchGPT → ImplementationGPT  handoff     opens an issue; MetaGPT decides first
      DesignGPT → ResearchGPT          handoff     opens an issue; MetaGPT decides first
      DesignGPT → ImplementationGPT    handoff     opens an issue; MetaGPT decides first
      ImplementationGPT → ResearchGPT  handoff     opens an issue; MetaGPT decides first
      ImplementationGPT → DesignGPT    handoff     opens an issue; MetaGPT decides first
      ResearchGPT → MetaGPT            handoff     opens an issue
      DesignGPT → MetaGPT              handoff     opens an issue
      ImplementationGPT → MetaGPT      handoff     opens an issue
      MetaGPT → ResearchGPT            evaluation
      MetaGPT → DesignGPT              evaluation
      MetaGPT → ImplementationGPT      evaluation
      MetaGPT → USER                   evaluation
      MetaGPT → workflow-end           evaluation
      USER → MetaGPT                   user-input

    contract types
      handoff     Work handed over for evaluation
      evaluation  Decision about a contract
      user-input  Missing inputs given

    rules
      success-lacks-nothing    /missing_inputs/*/blocking|is true|count is 0           if /status is success
      blocked-lacks-something  /missing_inputs/*/blocking|is true|count is at least 1  if /status is blocked

    decisions: the first that applies
      to_decide true, status success, recommends USER                ask to USER                the work came to a good end, and its sender recommends the user
      to_decide true, status success                                 advance                    the work came to a good end
      to_decide true, status answered                                advance                    what was asked is answered, and the agent that lacked it can go on
      to_decide true, status blocked                                 ask to USER                inputs are missing that the user can give
      to_decide true, status failed, reached retries of failed work  terminate to workflow-end  the work was retried as often as it may be
      to_decide true, status failed                                  retry                      the work failed, and may be tried again with adjusted instructions
      state blocked                                                  ask                        inputs are missing that the user can give
      state failed, status success or answered, retries_left true    retry                      a success arrived, and is read before anything is ended
      state dead, status success or answered                         fall_back to USER          a success arrived, and no attempt has read it
      state failed, reached retries of failed work                   terminate                  the work was retried as often as it may be
      state failed, retries_left true                                retry                      the work failed, and may be tried again with adjusted instructions
      state dead                                                     terminate                  the work failed as often as it may

    limits, by the keys of protocol set
      time.lease_seconds                    14400  how long a claim holds, in seconds
      retry                                 3      how many attempts may follow the first
      limits.rounds.retries of failed work  3      how many rounds of this name an issue may have
    $ git handoff protocol check directive
    directive: sound (10 files)
    $ git handoff protocol add directive
    protocol directive 1.4.0 is already in force; nothing changed
    $ git handoff protocol update directive
    protocol directive 1.4.0 is already in force; nothing changed
    ");
    // The same as data.
    let data = env.data(&["protocol", "check", "directive"]);
    assert_eq!(data["findings"], json!([]));
    let data = env.data(&["protocol", "update", "directive"]);
    let expected =
        json!({"protocol": "directive", "before": "1.4.0", "version": "1.4.0", "commit": null});
    assert_eq!(data, expected);
    // Other files have another version.
    run(&env, "protocol copy directive ./ours");
    let file = env.repo().join("ours/protocol.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "\n").unwrap();
    let same = env.handoff(&["protocol", "update", "./ours"]).exits(3);
    insta::assert_snapshot!(same.stderr, @"
    error: protocol directive was not updated
      /version protocol.version version 1.4.0 is in force, with other files
          give the new one another version
    hint: raise `version` in its protocol.json and update again; `git handoff protocol show directive` shows what is in force
    ");
    // Nor has it an earlier one's, unless its files are those.
    let first = std::fs::read_to_string(&file).unwrap();
    let version = r#""version": "1.4.0""#;
    let second = first.replacen(version, r#""version": "2.0.0""#, 1);
    std::fs::write(&file, second).unwrap();
    env.handoff(&["protocol", "update", "./ours"]).success();
    std::fs::write(&file, &first).unwrap();
    let again = env.handoff(&["protocol", "update", "./ours"]).exits(3);
    again
        .says("version 1.4.0 was in force, with other files")
        .says("give the new one another version");
    env.handoff(&["protocol", "update", "directive"]).success();
    let none = refused_command(&env, "protocol show waterfall");
    assert_eq!(none.says(), (6, "no_protocol"));
    let none = refused_command(&env, "protocol update delegation");
    assert_eq!(none.says(), (6, "no_protocol"));
    // Nothing needs a ledger, nor even a repository, to be looked at.
    let env = TestEnvironment::new();
    run(&env, "protocol list");
    run(&env, "protocol show delegation");
    run(&env, "protocol check delegation");
}

#[test]
fn a_policy_is_set_with_one_command_and_one_commit() {
    let env = with_protocol("issue-to-pr");
    let before = env.git(
        &env.repo(),
        &["show", "handoffs:protocols/issue-to-pr/protocol.json"],
    );
    let mut text = run(&env, "protocol set issue-to-pr evidence enforce").shown;
    text += &run(&env, "protocol set issue-to-pr evidence.coverage off").shown;
    text += &run(&env, "protocol set issue-to-pr evidence enforce").shown;
    text += &run(
        &env,
        "protocol set issue-to-pr consistency.cycle-time enforce",
    )
    .shown;
    text += &run(&env, "log -n 3").shown;
    insta::assert_snapshot!(text, @"
    $ git handoff protocol set issue-to-pr evidence enforce
    updated protocol issue-to-pr from 1.9.0 to 1.9.0+1
      commit [commit]
    $ git handoff protocol set issue-to-pr evidence.coverage off
    updated protocol issue-to-pr from 1.9.0+1 to 1.9.0+2
      commit [commit]
      checks less, on record: evidence.coverage
    $ git handoff protocol set issue-to-pr evidence enforce
    protocol issue-to-pr 1.9.0+2 is already in force; nothing changed
    $ git handoff protocol set issue-to-pr consistency.cycle-time enforce
    updated protocol issue-to-pr from 1.9.0+2 to 1.9.0+3
      commit [commit]
    $ git handoff log -n 3
    [commit]  2026-03-02 09:09:00Z  Robin Doe    Set consistency.cycle-time to enforce in protocol issue-to-pr, version 1.9.0+3
    [commit]  2026-03-02 09:07:00Z  Robin Doe    Set evidence.coverage to off in protocol issue-to-pr, version 1.9.0+2; checks less: evidence.coverage
    [commit]  2026-03-02 09:06:00Z  Robin Doe    Set evidence to enforce in protocol issue-to-pr, version 1.9.0+1
    3 shown; the rest: git handoff log -n 3 --after [commit]
    --- stderr
    the same with git: git log -n 3 handoffs
    ");
    let diff = env.git(
        &env.repo(),
        &["diff", "--stat", "--summary", "handoffs~3", "handoffs"],
    );
    insta::assert_snapshot!(diff, @"
    protocols/issue-to-pr/protocol.json | 10 ++++++++--
    1 file changed, 8 insertions(+), 2 deletions(-)
    ");
    env.assert_sound();
    // It holds for what is sent from then on.
    env.handoff_with(&["send", "-"], opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.handoff_with(&["send", "-"], prepared(87))
        .exits(3)
        .says("evidence.branch");
    // What is taken back leaves no trace but the version.
    run(&env, "protocol set issue-to-pr consistency.cycle-time warn");
    run(&env, "protocol set issue-to-pr evidence.coverage default");
    run(&env, "protocol set issue-to-pr evidence default");
    let after = env.git(
        &env.repo(),
        &["show", "handoffs:protocols/issue-to-pr/protocol.json"],
    );
    let after: Value = serde_json::from_str(&after.replace("1.9.0+6", "1.9.0")).unwrap();
    assert_eq!(after, serde_json::from_str::<Value>(&before).unwrap());
    env.assert_sound();
}

#[test]
fn a_protocol_shows_its_decisions_and_every_limit_by_its_key() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    Folder::new(&env, "repo/press").define(|definition| {
        definition["routes"][0]["acknowledge_seconds"] = json!(60);
    });
    let shown = env.handoff(&["protocol", "show", "./press"]).success();
    let shown = shown
        .says("decisions: the first that applies\n  state blocked ")
        .says("opens an issue; to be claimed in 60 s\n")
        .says("limits, by the keys of protocol set\n");
    let fixed = shown
        .shown
        .lines()
        .find(|line| line.contains("limits.longest_lease_seconds"));
    assert!(
        fixed.unwrap().ends_with("86400  in protocol.json only"),
        "{}",
        shown.shown
    );
}

/// A protocol beside the default one, for which nobody has to sign.
#[test]
fn an_update_says_what_it_checks_less_and_what_it_requires() {
    let env = with_protocol("delegation");
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    let folder = Folder::new(&env, "repo/press");
    folder.define(|definition| {
        definition["requirements"] = json!({"edited": {"title": "It was edited",
            "shown_by": ["editor-to-end"], "status": ["success"]}});
        definition["consistency"] = json!([{"name": "new-words", "of": ["editor-to-end"],
            "compare": {"distinct": ["/summary", "fact:details"]}}]);
    });
    env.handoff(&["protocol", "add", "./press"]).success();
    let send = [
        "send",
        "--issue",
        "7",
        "--as",
        "writer",
        "--to",
        "editor",
        "--protocol",
        "press",
    ];
    let set = ["--set", "summary=x", "--set", "details=y"];
    env.handoff(&[&send[..], &set].concat()).success();
    folder.define(|definition| {
        definition["version"] = json!("1.1.0");
        definition["facts"]["due"] = json!({"last": ["/details"]});
        definition["contracts"][0]["when"] = json!({"/status": "success"});
        definition["requirements"].take();
        definition
            .as_object_mut()
            .unwrap()
            .shift_remove("requirements");
        definition["consistency"] = json!([]);
    });
    folder.edit("schemas/editor-to-end.schema.json", |schema| {
        schema["required"]
            .as_array_mut()
            .unwrap()
            .push(json!("details"));
    });
    let updated = env.handoff(&["protocol", "update", "./press"]).success();
    let commit = updated
        .shown
        .lines()
        .position(|line| line.starts_with("  commit"));
    let told: Vec<&str> = updated.shown.lines().skip(commit.unwrap() + 1).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    checks less than before: consistency.new-words, requirements.edited
    changed: contracts.writer-to-editor
    editor-to-end now requires /details
    1 open issue follows it
    ");
    env.assert_sound();
}

/// What a new version checks more is told, and what it does to open issues; one that leaves an issue
/// nothing to send is refused, unless it is meant.
#[test]
fn an_update_says_what_is_stricter_and_strands_no_issue_unasked() {
    let env = TestEnvironment::with_repository();
    let agents = "writer,editor,printer";
    env.handoff(&["protocol", "new", "press", "--agents", agents])
        .success();
    let folder = Folder::new(&env, "repo/press");
    folder.define(|definition| {
        let chief = json!({"id": "chief", "role": "Steps in", "kind": "human"});
        definition["agents"].as_array_mut().unwrap().push(chief);
        definition["limits"]["retry"]["never"] = json!(["LIBEL"]);
        definition["words"]["errors"] =
            json!({"LIBEL": {"meaning": "Not with us", "recovery": "cancel it"}});
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    env.handoff(&["protocol", "show", "press"])
        .success()
        .says("limits.retry.never");
    let send = |to: &str, from: &str| {
        let words = format!("send --issue moon --to {to} --as {from} --set summary=S");
        run(&env, &words);
    };
    send("editor", "writer");
    run(&env, "claim --next --as editor");
    let update = |minor: u32, limits: Value, more: &[&str]| {
        folder.define(|definition| {
            definition["version"] = json!(format!("1.{minor}.0"));
            for (key, value) in limits.as_object().unwrap() {
                definition["limits"][key] = value.clone();
            }
        });
        env.handoff(&[&["protocol", "update", "./press"], more].concat())
    };
    let tip = env.tip();
    update(1, json!({"deadline_seconds": 1, "handoffs": 4}), &[])
        .exits(4)
        .says("nothing could be sent in issue moon: its deadline was")
        .says("if it is meant: --past-limits");
    assert_eq!(env.tip(), tip);
    let told = update(1, json!({}), &["--past-limits"]).success();
    told.says(
        "checks more than before: limits.deadline_seconds (1), limits.handoffs (50 before, now 4)",
    )
    .says("issue moon is beyond a limit, and nothing can be sent in it: its deadline was");
    // Both screens say the same.
    let passed = "the deadline has passed, so that nothing can be sent but what ends the issue";
    let send_on = [
        "send",
        "--issue",
        "moon",
        "--to",
        "printer",
        "--as",
        "editor",
        "--set",
        "summary=S",
    ];
    env.handoff(&send_on)
        .exits(4)
        .says(passed)
        .says("chief gives it more time, `git handoff protocol set press limits.deadline_seconds NUMBER`, or ends it: `git handoff cancel moon --all --as chief --reason WHY`");
    env.handoff(&["inbox", "--as", "chief"])
        .success()
        .says(passed);
    env.handoff(&[
        "protocol",
        "set",
        "press",
        "limits.deadline_seconds",
        "604800",
    ])
    .success();
    send("printer", "editor");
    run(&env, "claim --next --as printer");
    // The last agent can still end the issue.
    let told = update(
        2,
        json!({"deadline_seconds": 604_800, "handoffs": 2}),
        &["--drop-settings"],
    );
    told.success()
        .says("issue moon is beyond a limit, and not all can be sent in it: 2 handoffs");
    send("end", "printer");
    env.assert_sound();
}

/// A field that a closed schema has and requires now is stricter; one that is optional, or that a rule
/// read before, lets pass what was refused.
#[test]
fn a_new_required_field_of_a_closed_schema_is_stricter() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    let folder = Folder::new(&env, "repo/press");
    folder.define(|definition| {
        definition["facts"]["grade"] = json!({"last": ["/grade"]});
    });
    folder.edit("schemas/editor-to-end.schema.json", |schema| {
        schema["properties"]["grade"] = json!({"type": "integer"});
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    let mut minor = 0;
    let mut update = |field: &str, is_required: bool| {
        minor += 1;
        folder.define(|definition| definition["version"] = json!(format!("1.{minor}.0")));
        folder.edit("schemas/writer-to-editor.schema.json", |schema| {
            schema["properties"][field] = json!({"type": "integer"});
            if is_required {
                let required = schema["required"].as_array_mut().unwrap();
                required.push(json!(field));
            }
        });
        folder.edit("templates/writer-to-editor.json", |template| {
            template[field] = json!("{{fill: a number}}");
        });
        env.handoff(&["protocol", "update", "./press", "--as", "editor"])
    };
    update("pages", true)
        .success()
        .says("writer-to-editor now requires /pages");
    let weaker = "`schema.writer-to-editor` may let pass what the version in force refuses";
    update("lines", false).exits(4).says(weaker);
    env.handoff(&["protocol", "update", "./press"])
        .success()
        .says("checks less, on record: schema.writer-to-editor");
    // Editors alone stated the fact.
    update("grade", true).exits(4).says(weaker);
    env.assert_sound();
}

/// The fields whose schema is another one are named, whichever keywords made it so.
#[test]
fn an_update_names_the_fields_that_are_checked_less_or_more() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    let folder = Folder::new(&env, "repo/press");
    let schema = "schemas/writer-to-editor.schema.json";
    folder.edit(schema, |schema| {
        schema["$defs"] = json!({"page": {"type": "integer", "minimum": 1}});
        let part = json!({"type": "object", "properties": {"from": {"$ref": "#/$defs/page"}}});
        schema["properties"]["parts"] = json!({"type": "array", "items": part});
        schema["properties"]["place"] = json!({"pattern": "^[a-z]+$"});
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    folder.define(|definition| definition["version"] = json!("1.1.0"));
    folder.edit(schema, |schema| {
        schema["$defs"]["page"]["minimum"] = json!(0);
        schema["properties"]["details"]["minLength"] = json!(2);
        schema["properties"]["summary"]["description"] = json!("What was done");
        schema["properties"]["place"]["pattern"] = json!("^[0-9]+$");
        schema["properties"]["note"] = json!({"type": "string"});
        schema["properties"]["pages"] = json!({"type": "integer"});
        let required = schema["required"].as_array_mut().unwrap();
        required.push(json!("pages"));
    });
    folder.edit("templates/writer-to-editor.json", |template| {
        template["pages"] = json!("{{fill: a number}}");
    });
    let update = ["protocol", "update", "./press", "--json"];
    let updated = env.handoff(&update).success().json()["data"].clone();
    let fields = json!([{"contract": "writer-to-editor", "less": ["/note", "/parts/*/from", "/place"],
        "more": ["/details", "/place"]}]);
    assert_eq!(updated["fields"], fields, "{updated:#}");
    folder.define(|definition| definition["version"] = json!("1.2.0"));
    folder.edit(schema, |schema| {
        schema["properties"]["note"] = json!({"type": "string", "maxLength": 9});
    });
    env.handoff(&["protocol", "update", "./press"])
        .success()
        .says("\n  writer-to-editor checks more: /note\n");
    // What says the same changes nothing.
    folder.define(|definition| definition["version"] = json!("1.3.0"));
    let same = env.handoff(&update).success().json();
    assert_eq!(same["data"]["fields"], Value::Null, "{same:#}");
}

/// Screens of an author's own protocol: no XML where there is none, no number twice, every value that
/// is left, one fault for one wrong place.
#[test]
fn screens_of_an_own_protocol_say_what_is_so() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    let folder = Folder::new(&env, "repo/press");
    let xml = "in XML, some fields are attributes";
    let show = ["protocol", "show", "./press", "--type", "writer-to-editor"];
    env.handoff(&show).success().says(xml);
    let schema = "schemas/writer-to-editor.schema.json";
    folder.edit(schema, |schema| {
        schema["properties"]["max_words"] =
            json!({"description": "At most so many", "type": "integer"});
        schema["properties"]["code"] = json!({"type": "string", "pattern": "^$a"});
        schema["required"]
            .as_array_mut()
            .unwrap()
            .push(json!("max_words"));
    });
    folder.define(|definition| {
        definition["formats"] = json!(["json"]);
        definition["facts"]["max_words"] = json!({"last": ["/max_words"], "briefing": 1});
        definition["limits"]["cooldown_seconds"] = json!(600);
        definition["limits"]["deadline_seconds"] = json!(60);
        definition["requirements"] = json!({"edited": {"title": "It was edited",
            "shown_by": ["editor-to-end"], "apart_from": ["editor-to-end"]}});
    });
    folder.edit("templates/writer-to-editor.json", |template| {
        template["details"] = json!("{{sumary: more}}");
    });
    let shown = env.handoff(&show).success();
    assert!(!shown.stdout.contains(xml), "{}", shown.shown);
    let checked = env.handoff(&["protocol", "check", "./press"]).success();
    let checked = checked
        .says("templates/writer-to-editor.json warning protocol.template it lacks `/max_words`")
        .says("no text was found that the pattern `^$a` matches")
        .says("between two contracts of the same agents 600 s must pass, and an issue has 60 s")
        .says("`editor-to-end` meets requirement `edited`, and is set apart from itself")
        .says("nothing is known as `sumary`");
    for line in checked
        .stdout
        .lines()
        .filter(|line| line.contains("templates/"))
    {
        let start = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        assert!(start, "{line}");
    }
    folder.define(|definition| {
        let limits = definition["limits"].as_object_mut().unwrap();
        limits.retain(|key, _| !["cooldown_seconds", "deadline_seconds"].contains(&key.as_str()));
        let kind = definition["contracts"][0].as_object_mut().unwrap();
        let raised = json!({"list": "/findigs", "text": "/text", "location": "/line", "severity": "/weight"});
        kind.insert("raises".to_owned(), raised);
        definition["contracts"][1]["fixes"] = json!({"list": "/summary", "text": "", "location": ""});
    });
    let faults = env.handoff(&["protocol", "check", "./press"]).exits(1);
    let of_raises = |line: &&str| line.contains("/contracts/0/raises/");
    assert_eq!(
        faults.stdout.lines().filter(of_raises).count(),
        1,
        "{}",
        faults.shown
    );
    folder.define(|definition| {
        for i in 0..2 {
            let kind = definition["contracts"][i].as_object_mut().unwrap();
            kind.retain(|key, _| !["raises", "fixes"].contains(&key.as_str()));
        }
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    run(&env, "new --issue 7 --from writer --to editor")
        .says("At most so many")
        .says("3 values are left to fill in");
    let send = ["send", "--issue", "7", "--to", "editor", "--as", "writer"];
    let set = [
        "--set",
        "summary=S",
        "--set",
        "details=D",
        "--set",
        "max_words=800",
    ];
    env.handoff(&[send.as_slice(), &set].concat()).success();
    let claimed = run(&env, "claim 7 --as editor");
    assert_eq!(
        claimed.stdout.matches("800").count(),
        1,
        "{}",
        claimed.shown
    );
}

#[test]
fn an_agent_takes_out_no_alert_decision_or_limit_of_a_copy() {
    let env = with_protocol("issue-to-pr");
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    let path = folder.path();
    let update = ["protocol", "update", &path, "--as", "issue-manager"];
    let whole = folder.read("protocol.json");
    type Change = fn(&mut Value);
    let weaker: [(&str, Change); 3] = [
        ("alerts", |d| {
            drop(d["alerts"].as_array_mut().unwrap().pop())
        }),
        ("decisions", |d| {
            drop(d.as_object_mut().unwrap().shift_remove("decisions"))
        }),
        ("decisions", |d| {
            let skip = json!({"when": {"state": "failed"}, "action": "skip", "why": "never mind"});
            d["decisions"].as_array_mut().unwrap().insert(0, skip);
        }),
    ];
    for (key, change) in weaker {
        let mut definition = whole.clone();
        change(&mut definition);
        definition["version"] = json!("1.10.0");
        folder.write("protocol.json", definition.to_string());
        env.handoff(&update)
            .exits(4)
            .says(&format!("`{key}` may let pass"));
    }
    // What calls a person sooner, and a lower limit, weaken nothing.
    let mut definition = whole.clone();
    definition["version"] = json!("1.10.0");
    definition["limits"]["handoffs"] = json!(20);
    let call = json!({"when": {"state": "failed"}, "action": "escalate", "why": "look at it"});
    definition["decisions"]
        .as_array_mut()
        .unwrap()
        .insert(0, call);
    folder.write("protocol.json", definition.to_string());
    let updated = env.handoff(&update).success();
    assert!(!updated.shown.contains("checks less"), "{}", updated.shown);
    // A copy would take the issues of the default one.
    let mut copy = whole.clone();
    copy["name"] = json!("copy");
    copy["limits"]["rounds"]["failed validations"]["most"] = json!(9);
    folder.write("protocol.json", copy.to_string());
    env.handoff(&["protocol", "add", &path, "--as", "issue-manager"])
        .exits(4)
        .says("`limits.rounds` may let pass");
    env.handoff(&["protocol", "add", "delegation", "--as", "issue-manager"])
        .success();
    // A person does all of it, on record.
    let mut definition = whole;
    definition["version"] = json!("1.11.0");
    weaker[0].1(&mut definition);
    weaker[1].1(&mut definition);
    folder.write("protocol.json", definition.to_string());
    env.handoff(&["protocol", "update", &path])
        .success()
        .says("checks less, on record: alerts, decisions, limits.handoffs");
    env.assert_sound();
}

#[test]
fn a_version_of_changed_settings_is_never_that_of_other_ones() {
    let env = with_protocol("issue-to-pr");
    let first = Folder::copy(&env, "issue-to-pr", "first");
    let second = Folder::copy(&env, "issue-to-pr", "second");
    second.define(|d| d["version"] = json!("2.0.0"));
    let set = |key, value| {
        env.handoff(&["protocol", "set", "issue-to-pr", key, value])
            .success()
            .shown
    };
    let shown = set("limits.handoffs", "60");
    assert!(shown.contains("1.9.0+1"), "{shown}");
    set("limits.handoffs", "default");
    second.put("update").success();
    first.put("update").success();
    let shown = set("limits.handoffs", "70");
    assert!(shown.contains("1.9.0+3"), "{shown}");
    // It is a changed setting still, which an update keeps and `default` takes back.
    let shown = set("limits.handoffs", "default");
    assert!(shown.contains("1.9.0+4"), "{shown}");
    env.handoff(&["verify"]).success();
}

#[test]
fn default_takes_a_setting_back_to_what_the_file_says() {
    let env = with_protocol("issue-to-pr");
    let file = ["show", "handoffs:protocols/issue-to-pr/protocol.json"];
    let before = env.git(&env.repo(), &file);
    for (key, value) in [
        ("limits.handoffs", "60"),
        ("limits.handoffs", "70"),
        ("limits.rounds.failed validations", "9"),
        ("time.lease_seconds", "90"),
    ] {
        env.handoff(&["protocol", "set", "issue-to-pr", key, value])
            .success();
    }
    for key in [
        "limits.handoffs",
        "limits.rounds.failed validations",
        "time.lease_seconds",
    ] {
        env.handoff(&["protocol", "set", "issue-to-pr", key, "default"])
            .success();
        let again = ["protocol", "set", "issue-to-pr", key, "default"];
        env.handoff(&again).success().says("nothing changed");
    }
    let after = env.git(&env.repo(), &file);
    assert_eq!(after.replace("1.9.0+7", "1.9.0"), before);
    // An update takes what its author says about them.
    let folder = Folder::copy(&env, "issue-to-pr", "own");
    folder.define(|d| {
        d["version"] = json!("2.0.0");
        d["limits"]["handoffs"] = json!(33);
    });
    let updated = folder.put("update").success();
    assert!(!updated.shown.contains("still set"), "{}", updated.shown);
    let after: Value = serde_json::from_str(&env.git(&env.repo(), &file)).unwrap();
    assert_eq!(after["limits"]["handoffs"], 33);
    env.assert_sound();
}

#[test]
fn what_can_be_set_is_listed_and_anything_else_is_refused() {
    let env = with_protocol("delegation");
    insta::assert_snapshot!(run(&env, "protocol set delegation").stdout, @"
    evidence                              default  enforce, warn, off or default                                                      what happens to statements that the repository contradicts
    evidence.*                            default  enforce, warn, off or default                                                      the same for one check, such as evidence.coverage
    consistency.prior-attempts            warn     enforce, warn, off or default                                                      what happens to contracts that break this rule
    consistency.people-decide             warn     enforce, warn, off or default                                                      what happens to contracts that break this rule
    consistency.resolved-leaves-nothing   default  enforce, warn, off or default                                                      what happens to contracts that break this rule
    consistency.partial-leaves-something  default  enforce, warn, off or default                                                      what happens to contracts that break this rule
    consistency.handled-lacks-nothing     default  enforce, warn, off or default                                                      what happens to contracts that break this rule
    requirements.*                        default  true, false or default                                                             whether each merge has to meet this requirement
    time.lease_seconds                    30       a whole number or default                                                          how long a claim holds, in seconds
    time.longest_run_seconds              default  a whole number or default                                                          how long a worker lets an agent run for one claim
    time.person_lease_seconds             86400    a whole number or default                                                          how long a claim of a person holds, in seconds
    time.acknowledge_seconds              30       a whole number or default                                                          in how many seconds an agent must claim what it gets
    retry                                 2        a whole number or default                                                          how many attempts may follow the first
    limits.retry.runs.*                   default  now, later, never, person or default                                               whether another attempt helps when a run ended so
    limits.handoffs                       10       a whole number or default                                                          how many handoffs an issue may have
    limits.item                           3        a whole number or default                                                          how many handoffs may be about one item
    limits.deadline_seconds               default  a whole number or default                                                          how long after its start an issue may be handed on
    limits.cooldown_seconds               5        a whole number or default                                                          how long a sender waits between two handoffs to one receiver
    limits.rounds.*                       default  a whole number or default                                                          how many rounds of this name an issue may have
    limits.budgets.cost.*                 default  a sum of money or default                                                          what this budget allows in money
    limits.budgets.tokens.*               default  a whole number or default                                                          how many tokens this budget allows
    limits.budgets.attempts.*             default  a whole number or default                                                          how many claims this budget allows
    limits.budgets.seconds.*              default  a whole number or default                                                          for how long this budget lets work be held, in seconds
    limits.on_record                      default  limits, cycles, refused_contracts, or some of them with commas between or default  the kinds of refused contracts that are kept on record
    time.archive_after_seconds            default  a whole number or default                                                          how long after its end an issue is archived, in seconds
    in force: off
    ");
    let tip = env.tip();
    let mut text = String::new();
    for given in [
        "protocol set delegation agents 3",
        "protocol set delegation evidence on",
        "protocol set delegation evidence.weather off",
        "protocol set delegation limits.retry.runs.EXIT sometimes",
        "protocol set delegation limits.retry.runs.WEATHER now",
        "protocol set delegation limits.rounds.none 3",
        "protocol set delegation consistency.no-such-rule off",
        "protocol set delegation evidence",
        "protocol set waterfall evidence off",
        "protocol set waterfall",
    ] {
        text += &env.handoff(&given.split(' ').collect::<Vec<_>>()).shown;
    }
    insta::assert_snapshot!(text, @r#"
    $ git handoff protocol set delegation agents 3
    --- stderr
    error: protocol delegation was not changed: there is no setting "agents"
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 2
    $ git handoff protocol set delegation evidence on
    --- stderr
    error: protocol delegation was not changed: evidence takes enforce, warn, off or default, not "on"
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 2
    $ git handoff protocol set delegation evidence.weather off
    --- stderr
    error: the protocol is invalid
      140:15 /evidence/checks protocol.syntax unknown variant `weather`, expected one of `branch`, `commits`, `files_changed`, `commits_added`, `merge`, `artifacts`, `paths`, `tests`, `tests_added`, `coverage`
          use one of these
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 3
    $ git handoff protocol set delegation limits.retry.runs.EXIT sometimes
    --- stderr
    error: protocol delegation was not changed: limits.retry.runs.EXIT takes now, later, never, person or default, not "sometimes"
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 2
    $ git handoff protocol set delegation limits.retry.runs.WEATHER now
    --- stderr
    error: the protocol is invalid
      107:182 /limits/retry/runs protocol.syntax unknown variant `WEATHER`, expected one of `NO_WORKTREE`, `AGENT_FAILED`, `NOT_STARTED`, `WORKER_LOST`, `CONTRACT_REFUSED`, `TIME_SPENT`, `BUDGET_SPENT`, `NOT_ENDED`, `SIGNAL`, `NOTHING_HANDED_ON`, `EXIT`, `BRANCH_REFUSED`, `WORKERS_LOST`, `NOT_READY`, `UNAVAILABLE`, `NEEDS_PERSON`
          use one of these
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 3
    $ git handoff protocol set delegation limits.rounds.none 3
    --- stderr
    error: protocol delegation was not changed: the protocol has no "limits.rounds.none"
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 2
    $ git handoff protocol set delegation consistency.no-such-rule off
    --- stderr
    error: protocol delegation was not changed: the protocol has no "consistency.no-such-rule"
    hint: `git handoff protocol set delegation` lists what can be set
    --- exit 2
    $ git handoff protocol set delegation evidence
    --- stderr
    error: the following required arguments were not provided:
      <VALUE>

    Usage: git handoff protocol set <NAME> <KEY> <VALUE>

    For more information, see `git handoff protocol -h`.
    --- exit 2
    $ git handoff protocol set waterfall evidence off
    --- stderr
    error: the ledger has no protocol waterfall
    hint: the ledger has: delegation; `git handoff protocol add` puts another in force
    --- exit 6
    $ git handoff protocol set waterfall
    --- stderr
    error: the ledger has no protocol waterfall
    hint: the ledger has: delegation; `git handoff protocol add` puts another in force
    --- exit 6
    "#);
    assert_eq!(env.tip(), tip);
}

#[test]
fn a_copy_is_the_same_protocol() {
    for name in BUILT_IN {
        let env = with_protocol(name);
        let folder = Folder::copy(&env, name, "copy");
        let again = folder.put("update").success();
        assert!(again.shown.contains("nothing changed"), "{}", again.shown);
        let taken = env.handoff(&["protocol", "copy", name, &folder.path(), "--json"]);
        assert_eq!(Refused::of(&taken).says(), (2, "usage"));
        let before = folder.read("protocol.json")["version"].clone();
        folder.define(|d| d["version"] = json!("9.0.0"));
        let exists = folder.refused("add");
        assert_eq!(exists.says(), (4, "protocol_exists"));
        let data = env.data(&["protocol", "update", &folder.path()]);
        assert_eq!(
            (&data["before"], &data["version"]),
            (&before, &json!("9.0.0"))
        );
        assert_eq!(data["commit"], env.tip());
        // What is in force is what is copied now.
        let other = Folder::copy(&env, name, "other");
        assert_eq!(other.read("protocol.json")["version"], "9.0.0");
        env.assert_sound();
    }
}

/// A finished piece of research in the protocol `directive`.
fn research(workflow: &str) -> String {
    json!({
        "handoff_id": format!("{workflow}-research"),
        "from_agent": "ResearchGPT",
        "to_agent": "DesignGPT",
        "timestamp": "2026-03-02T08:00:00Z",
        "status": "success",
        "produced_artifacts": [],
        "assumptions": [],
        "missing_inputs": [],
        "recommended_next_agent": "DesignGPT",
        "context_summary": "Lighthouses blink",
        "kb_updates_proposed": false,
        "session_id": "s1",
        "workflow_id": workflow,
    })
    .to_string()
}

#[test]
fn two_protocols_are_in_force_and_each_issue_follows_one() {
    let env = TestEnvironment::with_ledger();
    run(&env, "protocol add directive");
    assert_eq!(trailers(&env, "Protocol"), ["directive"]);
    env.send(opening(87)).success();
    sent(&env, research("beacon"));
    assert_eq!(record(&env, "87.1")["protocol"], "issue-to-pr");
    assert_eq!(record(&env, "beacon.1")["protocol"], "directive");
    let data = env.data(&["protocol", "list"]);
    let issues: Vec<&Value> = data["protocols"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["open_issues"])
        .collect();
    assert_eq!(issues[..3], [&json!(1), &json!(1), &json!(0)]);
    // An issue stays with its protocol.
    let other = refused(&env, &[], research("87"));
    assert_eq!(other.says(), (3, "contract_refused"));
    let named = ["--protocol", "directive"];
    let other = refused(&env, &named, research("87"));
    assert_eq!(other.says(), (4, "other_protocol"));
    let other = refused(&env, &["--issue", "beacon"], opening(88));
    assert_eq!(other.exit, 3);
    // Which protocol a contract follows may be said.
    env.handoff_with(&["check", "-", "--protocol", "directive"], research("fog"))
        .success();
    let wrong = env.handoff_with(
        &["check", "-", "--protocol", "issue-to-pr"],
        research("fog"),
    );
    assert_eq!(wrong.status, 3);
    let none = refused(&env, &["--protocol", "delegation"], research("fog"));
    assert_eq!(none.says(), (6, "no_protocol"));
    let args = ["send", "-", "--protocol", "directive"];
    env.handoff_with(&args, research("fog")).success();
    let skeleton = "new --issue 99 --from ResearchGPT --to DesignGPT";
    let shown = run(&env, skeleton).stdout;
    assert!(shown.contains("\"ResearchGPT\""), "{shown}");
    run(&env, &format!("{skeleton} --protocol directive"));
    let wrong = refused_command(&env, &format!("{skeleton} --protocol issue-to-pr"));
    assert_eq!(wrong.says(), (4, "unknown_agent"));
    let bound = refused_command(&env, "new --issue 87 --from ResearchGPT --to DesignGPT");
    assert_eq!(bound.says(), (4, "unknown_agent"));
    // Agents are known by their own protocols.
    run(&env, "claim 87.1 --as prep-agent");
    run(&env, "claim --next --as METAGPT");
    let stranger = refused_command(&env, "claim fog.1 --as prep-agent");
    assert_eq!(stranger.says(), (4, "unknown_agent"));
    let nobody = refused_command(&env, "inbox --as postman");
    assert_eq!(nobody.says(), (4, "unknown_agent"));
    env.assert_sound();
}

#[test]
fn new_issues_follow_the_protocol_in_force_that_was_chosen_last() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = env.tip();
    let none = refused_command(&env, "protocol use review");
    assert_eq!(none.says(), (6, "no_protocol"));
    assert_eq!(env.tip(), before, "nothing was written");
    run(&env, "protocol add review");
    let chosen = env.handoff(&["protocol", "use", "review"]).success();
    assert_eq!(
        chosen.stdout.lines().next(),
        Some("new issues follow review, not issue-to-pr")
    );
    assert_eq!(trailers(&env, "Protocol"), ["review"]);
    let after = env.tip();
    run(&env, "protocol use review");
    assert_eq!(env.tip(), after, "it is so already");
    env.handoff(&["protocol", "list"]).success();
    let data = env.data(&["protocol", "list"]);
    let listed = data["protocols"].as_array().unwrap();
    let default = |name: &str| {
        let mut found = listed.iter().filter(|one| one["name"] == name);
        found.next().unwrap()["default"].clone()
    };
    assert_eq!(
        (default("review"), default("issue-to-pr")),
        (json!(true), json!(false))
    );
    let line = "new issues follow it, unless another one is named\n";
    env.handoff(&["protocol", "show"]).success().says(line);
    let other = env.handoff(&["protocol", "show", "issue-to-pr"]).success();
    assert!(!other.stdout.contains(line), "{}", other.shown);
    let skeleton = run(&env, "new --issue 88 --from coder --to reviewer").stdout;
    assert!(skeleton.contains("\"coder\""), "{skeleton}");
    // Issues keep their protocol.
    run(&env, "claim 87.1 --as prep-agent");
    assert_eq!(record(&env, "87.1")["protocol"], "issue-to-pr");
    env.assert_sound();
    // A change by hand that no such step makes is found.
    let manifest = env.git(&env.repo(), &["show", "handoffs:ledger.json"]);
    let manifest = manifest.replace("\"review\"", "\"issue-to-pr\"");
    let edits = [("ledger.json", Some(manifest.as_bytes()))];
    tamper(&env, "Use it\n\nProtocol: issue-to-pr\n", &edits);
    assert!(damage(&env).contains("commit.message"), "{}", damage(&env));
}

#[test]
fn an_update_is_one_commit_and_takes_nothing_away_from_history() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    run(&env, "claim 87.1 --as prep-agent");
    let folder = Folder::copy(&env, "issue-to-pr", "next");
    folder.define(|d| d["version"] = json!("2.0.0"));
    // What was sent would not be accepted any more.
    folder.edit(
        "schemas/issue-manager-to-prep-agent.schema.json",
        |schema| {
            schema["required"]
                .as_array_mut()
                .unwrap()
                .push(json!("labels"));
            schema["properties"]["labels"] =
                json!({"type": "string", "minLength": 1, "maxLength": 10});
        },
    );
    let before = commits(&env);
    folder.put("update").success();
    assert_eq!(commits(&env), before + 1);
    let subject = env.git(&env.repo(), &["log", "-1", "--format=%s", "handoffs"]);
    assert_eq!(subject, "Update protocol issue-to-pr from 1.9.0 to 2.0.0\n");
    let changed = ["diff", "--name-only", "handoffs~1", "handoffs"];
    assert_eq!(
        env.git(&env.repo(), &changed),
        "protocols/issue-to-pr/protocol.json\n\
         protocols/issue-to-pr/schemas/issue-manager-to-prep-agent.schema.json\n"
    );
    env.assert_sound();
    let old = refused(&env, &[], opening(88));
    assert_eq!(old.says(), (3, "contract_refused"));
    // What is open goes on, and the repeat of what was accepted stays one.
    env.send(prepared(87)).success();
    env.assert_sound();
    let verify = env.handoff(&["verify", "87"]).success();
    assert!(verify.shown.contains("sound"), "{}", verify.shown);
}

#[test]
fn an_update_keeps_what_was_set_or_says_what_would_be_lost() {
    let env = with_protocol("issue-to-pr");
    run(&env, "protocol set issue-to-pr evidence enforce");
    run(&env, "protocol set issue-to-pr limits.handoffs 77");
    let folder = Folder::copy(&env, "issue-to-pr", "next");
    folder.define(|d| {
        d["version"] = json!("2.0.0");
        d["limits"]["lease_seconds"] = json!(4321);
        d["evidence"]["policy"] = json!("warn");
        d["limits"]["handoffs"] = json!(40);
    });
    let updated = folder.put("update").success();
    let says = |line: &str| assert!(updated.stdout.contains(line), "{}", updated.shown);
    says("+2 to 2.0.0+2");
    says("  still set: evidence enforce\n  still set: limits.handoffs 77\n");
    let listed = run(&env, "protocol set issue-to-pr").stdout;
    let value = |key: &str| {
        let row = listed
            .lines()
            .find(|row| row.starts_with(&format!("{key} ")));
        row.and_then(|row| row.split_whitespace().nth(1))
            .map(str::to_owned)
    };
    let values = ["evidence", "limits.handoffs", "time.lease_seconds"].map(value);
    let expected = ["enforce", "77", "4321"].map(|value| Some(value.to_owned()));
    assert_eq!(values, expected, "what the author changed is taken");
    let again = folder.put("update").success();
    assert!(again.stdout.contains("nothing changed"), "{}", again.shown);
    // A second new version keeps them, too, and not what the first one brought.
    folder.define(|d| {
        d["version"] = json!("3.0.0");
        d["limits"]["lease_seconds"] = json!(1234);
    });
    folder.put("update").success();
    let listed = run(&env, "protocol set issue-to-pr").stdout;
    assert!(listed.contains("  1234 "), "{listed}");
    // So does one in which another file changes.
    folder.define(|d| d["version"] = json!("3.1.0"));
    let opening = "schemas/issue-manager-to-prep-agent.schema.json";
    folder.edit(opening, |schema| schema["title"] = json!("To prepare"));
    let updated = folder.put("update").success().stdout;
    assert!(updated.contains("from 3.0.0+2 to 3.1.0+2"), "{updated}");
    let again = folder.put("update").success();
    assert!(again.stdout.contains("nothing changed"), "{}", again.shown);
    // A rule whose policy was set is gone in the next one.
    run(
        &env,
        "protocol set issue-to-pr consistency.cycle-time enforce",
    );
    folder.define(|d| {
        d["version"] = json!("4.0.0");
        let rules = d["consistency"].as_array_mut().unwrap();
        rules.retain(|rule| rule["name"] != "cycle-time");
    });
    let tip = env.tip();
    let refused = folder
        .put("update")
        .says("the protocol has no \"consistency.cycle-time\"");
    refused.says("add --drop-settings");
    assert_eq!(env.tip(), tip);
    let path = folder.path();
    env.handoff(&["protocol", "update", &path, "--drop-settings"])
        .success();
    let listed = run(&env, "protocol set issue-to-pr").stdout;
    assert!(!listed.contains("enforce  "), "{listed}");
    env.assert_sound();
}

#[test]
fn an_update_leaves_no_open_handoff_behind() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    run(&env, "claim 87.1 --as prep-agent");
    env.send(prepared(87)).success();
    env.send(opening(88)).success();
    let told = |name: &str, change: &dyn Fn(&mut Value)| {
        let folder = Folder::copy(&env, "issue-to-pr", name);
        // Others may send these types, too.
        for (kind, senders) in [
            (
                "fixer-agent-to-reviewer-agent",
                ["fixer-agent", "prep-agent"],
            ),
            (
                "prep-agent-to-implementer-agent",
                ["prep-agent", "issue-manager"],
            ),
        ] {
            folder.edit(&format!("schemas/{kind}.schema.json"), |schema| {
                schema["properties"]["from"] = json!({ "enum": senders });
            });
        }
        folder.define(|d| {
            d["facts"] = json!({});
            d["requirements"] = json!({});
            d["consistency"] = json!([]);
            d.as_object_mut().unwrap().remove("traces");
            d["github"] = json!({"rules": []});
            d["version"] = json!("9.0.0");
            change(d);
        });
        let refused = folder.refused("update");
        assert_eq!(refused.says(), (4, "protocol_orphans"), "{refused:?}");
        refused.findings.join("\n")
    };
    let names = |agent: &'static str| {
        move |v: &Value| v["from"] != agent && v["to"] != agent && v["id"] != agent
    };
    let mut text = told("agent", &|d| {
        let gone = "implementer-agent";
        d["words"]["status"]
            .as_object_mut()
            .unwrap()
            .remove("ready");
        keep(&mut d["agents"], names(gone));
        keep(&mut d["routes"], names(gone));
        keep(&mut d["contracts"], |c| {
            !c["type"].as_str().unwrap().contains("implementer-agent")
        });
        let on = json!({"from": "prep-agent", "to": "reviewer-agent", "contracts": ["fixer-agent-to-reviewer-agent"]});
        d["routes"].as_array_mut().unwrap().push(on);
    });
    text += "\n\n";
    text += &told("type", &|d| {
        d["contracts"][1]["type"] = json!("prepared");
        d["contracts"][1]["schema"] = json!("schemas/prep-agent-to-implementer-agent.schema.json");
        d["contracts"][1]["template"] = json!("templates/prep-agent-to-implementer-agent.json");
        d["routes"][1]["contracts"] = json!(["prepared"]);
    });
    text += "\n\n";
    text += &told("route", &|d| {
        let routes = &mut d["routes"];
        keep(routes, |r| r["from"] != "prep-agent" && r["from"] != "*");
        let routes = routes.as_array_mut().unwrap();
        routes.push(json!({"from": "issue-manager", "to": "implementer-agent",
            "contracts": ["prep-agent-to-implementer-agent"]}));
        routes.push(json!({"from": "closer-agent", "to": "orchestrator", "contracts": ["error"]}));
    });
    text += "\n\n";
    text += &told("end", &|d| {
        d["agents"][2]["kind"] = json!("end");
        keep(&mut d["routes"], |r| r["from"] != "implementer-agent");
        keep(&mut d["contracts"], |c| {
            c["type"] != "implementer-agent-to-reviewer-agent"
        });
        let on = json!({"from": "prep-agent", "to": "reviewer-agent", "contracts": ["fixer-agent-to-reviewer-agent"]});
        d["routes"].as_array_mut().unwrap().push(on);
    });
    insta::assert_snapshot!(text, @r#"
    protocol.orphan issues/87/00/87/0002.json: 87.2 needs the agent implementer-agent
    protocol.orphan issues/87/00/87/0002.json: 87.2 needs the contract type "prep-agent-to-implementer-agent"

    protocol.orphan issues/87/00/87/0002.json: 87.2 needs the contract type "prep-agent-to-implementer-agent"

    protocol.orphan issues/88/00/88/0001.json: 88.1 needs a route on which prep-agent can hand it on

    protocol.orphan issues/87/00/87/0002.json: 87.2 needs the agent implementer-agent
    protocol.orphan issues/87/00/87/0002.json: 87.2 needs a route on which implementer-agent can hand it on
    "#);
    // Once nothing is open, nothing is left behind.
    for id in ["87.2", "88.1"] {
        run(
            &env,
            &format!("cancel {id} --as orchestrator --reason moved"),
        );
    }
    let folder = Folder::copy(&env, "issue-to-pr", "later");
    folder.define(|d| {
        d["facts"] = json!({});
        d["requirements"] = json!({});
        d["consistency"] = json!([]);
        d.as_object_mut().unwrap().remove("traces");
        d["github"] = json!({"rules": []});
        d["version"] = json!("9.0.0");
        d["contracts"][1]["type"] = json!("prepared");
        d["contracts"][1]["schema"] = json!("schemas/prep-agent-to-implementer-agent.schema.json");
        d["contracts"][1]["template"] = json!("templates/prep-agent-to-implementer-agent.json");
        d["routes"][1]["contracts"] = json!(["prepared"]);
    });
    folder.put("update").success();
    env.assert_sound();
}

#[test]
fn a_faulty_protocol_is_not_put_in_force() {
    let env = TestEnvironment::with_ledger();
    let folder = Folder::copy(&env, "delegation", "faulty");
    folder.define(|d| d["routes"][0]["to"] = json!("Nobody"));
    folder.remove("templates/request.json");
    for action in ["add", "update"] {
        let refused = folder.refused(action);
        assert_eq!(refused.says(), (3, "protocol_refused"));
        assert!(
            refused.codes().contains(&"protocol.unknown_agent"),
            "{refused:?}"
        );
    }
    folder.write("protocol.json", "{");
    assert_eq!(folder.refused("add").codes(), ["protocol.syntax"]);
    folder.remove("protocol.json");
    assert_eq!(folder.refused("add").says(), (2, "folder_unreadable"));
    env.assert_sound();
}

#[test]
fn an_agent_is_added_by_data_alone() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "audited");
    let kinds = [
        (
            "reviewer-agent-to-security-auditor",
            "reviewer-agent",
            "security-auditor",
        ),
        (
            "security-auditor-to-validator-agent",
            "security-auditor",
            "validator-agent",
        ),
        (
            "security-auditor-to-fixer-agent",
            "security-auditor",
            "fixer-agent",
        ),
    ];
    let sources = [
        "reviewer-agent-to-validator-agent",
        "reviewer-agent-to-validator-agent",
        "reviewer-agent-to-fixer-agent",
    ];
    for ((kind, from, to), source) in kinds.into_iter().zip(sources) {
        let mut schema = folder.read(&format!("schemas/{source}.schema.json"));
        schema["title"] = json!(kind);
        for (key, agent) in [("from", from), ("to", to)] {
            schema["properties"][key]["const"] = json!(agent);
            schema["properties"][key]["description"] = json!(format!("The agent: `{agent}`"));
        }
        if from == "security-auditor" {
            let audit = json!({"description": "Number of packages that were looked at", "type": "integer", "minimum": 1});
            schema["properties"]["audited"] = audit;
            schema["required"]
                .as_array_mut()
                .unwrap()
                .push(json!("audited"));
        }
        let mut template = folder.read(&format!("templates/{source}.json"));
        (template["from"], template["to"]) = (json!(from), json!(to));
        if from == "security-auditor" {
            template["audited"] = json!("{{fill: number of packages that were looked at}}");
        }
        folder.write(&format!("schemas/{kind}.schema.json"), schema.to_string());
        folder.write(&format!("templates/{kind}.json"), template.to_string());
    }
    folder.edit("schemas/error.schema.json", |schema| {
        let senders = &mut schema["properties"]["from"]["enum"];
        senders
            .as_array_mut()
            .unwrap()
            .push(json!("security-auditor"));
    });
    // What it cannot decide goes to the orchestrator in words of its own.
    let mut schema = folder.read("schemas/error.schema.json");
    schema["properties"]["from"] =
        json!({"description": "The auditor", "const": "security-auditor"});
    schema["properties"]["status"] =
        json!({"description": "Why: advisory-pending", "const": "advisory-pending"});
    folder.write(
        "schemas/security-audit-blocked.schema.json",
        schema.to_string(),
    );
    let mut template = folder.read("templates/error.json");
    template["from"] = json!("security-auditor");
    template["status"] = json!("advisory-pending");
    folder.write(
        "templates/security-audit-blocked.json",
        template.to_string(),
    );
    folder.define(|d| {
        d["name"] = json!("audited-pr");
        d["status"]["advisory-pending"] = json!("blocked");
        let auditor = json!({"id": "security-auditor", "role": "Looks for known holes", "kind": "specialist", "phase": 5});
        d["agents"].as_array_mut().unwrap().insert(5, auditor);
        keep(&mut d["contracts"], |c| c["type"] != "reviewer-agent-to-validator-agent");
        keep(&mut d["github"]["rules"], |r| r["name"] != "review-approves");
        keep(&mut d["consistency"], |r| r["name"] != "separate-duties");
        keep(&mut d["routes"], |r| {
            r["from"] != "reviewer-agent" || r["to"] != "validator-agent"
        });
        let mut errors = d["contracts"].as_array_mut().unwrap().iter_mut();
        let error = errors.find(|c| c["type"] == "error").unwrap();
        error["when"] = json!({"/status": ["failure", "blocked"]});
        let mut blocked = error.clone();
        blocked["type"] = json!("security-audit-blocked");
        blocked["when"] = json!({"/status": "advisory-pending"});
        blocked["outcome"] = json!({"advisory-pending": "block"});
        blocked["schema"] = json!("schemas/security-audit-blocked.schema.json");
        blocked["template"] = json!("templates/security-audit-blocked.json");
        blocked.as_object_mut().unwrap().remove("xsd");
        d["contracts"].as_array_mut().unwrap().push(blocked);
        d["routes"].as_array_mut().unwrap().push(json!({"from": "security-auditor", "to": "orchestrator",
            "contracts": ["security-audit-blocked"]}));
        for (kind, from, to) in kinds {
            d["contracts"].as_array_mut().unwrap().push(json!({"type": kind, "title": kind, "root": "handoff",
                "schema": format!("schemas/{kind}.schema.json"), "template": format!("templates/{kind}.json")}));
            d["routes"].as_array_mut().unwrap().push(json!({"from": from, "to": to, "contracts": [kind]}));
        }
        let counted = json!(["reviewer-agent-to-fixer-agent", "reviewer-agent-to-security-auditor"]);
        d["facts"]["review_iterations"] = json!({"count": counted});
        d["facts"]["packages_audited"] = json!({"last": ["/audited"]});
        let approvals = d["requirements"].to_string().replace(
            "reviewer-agent-to-validator-agent",
            "reviewer-agent-to-security-auditor",
        );
        d["requirements"] = serde_json::from_str(&approvals).unwrap();
    });
    let path = folder.path();
    run(&env, &format!("protocol check {path}"));
    env.handoff(&["init", "--protocol", &path, "--evidence", "off"])
        .success();

    let of = |name: &str, from: &str, to: &str| {
        let mut value: Value = serde_json::from_str(&sample(name, Format::Json, 87)).unwrap();
        (value["from"], value["to"]) = (json!(from), json!(to));
        if from == "security-auditor" {
            value["audited"] = json!(212);
        }
        value.to_string()
    };
    let plain = |name: &str| sample(name, Format::Xml, 87);
    let claim = |agent: &str| drop(run(&env, &format!("claim 87 --as {agent}")));
    let approval = "reviewer-agent-to-validator-agent";
    let demand = "reviewer-agent-to-fixer-agent";
    env.send(plain("issue-manager-to-prep-agent")).success();
    claim("prep-agent");
    env.send(plain("prep-agent-to-implementer-agent")).success();
    claim("implementer-agent");
    env.send(plain("implementer-agent-to-reviewer-agent"))
        .success();
    claim("reviewer-agent");
    // The way past the auditor is gone.
    let past = refused(&env, &[], sample(approval, Format::Json, 87));
    assert_eq!(past.says(), (4, "route_refused"), "{past:?}");
    sent(&env, of(approval, "reviewer-agent", "security-auditor"));
    claim("security-auditor");
    let skeleton = run(
        &env,
        "new --issue 87 --from security-auditor --to fixer-agent",
    )
    .stdout;
    assert!(skeleton.contains("<audited>{{fill:"), "{skeleton}");
    // Blocked first, then a demand, then an approval.
    let mut blocked: Value = serde_json::from_str(&sample("error", Format::Json, 87)).unwrap();
    blocked["from"] = json!("security-auditor");
    blocked["status"] = json!("advisory-pending");
    let data = sent(&env, blocked.to_string());
    assert_eq!(data["handoff"]["contract_type"], "security-audit-blocked");
    assert_eq!(
        states(&env, "87")[3..],
        [
            "4 blocked with security-auditor",
            "5 pending with orchestrator"
        ]
    );
    run(&env, "claim 87.5 --as orchestrator");
    run(&env, "answer 87.4 published --as orchestrator");
    run(&env, "complete 87.5 --as orchestrator");
    claim("security-auditor");
    sent(&env, of(demand, "security-auditor", "fixer-agent"));
    claim("fixer-agent");
    env.send(plain("fixer-agent-to-reviewer-agent")).success();
    claim("reviewer-agent");
    sent(&env, of(approval, "reviewer-agent", "security-auditor"));
    claim("security-auditor");
    let mut failure: Value = serde_json::from_str(&sample("error", Format::Json, 87)).unwrap();
    failure["from"] = json!("security-auditor");
    failure["status"] = json!("failure");
    let data = sent(&env, failure.to_string());
    assert_eq!(data["handoff"]["contract_type"], "error");
    run(&env, "claim 87.9 --as orchestrator");
    run(&env, "retry 87.8 --as orchestrator --reason again");
    run(&env, "complete 87.9 --as orchestrator");
    claim("security-auditor");
    sent(&env, of(approval, "security-auditor", "validator-agent"));
    claim("validator-agent");
    env.send(plain("validator-agent-to-closer-agent")).success();
    claim("closer-agent");
    env.send(plain("workflow-complete")).success();
    let issue = stored_issue(&env.data(&["context", "87"]));
    assert_eq!(issue["status"], "completed");
    assert_eq!(issue["facts"]["packages_audited"], 212);
    assert_eq!(issue["facts"]["review_iterations"], 2);
    env.assert_sound();
}

/// A protocol of two agents and one type.
fn kitchen(env: &TestEnvironment) -> Folder<'_> {
    let folder = Folder::new(env, "kitchen");
    let definition = json!({
        "format": 1,
        "name": "kitchen",
        "version": "0.1.0",
        "title": "From the table to the stove",
        "formats": ["json"],
        "fields": {"issue": "/table", "from": "/from", "to": "/to", "summary": "/dish"},
        "agents": [
            {"id": "waiter", "role": "Takes orders", "kind": "specialist"},
            {"id": "cook", "role": "Cooks", "kind": "specialist"},
        ],
        "contracts": [{"type": "order", "title": "Order", "root": "order",
            "schema": "schemas/order.schema.json", "template": "templates/order.json"}],
        "routes": [{"from": "waiter", "to": "cook", "contracts": ["order"], "opens": true}],
    });
    let text = json!({"type": "string", "minLength": 1, "maxLength": 80});
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["table", "from", "to", "dish"],
        "properties": {"table": text, "from": text, "to": text, "dish": text},
    });
    let template = json!({"table": "{{issue: the table}}", "from": "waiter", "to": "cook",
        "dish": "{{fill: what to cook}}"});
    folder.write("protocol.json", definition.to_string());
    folder.write("schemas/order.schema.json", schema.to_string());
    folder.write("templates/order.json", template.to_string());
    folder
}

fn order(table: &str, dish: &str) -> String {
    json!({"table": table, "from": "waiter", "to": "cook", "dish": dish}).to_string()
}

#[test]
fn a_protocol_of_ones_own_is_three_files() {
    let env = TestEnvironment::with_repository();
    let folder = kitchen(&env);
    let path = folder.path();
    run(&env, &format!("protocol check {path}"));
    run(&env, &format!("protocol show {path}"));
    env.handoff(&["init", "--protocol", &path]).success();
    let skeleton = run(&env, "new --issue T4 --from waiter --to cook").stdout;
    let contract = skeleton.replace("{{fill: what to cook}}", "Soup");
    sent(&env, contract);
    let wrong = refused(&env, &[], order("T4", ""));
    assert_eq!(wrong.says(), (3, "contract_refused"));
    let again = refused(&env, &[], order("T4", "Bread"));
    assert_eq!(again.says(), (4, "not_held"));
    run(&env, "claim --next --as cook");
    run(&env, "fail T4.1 --as cook --code BURNT --reason distracted");
    run(&env, "retry T4.1 --as waiter --reason hungry");
    run(&env, "claim T4.1 --as cook");
    run(&env, "complete T4.1 --as cook");
    sent(&env, order("T4", "Bread"));
    assert_eq!(
        states(&env, "T4"),
        ["1 completed with cook", "2 pending with cook"]
    );
    env.assert_sound();
}

#[test]
fn a_protocol_is_added_once() {
    for round in 0..4 {
        let env = TestEnvironment::with_ledger();
        let (first, second) = (kitchen(&env), {
            let other = Folder::new(&env, "diner");
            for file in [
                "protocol.json",
                "schemas/order.schema.json",
                "templates/order.json",
            ] {
                other.write(file, kitchen(&env).read(file).to_string());
            }
            other
        });
        let before = commits(&env);
        // The same bytes: both are right. Other bytes: one comes too late.
        if round % 2 == 1 {
            second.define(|d| d["version"] = json!("0.2.0"));
        }
        let (first, second) = (first.path(), second.path());
        let add = |path| vec!["protocol", "add", path];
        let ended = at_once(&env, &[add(&first), add(&second)]);
        let expected = if round % 2 == 1 { [0, 4] } else { [0, 0] };
        assert_eq!(exits(&ended), expected, "{}", said(&ended));
        assert_eq!(commits(&env), before + 1);
        env.assert_sound();
    }
}

#[test]
fn an_update_while_contracts_are_sent_loses_none() {
    let env = TestEnvironment::with_repository();
    let folder = kitchen(&env);
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    let mut number = 0;
    for round in 1..=3 {
        // Dishes of two letters are not accepted from now on.
        folder.define(|d| d["version"] = json!(format!("0.1.{round}")));
        folder.edit("schemas/order.schema.json", |s| {
            s["properties"]["dish"]["minLength"] = json!(1 + round % 2 * 2);
        });
        let path = folder.path();
        let mut files = Vec::new();
        for _ in 0..10 {
            number += 1;
            let dish = if number % 2 == 0 { "Pi" } else { "Soup" };
            files.push(env.file(
                &format!("{number}.json"),
                order(&format!("T{number}"), dish),
            ));
        }
        let mut all: Vec<Vec<&str>> = files.iter().map(|f| vec!["send", f, "--json"]).collect();
        all.insert(5, vec!["protocol", "update", &path]);
        let ended = at_once(&env, &all);
        assert!(ended[5].status.success(), "{}", said(&ended));
        for (i, output) in ended.iter().enumerate().filter(|(i, _)| *i != 5) {
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            match output.status.code() {
                Some(0) => {
                    let id = answer["data"]["handoff"]["id"].as_str().unwrap();
                    assert_eq!(record(&env, id)["state"], "pending");
                }
                Some(3) => assert_eq!(answer["error"]["code"], "contract_refused"),
                other => panic!("{i} {other:?}: {}", said(&ended)),
            }
        }
        env.assert_sound();
    }
}

/// A commit on top of the ledger as anybody could make it with plain git.
fn tamper(env: &TestEnvironment, message: &str, edits: &[(&str, Option<&[u8]>)]) {
    tamper_by(env, None, message, edits);
}

/// The same, in the name of an agent.
fn tamper_by(
    env: &TestEnvironment,
    author: Option<&str>,
    message: &str,
    edits: &[(&str, Option<&[u8]>)],
) {
    let index = env.root().join("index");
    let _ = std::fs::remove_file(&index);
    let git = |args: &[&str], input: Option<&[u8]>| -> String {
        let mut command = env.command("git");
        if let Some(author) = author {
            command.env("GIT_AUTHOR_NAME", author);
            command.env("GIT_AUTHOR_EMAIL", format!("{author}@handoff.invalid"));
        }
        command.env("GIT_INDEX_FILE", &index).args(args);
        let ran = env.run(command, args, input).success();
        ran.stdout.trim().to_owned()
    };
    git(&["read-tree", "handoffs"], None);
    for (path, bytes) in edits {
        match bytes {
            Some(bytes) => {
                let id = git(&["hash-object", "-w", "--stdin"], Some(bytes));
                let entry = format!("100644,{id},{path}");
                git(&["update-index", "--add", "--cacheinfo", &entry], None);
            }
            None => drop(git(&["update-index", "--force-remove", path], None)),
        }
    }
    let tree = git(&["write-tree"], None);
    let commit = git(
        &["commit-tree", &tree, "-p", "handoffs", "-F", "-"],
        Some(message.as_bytes()),
    );
    git(&["update-ref", "refs/heads/handoffs", &commit], None);
}

/// Paths and what is to be there.
type Edits = Vec<(String, Option<String>)>;

/// What verify finds after such a commit, which must be damage.
fn damage(env: &TestEnvironment) -> String {
    let ran = env.handoff(&["verify", "--json"]);
    assert_eq!(ran.status, 10, "{}", ran.shown);
    Refused::of(&ran).findings.join("\n")
}

#[test]
fn an_earlier_form_is_read_and_named_and_an_update_replaces_it() {
    let env = TestEnvironment::with_repository();
    let folder = env.root().join("own").display().to_string();
    env.handoff(&["protocol", "copy", "issue-to-pr", &folder])
        .success();
    let file = format!("{folder}/protocol.json");
    let mut earlier: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let members = earlier.as_object_mut().unwrap();
    let limits = members["limits"].as_object_mut().unwrap();
    limits.shift_remove("lease_seconds");
    limits.shift_remove("longest_run_seconds");
    members.insert("leases".to_owned(), json!({"seconds": 60}));
    members.insert(
        "budgets".to_owned(),
        json!({"runs": {"per": "run", "tokens": 1000}}),
    );
    members.insert("merge".to_owned(), json!(["approved"]));
    members.insert("version".to_owned(), json!("1.5.0"));
    let approved = members["requirements"]["approved"].as_object_mut().unwrap();
    approved.shift_remove("merge");
    fs::write(&file, serde_json::to_string_pretty(&earlier).unwrap()).unwrap();
    let checked = env.handoff(&["protocol", "check", &folder]).success();
    assert!(
        checked.shown.contains("`leases` moved to `limits`"),
        "{}",
        checked.shown
    );
    env.handoff(&["init", "--protocol", &folder, "--evidence", "off"])
        .success();
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent").success();
    let lease = &record(&env, "1.1")["lease"];
    let seconds = |name: &str| {
        lease[name].as_str().unwrap()[17..19]
            .parse::<u32>()
            .unwrap()
    };
    assert_eq!(seconds("since"), seconds("expires_at"), "a minute: {lease}");
    env.handoff(&["gate", "--issue", "1", "--require", "approved"])
        .exits(1);
    let set = ["protocol", "set", "issue-to-pr", "leases", "120"];
    env.handoff(&set).exits(2).says("earlier form");
    env.handoff(&["protocol", "update", "issue-to-pr"])
        .success();
    env.handoff(&set).success();
    // A fault in such a key is told with the key's new place.
    earlier["budgets"]["runs"]["tokens"] = json!("many");
    fs::write(&file, serde_json::to_string_pretty(&earlier).unwrap()).unwrap();
    let checked = env.handoff(&["protocol", "check", &folder]).exits(1);
    checked.says("`budgets` moved").says("/budgets/runs/tokens");
    env.assert_sound();
}

/// The built-in protocols in the form that `protocol.json` had before its keys were merged.
#[test]
fn what_was_recorded_in_the_form_before_means_the_same() {
    let mut same = 0;
    for protocol in BUILT_IN {
        let sample = format!(
            "{}/tests/samples/earlier/{protocol}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let earlier = fs::read(sample).unwrap();
        let now = handoff::templates::built_in(protocol).unwrap();
        let now = now.file("protocol.json").unwrap();
        let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let renewed = handoff::protocol::renewed(&earlier).unwrap();
        // Some of them ask for more by now.
        let is_same = value(&renewed.definition) == value(now);
        same += usize::from(is_same);
        assert!(handoff::protocol::renewed(now).is_none(), "{protocol}");

        let env = TestEnvironment::with_repository();
        let folder = Folder::copy(&env, protocol, "own");
        folder.write("protocol.json", String::from_utf8(earlier).unwrap());
        let checked = env
            .handoff(&["protocol", "check", &folder.path()])
            .success();
        checked.says("`time` moved to `limits`");
        env.handoff(&["init", "--protocol", &folder.path()])
            .success();
        // What ships says the same, so that nothing is to be updated; settings keep their place.
        let tip = env.tip();
        if is_same {
            env.handoff(&["protocol", "update", protocol]).success();
        }
        assert_eq!(env.tip(), tip, "{protocol}");
        for (key, value) in [("time.lease_seconds", "77"), ("retry", "9")] {
            env.handoff(&["protocol", "set", protocol, key, value])
                .success();
        }
        let shown = env.data(&["protocol", "show", protocol])["definition"].take();
        assert_eq!(shown["time"]["lease_seconds"], 77, "{shown}");
        assert_eq!(shown["retry"]["max_retries"], 9, "{shown}");
        env.assert_sound();
    }
    assert!(same >= 3, "{same}");
}

/// A step that was recorded in that form names what it made weaker in the words of its time, and `verify`
/// still finds the same.
#[test]
fn what_was_called_weaker_in_the_form_before_is_called_so_now() {
    type Change = fn(&mut Value);
    let table: [(&str, Change, &str); 2] = [
        (
            "issue-to-pr",
            |of| {
                of["time"]["lease_seconds"] = json!(99_999);
                of["retry"]["max_retries"] = json!(9);
                of["limits"]["rounds"]["failed validations"]["most"] = json!(9);
                of["requirements"]["approved"]["undone_by"] = json!([]);
                of["opinions"] = json!([]);
            },
            "Weaker: limits.rounds, opinions, requirements.approved, retry, time\n",
        ),
        (
            "delegation",
            |of| {
                of["forbidden"].as_array_mut().unwrap().pop();
                of["limits"]["handoffs"] = json!(20);
                of["limits"].as_object_mut().unwrap().shift_remove("loops");
                of["time"]["person_lease_seconds"] = json!(90_000);
                of["consistency"].as_array_mut().unwrap().pop();
                of["retry"]["max_retries"] = json!(5);
            },
            "Weaker: consistency.handled-lacks-nothing, forbidden, limits.handoffs, limits.loops, retry, time\n",
        ),
    ];
    for (protocol, change, trailer) in table {
        let sample = format!(
            "{}/tests/samples/earlier/{protocol}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let mut earlier: Value = serde_json::from_slice(&fs::read(sample).unwrap()).unwrap();
        let env = TestEnvironment::with_repository();
        let folder = Folder::copy(&env, protocol, "own");
        folder.write("protocol.json", earlier.to_string());
        env.handoff(&["init", "--protocol", &folder.path()])
            .success();
        change(&mut earlier);
        earlier["version"] = json!("9.0.0");
        folder.write("protocol.json", earlier.to_string());
        env.handoff(&["protocol", "update", &folder.path(), "--weaker"])
            .success();
        let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
        assert!(message.contains(trailer), "{message}");
        env.assert_sound();
    }
}

#[test]
fn a_protocol_that_is_tampered_with_is_found() {
    let file = "protocols/kitchen/protocol.json";
    let schema = "protocols/kitchen/schemas/order.schema.json";
    let all = [file, schema, "protocols/kitchen/templates/order.json"];
    let made = || {
        let env = TestEnvironment::with_ledger();
        let folder = kitchen(&env);
        folder.put("add").success();
        sent(&env, order("T1", "Soup"));
        let text = folder.read("protocol.json");
        (env, text)
    };
    let updated = |definition: &Value| {
        let mut definition = definition.clone();
        definition["version"] = json!("0.2.0");
        definition
    };
    let right = "Update protocol kitchen from 0.1.0 to 0.2.0\n\nProtocol: kitchen\n";
    let mut text = String::new();
    let mut told = |what: &str, message: &str, edits: &dyn Fn(&Value) -> Edits| {
        let (env, definition) = made();
        let edits = edits(&definition);
        let edits: Vec<(&str, Option<&[u8]>)> = edits
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_deref().map(str::as_bytes)))
            .collect();
        tamper(&env, message, &edits);
        text += &format!("{what}:\n{}\n\n", damage(&env));
    };
    let set = |path: &str, value: &Value| (path.to_owned(), Some(value.to_string()));
    told("removed", "Remove it\n", &|_| {
        all.iter().map(|path| ((*path).to_owned(), None)).collect()
    });
    told("orphans an open handoff", right, &|d| {
        let mut d = updated(d);
        d["agents"][1]["id"] = json!("chef");
        d["routes"][0]["to"] = json!("chef");
        vec![set(file, &d)]
    });
    told(
        "a message that lies",
        "Fix a slip\n\nProtocol: kitchen\n",
        &|d| vec![set(file, &updated(d))],
    );
    told("faulty", right, &|d| {
        let mut d = updated(d);
        d["routes"][0]["to"] = json!("nobody");
        vec![set(file, &d)]
    });
    told("an extra file", right, &|d| {
        let extra = (
            "protocols/kitchen/notes.txt".to_owned(),
            Some("x".to_owned()),
        );
        vec![set(file, &updated(d)), extra]
    });
    told("a file of another protocol", right, &|d| {
        let extra = "protocols/issue-to-pr/templates/error.json".to_owned();
        vec![set(file, &updated(d)), (extra, Some("{}".to_owned()))]
    });
    told("a schema that is gone", right, &|d| {
        vec![set(file, &updated(d)), (schema.to_owned(), None)]
    });
    told(
        "another name",
        "Add protocol diner 0.1.0\n\nProtocol: diner\n",
        &|d| vec![set("protocols/diner/protocol.json", d)],
    );
    told("together with a step", right, &|d| {
        let record = "issues/t1/00/T1/0001.json".to_owned();
        vec![set(file, &updated(d)), (record, Some("{}".to_owned()))]
    });
    insta::assert_snapshot!(text, @"
    removed:
    file.missing protocols/kitchen/protocol.json: protocols/kitchen/protocol.json is missing

    orphans an open handoff:
    step.illegal protocols/kitchen/protocol.json: no protocol allows this step: protocol kitchen cannot change this way while handoffs are open

    a message that lies:
    commit.message: the message or its trailers do not tell what the step did

    faulty:
    step.illegal protocols/kitchen/protocol.json: no protocol allows this step: protocol kitchen is invalid

    an extra file:
    file.stray protocols/kitchen/notes.txt: the step has no business with this file

    a file of another protocol:
    step.none protocols/issue-to-pr/templates/error.json: the commit is not a step: it changes no issue

    a schema that is gone:
    step.illegal protocols/kitchen/protocol.json: no protocol allows this step: the protocol is invalid

    another name:
    step.illegal protocols/diner/protocol.json: no protocol allows this step: the protocol is invalid

    together with a step:
    record.altered issues/t1/00/T1/0001.json: the step has no business with this file
    file.altered protocols/kitchen/protocol.json: the step has no business with this file
    commit.message: the message does not tell a step: it has no trailer Event
    file.unreadable issues/t1/00/T1/0001.json: issues/t1/00/T1/0001.json cannot be read: it is not a valid record: missing field `version` at line 1 column 2
    ");
    // Whoever says what is done does what the command does.
    let (env, definition) = made();
    let honest = updated(&definition).to_string();
    tamper(&env, right, &[(file, Some(honest.as_bytes()))]);
    env.assert_sound();
}

#[test]
fn a_document_that_is_tampered_with_is_found() {
    let file = "documents/orchestrator-specialist/phase-status.json";
    let phase = |status: &str| json!({"phases": [{"phase": 1, "status": status}]}).to_string();
    let message = |bytes: &str| {
        let digest = Sha256::digest(bytes.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "Set document phase-status\n\nDocument: phase-status\nDocument-Sha256: {digest}\n\
             From: @backend-specialist\nProtocol: orchestrator-specialist\n"
        )
    };
    let made = || {
        let env = with_protocol("orchestrator-specialist");
        let path = env.file("phases.json", phase("pending"));
        run(
            &env,
            &format!("document set phase-status {path} --as @backend-specialist"),
        );
        env.assert_sound();
        env
    };
    let author = "@backend-specialist";
    let (right, wrong) = (phase("completed"), phase("finished"));
    let table: [(&str, &str, String, Option<&str>); 7] = [
        ("nobody's", "Robin", message(&right), Some(&right)),
        ("a message that lies", author, message(&wrong), Some(&right)),
        ("no message", author, "x\n".to_owned(), Some(&right)),
        ("against its schema", author, message(&wrong), Some(&wrong)),
        ("not JSON", author, message("{"), Some("{")),
        ("removed", author, message(""), None),
        ("unchanged", author, message(&right), Some("")),
    ];
    let mut text = String::new();
    for (what, by, message, bytes) in table {
        let env = made();
        let same = phase("pending");
        let bytes = bytes.map(|b| {
            if b.is_empty() {
                same.as_bytes()
            } else {
                b.as_bytes()
            }
        });
        tamper_by(&env, Some(by), &message, &[(file, bytes)]);
        text += &format!("{what}:\n{}\n\n", damage(&env));
    }
    let env = made();
    let stray = "documents/orchestrator-specialist/diary.json";
    tamper_by(
        &env,
        Some(author),
        &message(&right),
        &[(stray, Some(b"{}"))],
    );
    text += &format!("no document of the protocol:\n{}\n\n", damage(&env));
    insta::assert_snapshot!(text, @"
    nobody's:
    step.illegal documents/orchestrator-specialist/phase-status.json: no protocol allows this step: Robin is not an agent of protocol orchestrator-specialist

    a message that lies:
    commit.message: the message or its trailers do not tell what the step did

    no message:
    commit.message: the message or its trailers do not tell what the step did

    against its schema:
    step.illegal documents/orchestrator-specialist/phase-status.json: no protocol allows this step: the document was refused

    not JSON:
    step.illegal documents/orchestrator-specialist/phase-status.json: no protocol allows this step: the document was refused

    removed:
    step.illegal documents/orchestrator-specialist/phase-status.json: no protocol allows this step: the document was refused

    unchanged:
    step.none: the commit changes nothing

    no document of the protocol:
    step.illegal documents/orchestrator-specialist/diary.json: no protocol allows this step: the protocol has no document diary
    ");
    // In the name of an agent, with its digest, it is what the command does.
    let env = made();
    tamper_by(
        &env,
        Some(author),
        &message(&right),
        &[(file, Some(right.as_bytes()))],
    );
    env.assert_sound();
    let shown: Value =
        serde_json::from_str(&run(&env, "document show phase-status").stdout).unwrap();
    assert_eq!(shown["phases"][0]["status"], "completed");
}
