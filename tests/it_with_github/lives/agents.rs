//! What the agents do, in their clone, in the order in which they do it.

use test_support::contracts::{Format, sample};

use super::{ISSUE, Life};

impl Life {
    /// Whether the agents have named a pull request, which stays theirs.
    pub(super) fn is_told_of_a_pull(&self) -> bool {
        !matches!(self.hub.model.turn, "prep-agent" | "implementer-agent")
    }

    /// The agent whose turn it is claims its work, or hands it on.
    pub(super) fn agent_acts(&mut self) {
        let agent = self.hub.model.turn;
        if agent.is_empty() {
            return;
        }
        if !self.hub.held {
            let ran = self.hub.env().claim("87", agent);
            self.log.push(format!("  {agent} claims: {}", ran.status));
            if ran.status == 0 {
                self.hub.held = true;
            } else {
                assert!(self.hub.model.was_ever_at_rest(ISSUE), "{}", ran.shown);
                assert!(ran.shown.contains("paused"), "{}", ran.shown);
            }
            return;
        }
        // A contract that names another pull request than the one that is known is refused; a fork's is, once merged.
        let pulls = self.hub.pulls.iter();
        let named = pulls.filter(|pull| !pull.is_fork || pull.merge_sha.is_some());
        if named.count() > 1 {
            self.deliver_all();
        }
        let Some((contract, next)) = self.contract(agent) else {
            return;
        };
        let name = contract
            .split('<')
            .find(|tag| tag.starts_with("to>"))
            .unwrap_or("workflow-complete");
        self.log.push(format!("  {agent} sends {name}"));
        let args = ["send", "-", "--json"];
        let ran = self.hub.env().handoff_with(&args, &contract);
        assert_eq!(ran.status, 0, "{}", ran.shown);
        let commit = ran.json()["data"]["commit"].as_str().map(str::to_owned);
        self.mail.acknowledged.extend(commit);
        self.hub.held = false;
        self.hub.model.turn = next;
        if next.is_empty() {
            self.hub.model.completed = Some(self.hub.env().now());
        }
    }

    /// What the agent sends, and whose turn it is then.
    fn contract(&mut self, agent: &str) -> Option<(String, &'static str)> {
        let pull = self
            .hub
            .own_pull()
            .map(|pull| (pull.number, pull.head.clone(), pull.merge_sha.clone()));
        let round = self.hub.id().to_string();
        let (name, next) = match agent {
            "prep-agent" => ("prep-agent-to-implementer-agent", "implementer-agent"),
            "implementer-agent" => ("implementer-agent-to-reviewer-agent", "reviewer-agent"),
            "reviewer-agent" if self.dice.percent(35) && self.hub.rounds < 4 => {
                ("reviewer-agent-to-fixer-agent", "fixer-agent")
            }
            "reviewer-agent" => ("reviewer-agent-to-validator-agent", "validator-agent"),
            "fixer-agent" => ("fixer-agent-to-reviewer-agent", "reviewer-agent"),
            "validator-agent" if pull.as_ref().is_some_and(|(.., merged)| merged.is_some()) => {
                ("validator-agent-to-closer-agent", "closer-agent")
            }
            "validator-agent" if self.dice.percent(20) && self.hub.rounds < 4 => {
                ("validator-agent-to-fixer-agent", "fixer-agent")
            }
            "closer-agent" => ("workflow-complete", ""),
            _ => return None,
        };
        if name != "prep-agent-to-implementer-agent" && pull.is_none() {
            return None;
        }
        let (number, head, merged) = pull.unwrap_or_default();
        let contract = sample(name, Format::Xml, 87)
            .replace("parcel-desk/pull/91", &format!("parcel-desk/pull/{number}"))
            .replace("quayside/parcel-desk", "owner/desk")
            .replace("<pr_number>91<", &format!("<pr_number>{number}<"))
            .replace(
                "<merge_sha>e60b8d1f7a2c<",
                &format!("<merge_sha>{}<", merged.unwrap_or_default()),
            )
            .replace(
                "nothing else blocks",
                &format!("nothing else blocks in round {round}"),
            )
            .replace("in batches of 500", &format!("in batches of {round}"));
        let names_commit = name.starts_with("reviewer-agent-");
        let of = format!("<reviewed_commit>{head}</reviewed_commit></handoff>");
        let contract = if names_commit {
            contract.replace("</handoff>", &of)
        } else {
            contract
        };
        let model = &mut self.hub.model;
        match name {
            "reviewer-agent-to-validator-agent" => model.approved = Some(head),
            "validator-agent-to-fixer-agent" => {
                // The objection is to what was approved, whatever was pushed since.
                model.objected = model.approved.take();
            }
            "validator-agent-to-closer-agent" | "workflow-complete" => {}
            _ => model.approved = None,
        }
        if next == "fixer-agent" {
            self.hub.rounds += 1;
        }
        Some((contract, next))
    }
}
