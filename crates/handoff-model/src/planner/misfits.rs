//! Collects every finding about a refused contract, so that one attempt shows them all.

use handoff_base::finding::Finding;
use handoff_base::ids::AgentName;
use handoff_protocol::ContractType;

use crate::contract::consistency::{self, Ground};
use crate::planner::Planner;
use crate::planner::answer_content::missing_answers;
use crate::planner::findings::answer_mismatches;
use crate::planner::holder::{Holder, held};
use crate::planner::tasks::task_mismatches;
use crate::record::View;
use crate::step::{SendRequest, Stop};

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Adds to a refusal what the other rules find: about tasks, facts of the issue, findings of
    /// its reviews, and questions to the sender.
    pub(super) fn with_every_misfit(
        &self,
        stop: Stop<E>,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
    ) -> Stop<E> {
        let mut refusal = match stop {
            // A correction takes back what the failed contract stated, which these checks can't
            // tell.
            Stop::Refused(refusal) if self.options().replaces.is_none() => refusal,
            other => return other,
        };
        if let Some(findings) = refusal.misfits() {
            match self.misfits(send, kind, from) {
                Ok(others) => {
                    let others = others.into_iter().filter(|other| !findings.contains(other));
                    let others: Vec<Finding> = others.collect();
                    findings.extend(others);
                }
                Err(unreadable @ Stop::Unreadable(_)) => return unreadable,
                // The first refusal is reported.
                Err(Stop::Refused(_)) => {}
            }
        }
        refusal.into()
    }

    fn misfits(
        &self,
        send: &SendRequest<'_>,
        kind: &ContractType,
        from: &AgentName,
    ) -> Result<Vec<Finding>, Stop<E>> {
        let Some(issue) = self.view.shared_issue().map_err(Stop::Unreadable)? else {
            return Ok(Vec::new());
        };
        let (contract, worker) = (send.contract, self.step.worker.as_ref());
        let holder = Holder {
            agent: from,
            worker,
        };
        let held = held(
            self.view,
            &issue,
            kind,
            contract,
            self.options().answers,
            holder,
        )?;
        let mut found = match &kind.tasks {
            Some(fields) => task_mismatches(&issue, fields, &fields.read(&contract.value), from),
            None => Vec::new(),
        };
        let ground = Ground {
            definition: self.protocol.definition(),
            issue: Some(&issue),
            view: self.view,
            worker,
            held: held.as_ref().filter(|_| contract.imported.is_none()),
            replaces: self.options().replaces,
            at: self.step.at,
            is_proved: self.step.delivery.is_some(),
        };
        let known = consistency::known(self.protocol, kind, &contract.value, &ground);
        let known = known.map_err(Stop::Unreadable)?.into_iter();
        found.extend(known.map(|broken| broken.finding));
        found.extend(answer_mismatches(self.protocol, &issue, kind, contract));
        if let Some(held) = &held {
            found.extend(missing_answers(
                self.view,
                self.protocol,
                kind,
                contract,
                held,
            )?);
        }
        Ok(found)
    }
}
