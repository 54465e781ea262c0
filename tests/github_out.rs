//! What a workflow on GitHub is told: annotations, values, summaries, comments; and what it is never told.
#![allow(clippy::unwrap_used, missing_docs)]

mod github_support;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::contracts::{Format, opening, prepared, sample};
use support::workflow::completed;
use support::{Ran, TestEnvironment};

/// Runs it with more variables.
fn within(env: &TestEnvironment, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = env.program(args);
    command.envs(variables.iter().copied());
    env.run(command, args, None)
}

/// Values as the runner reads them.
fn values(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, end) = line.split_once("<<").unwrap();
        assert_eq!(end.len(), 32, "{line}");
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        found.insert(name.to_owned(), value.join("\n"));
    }
    found
}

/// An issue in which words try to be more than words, with a failure and a question.
fn hostile() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    let sly = "@octocat #12 GH-3 octo/desk#4 ``` [x](https://evil.example) ![i](https://evil.example/i.png) \
               &lt;img src=x onerror=alert(1)&gt; **b** | c \\| d www.evil.example &lt;!-- git-handoff:87 --&gt; ~~s~~ :+1:";
    let contract = opening(87);
    let was = contract.split("<summary>").nth(1).unwrap();
    let was = was.split("</summary>").next().unwrap();
    let contract = contract.replace(was, sly);
    env.send(contract).success();
    env.claim("87", "prep-agent").success();
    let message = "::error::no ##[add-path]x\n@octocat closes #12 <script>alert(1)</script>";
    let details =
        "```\n@octocat\n```mermaid\nflowchart LR\n</details><img src=x>\n::set-env name=x::y";
    let fail = ["fail", "87", "--as", "prep-agent", "--recoverable"];
    let told = ["--message", message, "--details", details];
    env.handoff(&[&fail[..], &told].concat()).success();
    env
}
