//! The life of one issue from opening to completion, with every detour.

use super::TestEnvironment;
use super::contracts::{Format, implementer_error, sample, second_fix};

/// One step of the workflow: a contract or a command.
pub enum Step {
    Send(String),
    Run(&'static [&'static str]),
}

/// Issue 87 from opening to completion; each contract's format depends on its round.
pub fn workflow(format: impl Fn(usize) -> Format) -> Vec<Step> {
    let of = |round, name| Step::Send(sample(name, format(round), 87));
    let claim = |args| Step::Run(args);
    vec![
        of(1, "issue-manager-to-prep-agent"),
        claim(&["claim", "87.1", "--as", "prep-agent"]),
        of(2, "prep-agent-to-implementer-agent"),
        claim(&["claim", "--next", "--as", "implementer-agent"]),
        Step::Send(implementer_error(format(3), 87)),
        claim(&["claim", "87.3", "--as", "orchestrator"]),
        Step::Run(&[
            "retry",
            "87.2",
            "--as",
            "orchestrator",
            "--reason",
            "the registry is back",
        ]),
        Step::Run(&[
            "complete",
            "87.3",
            "--as",
            "orchestrator",
            "--reason",
            "retried",
        ]),
        claim(&["claim", "87.2", "--as", "implementer-agent"]),
        of(4, "implementer-agent-to-reviewer-agent"),
        claim(&["claim", "87", "--as", "reviewer-agent"]),
        of(5, "reviewer-agent-to-fixer-agent"),
        claim(&["claim", "87", "--as", "fixer-agent"]),
        of(6, "fixer-agent-to-reviewer-agent"),
        claim(&["claim", "87", "--as", "reviewer-agent"]),
        of(7, "reviewer-agent-to-validator-agent"),
        claim(&["claim", "87", "--as", "validator-agent"]),
        of(8, "validator-agent-to-fixer-agent"),
        claim(&["claim", "87", "--as", "fixer-agent"]),
        Step::Send(second_fix(format(9), 87)),
        claim(&["claim", "87", "--as", "reviewer-agent"]),
        // The same bytes as in round 7, but another handoff.
        of(10, "reviewer-agent-to-validator-agent"),
        claim(&["claim", "87", "--as", "validator-agent"]),
        of(11, "validator-agent-to-closer-agent"),
        claim(&["claim", "87", "--as", "closer-agent"]),
        of(12, "workflow-complete"),
    ]
}

pub fn run(env: &TestEnvironment, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Send(contract) => env.send(contract).success(),
            Step::Run(args) => env.handoff(args).success(),
        };
    }
}

pub fn completed(format: impl Fn(usize) -> Format) -> TestEnvironment {
    let letter = |round| match format(round) {
        Format::Xml => 'x',
        Format::Json => 'j',
    };
    let formats: String = (1..=12).map(letter).collect();
    TestEnvironment::prepared(&format!("completed-{formats}"), || {
        let env = TestEnvironment::with_ledger();
        run(&env, &workflow(&format));
        env
    })
}
