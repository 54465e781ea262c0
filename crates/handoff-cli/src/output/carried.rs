//! Options that printed commands need to run in another working tree of the same worker. Hints,
//! receipts and all other commands get them here.

use handoff::base::hint::{Command, Hint, Part};
use handoff::base::ids::{AgentName, WorkerId};
use handoff::ledger::attention::Attention;
use handoff::model::{Record, Transition};

/// The command that shows an agent its work: that of the room for agents, or the core's.
pub const BEGIN: &str = if cfg!(feature = "agents") {
    "prime"
} else {
    "inbox"
};

/// The commands that depend on the worker: those of a lease's holder, those that show what it
/// holds, and `new`, which prints the command that sends. So does `wait --inbox`.
const OF_WORKER: [&str; 10] = [
    "block", "claim", "complete", "extend", "fail", "inbox", "new", "prime", "release", "send",
];

/// Other commands that the acting agent is told to run.
const OF_AGENT: [&str; 9] = [
    "annotate", "answer", "approve", "cancel", "reassign", "reject", "reopen", "retry", "set",
];

/// The commands that a person may run in place of an orchestrator.
const OF_PERSON: [&str; 8] = [
    "answer", "cancel", "next", "pause", "reassign", "reopen", "resume", "retry",
];

/// The commands that read no ledger.
const WITHOUT_LEDGER: [&str; 4] = ["agents", "demo", "explain", "hooks"];

/// The options that a command needs in another working tree.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// The acting agent.
    pub agent: Option<AgentName>,
    /// Whether the command line names it: otherwise it comes from the environment or configuration,
    /// which other working trees share.
    pub is_agent_named: bool,
    /// The agent's worker.
    pub worker: Option<WorkerId>,
    /// Whether the worker is this working tree's own.
    pub is_of_tree: bool,
    /// Whether printed commands must name the worker: it was given on the command line, or belongs
    /// to one of several working trees.
    pub is_worker_named: bool,
    /// The ledger's branch, if the command line names it.
    pub branch: Option<String>,
    /// The orchestrators for whom the acting agent, a person, may stand in.
    pub stands_in_for: Vec<AgentName>,
    /// Whether the ledger lists keys, so that raising a limit has to be said on record.
    pub is_signed: bool,
}

impl Carried {
    /// The options after a step, with the agent's canonical name from the record in place of an
    /// alias.
    pub fn after(&self, record: &Record) -> Self {
        let is_own = |last: &&Transition| last.worker.is_some() && last.worker == self.worker;
        let last = record.latest().filter(is_own);
        Self {
            agent: last.map(|last| last.by.clone()).or(self.agent.clone()),
            ..self.clone()
        }
    }

