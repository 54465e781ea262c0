//! Reads from the message of a step who asked for what, as the ledger's audit does.

use handoff::model::{Request, View};

use super::act::{Act, Asked, Sending};
use super::invariants::Taken;

/// The request of a step, which is the one that was made.
///
/// # Errors
/// If the message has no step, or another one.
pub(crate) fn recorded(taken: &Taken<'_>) -> Result<Act, String> {
    let message = &taken.step.message;
    let step = handoff::model::recorded(message).map_err(|e| e.to_string())?;
    let made = taken.act.step().canonical();
    if step != made {
        return Err(format!("{step:?}\nis not\n{made:?}\nin\n{message}"));
    }
    let asked = match step.request {
        Request::Update(update) => Asked::Update(update),
        Request::Send(options) => {
            let number = taken.before.issue.as_ref().map_or(0, |i| i.handoffs) + 1;
            let Ok(record) = taken.after.record(number);
            let record = record.ok_or("no record")?;
            let Ok(bytes) = taken.after.contract(&record);
            Asked::Send(Box::new(Sending {
                bytes: bytes.to_vec(),
                code: record.code,
                answers: options.answers,
                replaces: options.replaces,
                token: options.token,
            }))
        }
    };
    Ok(Act {
        agent: step.by,
        worker: step.worker,
        at: step.at,
        traceparent: step.traceparent,
        usage: step.usage,
        delivery: step.delivery,
        asked,
    })
}
