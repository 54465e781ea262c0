//! Faults of what a protocol says of its contracts' claims, one at a time.

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, sample};
use test_support::team::Folder;

/// What `protocol check` says of the built-in protocol with one value changed; type 2 is what the
/// implementer sends.
fn faults(pointer: &str, value: &Value) -> String {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "protocol");
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    folder.define(|definition| {
        definition.pointer_mut(parent).unwrap()[key] = value.clone();
    });
    let ran = env.handoff(&["protocol", "check", &folder.path(), "--json"]);
    let findings = ran.exits(1).json()["error"]["findings"].take();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
    let findings = findings.as_array().unwrap().iter();
    let lines = findings.map(|f| {
        format!(
            "{} {}: {}\n",
            text(f, "code"),
            text(f, "path"),
            text(f, "message")
        )
    });
    lines.collect()
}

#[test]
fn each_fault_is_told_with_its_place() {
    let mut found = String::new();
    for (pointer, value) in [
        ("/evidence", json!({"policy": "sometimes"})),
        ("/evidence", json!({"checks": {"weather": "warn"}})),
        ("/evidence", json!({"cheques": {}})),
        ("/evidence", json!(["enforce"])),
        ("/contracts/2/claims", json!(["/branch"])),
        ("/contracts/2/claims", json!({"commit": "/commits"})),
        (
            "/contracts/2/claims",
            json!({"files_changed": "files_changed"}),
        ),
        ("/contracts/2/claims", json!({"files_changed": "/files"})),
        ("/contracts/2/claims", json!({"files_changed": "/summary"})),
        (
            "/contracts/2/claims",
            json!({"commits": {"list": "/commits", "id": "/id"}}),
        ),
        (
            "/contracts/2/claims",
            json!({"commits": {"list": "/branch"}}),
        ),
        ("/contracts/2/claims", json!({"tests": {}})),
        ("/contracts/2/claims", json!({"tests": "/tests_added"})),
        ("/contracts/2/claims", json!({"commits": "/commits"})),
        ("/contracts/2/claims", json!("/branch")),
        (
            "/contracts/2/claims",
            json!({"tests": {"passing": "/tests_added"}}),
        ),
        (
            "/contracts/6/claims",
            json!({"merge": {"commit": "/merge_sha", "strategies": {"flat": "squash"}}}),
        ),
        (
            "/contracts/6/claims",
            json!({"merge": {"commit": "/merge_sha", "strategy": "/merge_strategy", "strategies": {"flat": "octopus"}}}),
        ),
        (
            "/contracts/2/artifacts",
            json!({"path": "/data/file", "files": ["file"]}),
        ),
        ("/agents/2/paths", json!(["src/**", "/etc/*"])),
        ("/agents/2/paths", json!(["src/[ab"])),
        ("/agents/2/paths", json!("src")),
    ] {
        found += &format!(
            "{pointer} = {value}\n  {}",
            faults(pointer, &value)
                .replace('\n', "\n  ")
                .trim_end_matches(' ')
        );
    }
    assert_snapshot!(found, @r#"
    /evidence = {"policy":"sometimes"}
      protocol.syntax /evidence/policy: unknown variant `sometimes`, expected one of `enforce`, `warn`, `off`
    /evidence = {"checks":{"weather":"warn"}}
      protocol.syntax /evidence/checks: unknown variant `weather`, expected one of `branch`, `commits`, `files_changed`, `commits_added`, `merge`, `artifacts`, `paths`, `tests`, `tests_added`, `coverage`
    /evidence = {"cheques":{}}
      protocol.syntax /evidence/cheques: unknown field `cheques`, expected `policy` or `checks`
    /evidence = ["enforce"]
      protocol.syntax /evidence: expected an object, in braces
    /contracts/2/claims = ["/branch"]
      protocol.syntax /contracts/2/claims: expected an object, in braces
    /contracts/2/claims = {"commit":"/commits"}
      protocol.syntax /contracts/2/claims/commit: unknown field `commit`, expected one of `branch`, `base`, `commits`, `files_changed`, `commits_added`, `merge`, `tests`, `tests_added`, `coverage`
    /contracts/2/claims = {"files_changed":"files_changed"}
      protocol.pointer /contracts/2/claims/files_changed: `files_changed` is not a JSON Pointer to a field, such as /from
    /contracts/2/claims = {"files_changed":"/files"}
      protocol.unknown_field /contracts/2/claims/files_changed: `/files` is a field that schemas/implementer-agent-to-reviewer-agent.schema.json does not have
    /contracts/2/claims = {"files_changed":"/summary"}
      protocol.field_type /contracts/2/claims/files_changed: `/summary` is not of the type integer or number or array
    /contracts/2/claims = {"commits":{"list":"/commits","id":"/id"}}
      protocol.unknown_field /contracts/2/claims/commits/id: `/commits/0/id` is a field that schemas/implementer-agent-to-reviewer-agent.schema.json does not have
    /contracts/2/claims = {"commits":{"list":"/branch"}}
      protocol.field_type /contracts/2/claims/commits/list: `/branch` is not of the type array
    /contracts/2/claims = {"tests":{}}
      protocol.claims /contracts/2/claims/tests: nothing says where the tests' counts are
    /contracts/2/claims = {"tests":"/tests_added"}
      protocol.syntax /contracts/2/claims/tests: invalid type: string "/tests_added", expected an object, in braces
    /contracts/2/claims = {"commits":"/commits"}
      protocol.syntax /contracts/2/claims/commits: invalid type: string "/commits", expected an object, in braces
    /contracts/2/claims = "/branch"
      protocol.syntax /contracts/2/claims: invalid type: string "/branch", expected an object, in braces
    /contracts/2/claims = {"tests":{"passing":"/tests_added"}}
      protocol.field_type /contracts/2/claims/tests/passing: `/tests_added` is not of the type boolean
    /contracts/6/claims = {"merge":{"commit":"/merge_sha","strategies":{"flat":"squash"}}}
      protocol.claims /contracts/6/claims/merge/strategies: words stand for strategies, and nothing says where the word is
    /contracts/6/claims = {"merge":{"commit":"/merge_sha","strategy":"/merge_strategy","strategies":{"flat":"octopus"}}}
      protocol.syntax /contracts/6/claims/merge/strategies/flat: unknown variant `octopus`, expected one of `merge`, `squash`, `rebase`
    /contracts/2/artifacts = {"path":"/data/file","files":["file"]}
      protocol.claims /contracts/2/artifacts/files: some kinds are files, and nothing says where the kind is
    /agents/2/paths = ["src/**","/etc/*"]
      protocol.paths /agents/2/paths/1: `/etc/*` is not a path pattern: it is a path from the repository's root, without a leading `/`, without `.` and `..`
    /agents/2/paths = ["src/[ab"]
      protocol.paths /agents/2/paths/0: `src/[ab` is not a path pattern: invalid range pattern
    /agents/2/paths = "src"
      protocol.syntax /agents/2/paths: invalid type: string "src", expected a list, in brackets
    "#);
}

#[test]
fn a_branch_that_only_the_type_names_is_found() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "protocol");
    folder.define(|definition| {
        definition["fields"]
            .as_object_mut()
            .unwrap()
            .remove("branch");
        definition["contracts"][1]["claims"] = json!({"branch": "/branch"});
        definition["evidence"] = json!({"policy": "enforce"});
    });
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let prepared = sample("prep-agent-to-implementer-agent", Format::Json, 87);
    env.send(&prepared)
        .exits(3)
        .says("there is no branch \"enhancement/87-csv-export\" here");
    env.git(&env.repo(), &["branch", "enhancement/87-csv-export"]);
    env.send(&prepared)
        .success()
        .says("statements: passed branch");
    let code = &env.data(&["show", "87.2"])["record"]["code"];
    assert_eq!(code["branch"], "enhancement/87-csv-export");
    env.handoff(&["verify"]).success();
}