    /// Adds missing options to a command. Only the acting agent's commands get its worker: other
    /// agents have their own.
    fn complete(&self, command: &mut Command) {
        let words = command.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["git", "handoff", verb, rest @ ..] = &words[..] else {
            return;
        };
        if rest.contains(&"-h") {
            return;
        }
        if *verb == "prime" {
            command.replace_word("prime", BEGIN);
        }
        if let Some(person) = &self.agent
            && OF_PERSON.contains(verb)
            && let Some(lead) = agent_of(rest)
            && self.stands_in_for.iter().any(|name| name.as_str() == lead)
        {
            command.instead("--as", person.as_str());
        }
        let is_of_worker = OF_WORKER.contains(verb);
        // Without arguments, the command is only mentioned, not meant to be run.
        let is_run = match *verb {
            "wait" => rest.contains(&"--inbox"),
            "next" => rest.contains(&"--apply"),
            verb => !rest.is_empty() && (is_of_worker || OF_AGENT.contains(&verb)),
        };
        let is_own = match (agent_of(rest), &self.agent) {
            (Some(agent), Some(own)) => agent == own.as_str(),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if is_run && is_own {
            if let Some(agent) = self.agent.as_ref().filter(|_| self.is_agent_named)
                && agent_of(rest).is_none()
            {
                command.option("--as", agent.as_str());
            }
            if let Some(worker) = self.worker.as_ref().filter(|_| self.is_worker_named)
                && (is_of_worker || *verb == "wait")
                && !rest.contains(&"--worker")
            {
                command.option("--worker", worker.as_str());
            }
        }
        if self.is_signed
            && let ["set", _, key, ..] = rest
            && *verb == "protocol"
            && ["limits.", "budgets."]
                .iter()
                .any(|group| key.starts_with(group))
            && !rest.contains(&"--weaker")
        {
            command.flag("--weaker");
        }
        if let Some(branch) = &self.branch
            && !rest.contains(&"--branch")
            && !WITHOUT_LEDGER.contains(verb)
        {
            command.option("--branch", branch);
        }
    }

    /// Completes a command.
    pub fn command(&self, command: &str) -> String {
        let mut command = Command::from(command);
        self.complete(&mut command);
        command.to_string()
    }

    /// Completes each command in a text.
    pub fn sentence(&self, mut text: Hint) -> Hint {
        for part in &mut text.parts {
            if let Part::Command(command) = part {
                self.complete(command);
            }
        }
        text
    }

    /// Completes the commands in attention entries.
    pub fn attention(&self, found: &mut [Attention]) {
        for one in found {
            one.next = self.command(&one.next);
        }
    }
}

/// The acting agent in a command's arguments.
fn agent_of<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut pairs = arguments.windows(2);
    pairs.find_map(|pair| ["--as", "--from"].contains(&pair[0]).then_some(pair[1]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Carried;

    fn carried() -> Carried {
        Carried {
            agent: "fixer".parse().ok(),
            is_agent_named: true,
            worker: "tree-1".parse().ok(),
            is_of_tree: true,
            is_worker_named: true,
            branch: None,
            stands_in_for: Vec::new(),
            is_signed: false,
        }
    }

    #[test]
    fn a_person_is_offered_what_an_orchestrator_may_do_in_its_own_name() {
        let person = Carried {
            agent: "maintainer".parse().ok(),
            stands_in_for: vec!["orchestrator".parse().unwrap()],
            ..Carried::default()
        };
        for (command, offered) in [
            (
                "git handoff retry 7.1 --as orchestrator --reason 'as orchestrator'",
                "git handoff retry 7.1 --as maintainer --reason 'as orchestrator'",
            ),
            (
                "git handoff claim 7.1 --as orchestrator",
                "git handoff claim 7.1 --as orchestrator",
            ),
            (
                "git handoff answer 7.1 ANSWER --as fixer",
                "git handoff answer 7.1 ANSWER --as fixer",
            ),
        ] {
            assert_eq!(person.command(command), offered);
        }
    }

    #[test]
    fn commands_of_the_worker_carry_it_and_no_others() {
        for (command, rest) in [
            ("git handoff extend 7.1 --as fixer", " --worker tree-1"),
            ("git handoff claim --next", " --as fixer --worker tree-1"),
            (
                "git handoff new --issue 7 --from fixer --to x",
                " --worker tree-1",
            ),
            ("git handoff send c.xml --as fixer --worker w", ""),
            ("git handoff claim 7.1 --as other", ""),
            ("git handoff new --issue 7 --from other --to fixer", ""),
            ("git handoff retry 7.1", " --as fixer"),
            ("git handoff cancel 7.1 --as other", ""),
            ("git handoff show 7.1", ""),
            ("git handoff wait 7.1", ""),
            ("git handoff wait --inbox --as fixer", " --worker tree-1"),
            ("git handoff extend", ""),
            ("git handoff fail -h", ""),
            ("git remote -v", ""),
        ] {
            assert_eq!(carried().command(command), format!("{command}{rest}"));
        }
        let signed = Carried {
            is_signed: true,
            ..carried()
        };
        let raise = "git handoff protocol set review limits.handoffs N";
        assert_eq!(signed.command(raise), format!("{raise} --weaker"));
        assert_eq!(carried().command(raise), raise);
        let unnamed = Carried {
            is_worker_named: false,
            ..carried()
        };
        assert_eq!(
            unnamed.command("git handoff claim 7.1"),
            "git handoff claim 7.1 --as fixer"
        );
        assert_eq!(
            Carried::default().command("git handoff claim 7.1"),
            "git handoff claim 7.1"
        );
    }

    #[test]
    fn a_program_without_the_agents_room_names_no_prime() {
        let begin = if cfg!(feature = "agents") {
            "git handoff prime --as prime"
        } else {
            "git handoff inbox --as prime"
        };
        let command = Carried::default().command("git handoff prime --as prime");
        assert_eq!(command, begin);
    }

    #[test]
    fn a_branch_that_was_named_goes_with_each_command_on_a_ledger() {
        let on_branch = Carried {
            branch: Some("work".to_owned()),
            ..carried()
        };
        let sentence = |text: &str| on_branch.sentence(text.into()).to_string();
        assert_eq!(
            sentence("see `git handoff show 7.1`, or `git handoff explain x`; `git log`"),
            "see `git handoff show 7.1 --branch work`, or `git handoff explain x`; `git log`"
        );
        // A backtick in a quoted name does not end the command.
        let foreign = "see `git diff 'a`git handoff extend 7`b'`, `git handoff show 7.1`";
        assert_eq!(
            sentence(foreign),
            format!("{} --branch work`", foreign.trim_end_matches('`'))
        );
        assert_eq!(
            sentence("claim it: `git handoff claim 7.1`"),
            "claim it: `git handoff claim 7.1 --as fixer --worker tree-1 --branch work`"
        );
    }
}
