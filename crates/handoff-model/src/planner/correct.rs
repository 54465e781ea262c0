//! Retrying a failed handoff with a corrected contract: a new handoff replaces it and continues its
//! count of attempts.

use handoff_base::digest;
use handoff_base::ids::AgentName;
use handoff_protocol::{ContractType, Event, State, Style};

use crate::planner::findings::undo;
use crate::planner::send::expect_answer;
use crate::planner::{Planner, illegal};
use crate::record::{Issue, Record, View};
use crate::refusal::{Refusal, RetryRefusal};
use crate::step::{EventArgs, Planned, SendRequest, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Sends a corrected contract in place of a failed handoff's.
    pub(super) fn correct(
        &self,
        issue: Option<Issue>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
        number: u32,
    ) -> Result<Planned, Stop<E>> {
        let contract = send.contract;
        let mut issue = issue.ok_or_else(|| Refusal::no_issue(self.key))?;
        let mut failed = self.record(&self.id(number))?;
        let sent = self.view.sent_before(&contract.bytes);
        for earlier in sent.map_err(Stop::Unreadable)? {
            let earlier = self.record(&self.id(earlier))?;
            if earlier.replaces.as_ref() == Some(&failed.id) {
                let receipt = self.repeated(earlier, issue);
                return Ok(Planned::Repeat(Box::new(receipt)));
            }
        }
        self.ensure_open(&issue)?;
        if let Some(why) = unfit(send, kind, from, &failed) {
            let id = failed.id.clone();
            return Err(RetryRefusal::NotCorrectable { id, why }.into());
        }
        let none = EventArgs::default();
        self.ensure_allowed(&issue, &failed, Event::Retry, &none)?;
        let retried = failed.state.on(Event::Retry);
        retried.map_err(|refused| illegal(&failed, refused))?;
        let basis = match &failed.follows {
            Some(id) => Some(self.record(id)?),
            None => None,
        };
        self.fits_basis(kind, contract, basis.as_ref())?;
        undo(&mut issue.findings, &failed, true);
        self.follow_findings(&mut issue, kind, contract)?;
        self.take_id(&mut issue, contract);

        // It waits as long as a retry of the same contract would, without a random part.
        let retry = Record {
            attempt: failed.attempt + 1,
            ..failed.clone()
        };
        let not_before = self.not_before(&retry, &none);
        let id = self.id(issue.handoffs + 1);
        self.advance(&mut failed, Event::Cancel, Some(&id), &none)?;
        let violations = self.violations(kind, contract, from);
        let named = contract.to.clone().unwrap_or_else(|| failed.to.clone());
        let to = self.first_receiver(from, &named, &contract.kind, &violations);
        let mut new = self.begin(&mut issue, send, basis.as_ref(), to, State::Pending)?;
        self.report_usage(&mut new)?;
        new.intended = (new.to != named && violations.is_empty()).then_some(named);
        new.violations = violations;
        new.follows.clone_from(&failed.follows);
        new.replaces = Some(failed.id.clone());
        new.attempt = retry.attempt;
        new.redriven_at = failed.redriven_at;
        new.not_before = not_before;
        if self.protocol.definition().style() == Style::Call {
            expect_answer(&mut new, kind, contract);
        }
        let account = self.corrected_account(&new, kind, contract);
        self.written(issue, vec![failed, new], send, &account)
    }
}

/// Why a contract can't replace that of a failed handoff.
fn unfit(
    send: &SendRequest<'_>,
    kind: &ContractType,
    from: &AgentName,
    failed: &Record,
) -> Option<String> {
    let contract = send.contract;
    let receivers = [Some(&failed.to), failed.intended.as_ref()];
    if *from != failed.from {
        return Some(format!(
            "it is from {}, and this is from {from}",
            failed.from
        ));
    }
    if contract.kind != failed.contract_type {
        let (is, this) = (&failed.contract_type, &contract.kind);
        return Some(format!("its contract is `{is}`, and this is `{this}`"));
    }
    if let Some(to) = contract
        .to
        .as_ref()
        .filter(|to| !receivers.contains(&Some(to)))
    {
        return Some(format!("it is for {}, and this is for {to}", failed.to));
    }
    if contract.id != failed.contract_id {
        return Some("a corrected contract keeps its own id".to_owned());
    }
    if failed.contract.sha256 == digest(&contract.bytes) {
        return Some("this is the contract that failed, byte for byte".to_owned());
    }
    let tasks = kind.tasks.is_some() || failed.task.is_some() || !failed.parts.is_empty();
    tasks.then(|| "what belongs to a plan of tasks keeps its contract".to_owned())
}
