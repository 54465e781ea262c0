use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::text::{continued, word};
use handoff::git::{LEFT_OUT, Obstacle, Repository};
use handoff::ledger::{AuditScope, Ledger, LedgerError, Snapshot, WriteError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::AskArgs;
#[cfg(feature = "agents")]
use crate::commands::agents;
use crate::commands::{hooks, status, verify};
use crate::context::Context;
use crate::environment::{self, now};
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output, counted, counted_as};
use crate::view::Look;

/// The maximum number of faults listed of one kind.
const EACH: usize = 5;

/// Say what is wrong with this clone, its remote, its ledger, hooks, harnesses and clocks, and what cures it
///
/// One line for each fault, the worst first, with the command that cures it. Writing is tried; nothing is changed. History is audited from
/// the last commit that this clone verified on; `--full` audits all of it. Exits 1 if anything is wrong.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff doctor")]
pub(crate) struct Arguments {
    /// Audit all of history
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    asks: AskArgs,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Weight {
    /// work or the record of it is at stake
    Error,
    /// something does not go on, or will not
    Warning,
    /// somebody has to know
    Note,
}

/// A fault.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DoctorFault")]
struct Fault {
    /// how bad it is
    weight: Weight,
    /// where: `git`, `ledger`, `remote`, `work`, `clock`, `hooks` or `harness`
    place: &'static str,
    /// what is wrong
    what: String,
    /// the command that cures it, with what to know of it
    cure: String,
}

/// What helps where the branch of the ledger's name never was one.
const NO_LEDGER: &str = "it never was one: name the ledger's branch with --branch, or start one on another branch: `git handoff init --branch NAME`";

/// The faults and their cures.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Doctor")]
pub(crate) struct DoctorView {
    /// each fault, the worst first
    faults: Vec<Fault>,
}

impl Answer for DoctorView {
    fn text(&self, _: &Look) -> String {
        if self.faults.is_empty() {
            return "nothing is wrong\n".to_owned();
        }
        let line = |fault: &Fault| {
            let weight = match fault.weight {
                Weight::Error => "error",
                Weight::Warning => "warning",
                Weight::Note => "note",
            };
            let (what, cure) = (continued(&fault.what), continued(&fault.cure));
            format!("{weight} {}: {what}\n    {cure}\n", fault.place)
        };
        self.faults.iter().map(line).collect()
    }
}

#[derive(Default)]
struct Found(Vec<Fault>);

impl Found {
    fn add(&mut self, weight: Weight, place: &'static str, what: String, cure: impl Into<String>) {
        self.0.push(Fault {
            weight,
            place,
            what,
            cure: cure.into(),
        });
    }

    /// Adds the fault that a place can't be examined.
    fn failed(&mut self, place: &'static str, failure: &Failure) {
        let cure = failure.next().to_string();
        self.add(Weight::Error, place, failure.message.clone(), cure);
    }

    /// Adds one fault per code of these findings, worded by the first.
    fn findings(
        &mut self,
        place: &'static str,
        findings: &[Finding],
        cure: impl Fn(&Finding) -> String,
    ) {
        let mut codes: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
        for finding in findings.iter().filter(|finding| finding.is_error()) {
            codes
                .entry(finding.code.as_str())
                .or_default()
                .push(finding);
        }
        for (code, all) in codes {
            let first = all[0];
            let commit = first.commit.as_deref().map(|id| &id[..id.len().min(10)]);
            let commit = commit.map(|id| format!(" at {id}")).unwrap_or_default();
            let more = match all.len() {
                1 => String::new(),
                n => format!(", and {} more", n - 1),
            };
            let path = match first.path.as_str() {
                "" => String::new(),
                path => format!(" {path}"),
            };
            let what = format!("{code}{commit}{path}: {}{more}", first.message);
            self.add(Weight::Error, place, what, cure(first));
        }
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let mut found = Found::default();
        let fresh = context.fresh(&repository, self.asks.offline, output);
        match fresh {
            Ok(reading) => {
                let trouble = reading.fresh.as_ref().filter(|fresh| !fresh.is_answered());
                if let Some((fresh, text)) = trouble.and_then(|fresh| Some((fresh, fresh.text()?)))
                {
                    let (weight, cure) = match fresh.fault() {
                        Some(_) => (Weight::Error, "`git handoff fetch` says what to do"),
                        None => (
                            Weight::Warning,
                            "`git handoff fetch` says more; what is recorded meanwhile is sent later",
                        ),
                    };
                    found.add(weight, "remote", text, cure);
                }
                if let Err(failure) = self.ledger(&reading.ledger, &mut found) {
                    found.failed("ledger", &failure);
                }
                if let Err(failure) = work(&reading.tip, &repository, output, &mut found) {
                    found.failed("work", &failure);
                }
            }
            Err(failure) => self.unreadable((context, &repository), failure, &mut found)?,
        }
        if let Err(failure) = context.worker(&repository) {
            found.failed("git", &failure);
        }
        match context.ledger(&repository) {
            Ok(ledger) => writes(&repository, &ledger, &mut found),
            Err(failure) => found.failed("ledger", &failure),
        }
        match hooks::faults(&repository) {
            Ok(faults) => {
                let missing = [FindingCode::HookMissing, FindingCode::HookNotShell];
                let is_missing = |one: &Finding| missing.contains(&one.code);
                let (missing, faults): (Vec<_>, Vec<_>) = faults.into_iter().partition(is_missing);
                found.findings("hooks", &faults, |_| {
                    "`git handoff hooks status` says which; `git handoff hooks install` puts them right".to_owned()
                });
                for one in missing {
                    let what = format!("{} {}: {}", one.code, one.path, one.message);
                    found.add(Weight::Note, "hooks", what, one.fix.unwrap_or_default());
                }
            }
            Err(failure) => found.failed("hooks", &failure),
        }
        #[cfg(feature = "agents")]
        if repository.workdir().is_some() {
            match agents::faults(context, &repository) {
                Ok(faults) => found.findings("harness", &faults, |finding| {
                    let fix = finding.fix.as_ref().map(|fix| format!("; {fix}"));
                    format!(
                        "`git handoff agents doctor` says which{}",
                        fix.unwrap_or_default()
                    )
                }),
                Err(failure) => found.failed("harness", &failure),
            }
        }
        let mut faults = found.0;
        faults.sort_by_key(|fault| fault.weight);
        let is_wrong = faults.iter().any(|fault| fault.weight != Weight::Note);
        for fault in &mut faults {
            fault.cure = output.sentence(fault.cure.as_str()).to_string();
        }
        let view = DoctorView { faults };
        if is_wrong && output.is_json() {
            let count = counted(view.faults.len(), "fault");
            let failure = Failure::new(ErrorCode::Faults, count);
            return Err(failure.hint("each has its `cure`").data(&view));
        }
        output.answer(&view)?;
        if is_wrong {
            return Err(Failure::reported(exit::NO));
        }
        Ok(())
    }

    /// Adds why the ledger can't be read, and what is wrong with it as far as it can.
    fn unreadable(
        &self,
        (context, repository): (&Context, &Repository),
        mut failure: Failure,
        found: &mut Found,
    ) -> Result<(), Failure> {
        context.may_be_elsewhere(&mut failure, self.asks.offline);
        let ledger = context.ledger(repository)?;
        let tip = ledger.tip_id()?;
        let is_no_ledger = tip.map(|tip| ledger.never_was_a_ledger(tip)).transpose()?;
        if is_no_ledger == Some(true) {
            failure.hint = Some(NO_LEDGER.into());
        }
        found.failed("ledger", &failure);
        if is_no_ledger != Some(true)
            && let Err(second) = self.ledger(&ledger, found)
            && second.message != failure.message
        {
            found.failed("ledger", &second);
        }
        Ok(())
    }

    /// Adds the faults of the ledger and of this clone's copy.
    fn ledger(&self, ledger: &Ledger<'_>, found: &mut Found) -> Result<(), Failure> {
        let scope = AuditScope {
            since: ledger.verified().filter(|_| !self.full),
            ..AuditScope::whole(environment::system_time())
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let audit = ledger.audit(scope, threads, false)?;
        let is_left_out = |finding: &Finding| finding.code == FindingCode::ObjectLeftOut;
        let (left_out, faults): (Vec<_>, Vec<_>) =
            audit.findings.into_iter().partition(is_left_out);
        if !left_out.is_empty() {
            let what = "parts of it are not in this clone, and cannot be verified here";
            found.add(Weight::Note, "ledger", what.to_owned(), LEFT_OUT);
        }
        found.findings("ledger", &faults, |finding| {
            let rest = "write nothing, and compare with another clone: `git handoff verify` has all of it; `git handoff help recovery.md`";
            let cure = || verify::cure(finding, ledger).map(|cure| cure.to_string());
            finding.fix.clone().or_else(cure).unwrap_or_else(|| rest.to_owned())
        });
        let rejected = ledger.rejected()?.len();
        if rejected > 0 {
            let what = format!(
                "{} refused",
                counted_as(rejected, "step", [" made here was", "s made here were"])
            );
            let cure = "`git handoff refused` lists them: retry or drop each";
            found.add(Weight::Warning, "remote", what, cure);
        }
        for code in ledger.unpushed_code(&ledger.tip()?)? {
            let (what, cure) = status::unpushed(&code);
            found.add(Weight::Warning, "remote", what, cure);
        }
        if let Some(beside) = ledger.beside_remote()? {
            let (own, remote) = (beside.unpublished, &beside.remote);
            if own > 0 {
                let what = format!("{} not on {remote}", counted(own, "commit"));
                found.add(
                    Weight::Warning,
                    "remote",
                    what,
                    "`git handoff sync` brings them there",
                );
            }
        }
        Ok(())
    }
}

/// Adds what no step could be written to: a branch that is checked out, a lock that stays, and one
/// fault for each reason.
fn writes(repository: &Repository, ledger: &Ledger<'_>, found: &mut Found) {
    let refname = ledger.refname();
    if let Err(error) = ledger.ensure_not_checked_out() {
        found.failed("git", &error.into());
    }
    // A push that is killed leaves the lock of the ref by which git follows the remote.
    let locks = ledger.refnames().into_iter();
    let mut locks: Vec<PathBuf> = locks
        .filter_map(|name| repository.left_lock(&name))
        .collect();
    locks.dedup();
    for lock in locks {
        found.failed("git", &LedgerError::from(WriteError::Locked(lock)).into());
    }
    let mut seen = Vec::new();
    let failed = repository.unwritable(refname);
    for (path, error) in &failed {
        let obstacle = Obstacle::of(error);
        if seen.contains(&obstacle) {
            continue;
        }
        seen.push(obstacle);
        let unknown = (
            "a file can't be written",
            "check permissions and free space",
        );
        let (problem, fix) = Obstacle::explained(obstacle, unknown);
        let alike = failed
            .iter()
            .filter(|(_, error)| Obstacle::of(error) == obstacle);
        let more = match alike.count() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let shown = path.display();
        let what = format!("{problem}: {shown}: {error}{more}");
        let path = word(&shown.to_string()).into_owned();
        let cure = match obstacle {
            Some(Obstacle::Denied) => format!(
                "`ls -ld {path}` shows whose it is: if yours, `chmod -R u+w {path}`; else run as that user, or have its owner give it to yours: `chown -R USER {path}`"
            ),
            _ => format!("{fix}: `df {path}`"),
        };
        found.add(Weight::Error, "git", what, cure);
    }
}

/// Adds stalled work, with who must act on it.
fn work(
    tip: &Snapshot<'_>,
    repository: &Repository,
    output: &Output,
    found: &mut Found,
) -> Result<(), Failure> {
    let now = now()?;
    let (records, mut attention, _) = status::needs(tip, now)?;
    let recorded = repository.commit(tip.commit()).ok();
    let recorded = recorded.map(|commit| (commit.committer.at.to_utc(), "log -n 1".to_owned()));
    // Look at every handoff: a step from a wrong clock may be followed by correctly dated ones.
    let changed = records.iter().filter_map(|record| {
        let log = format!("log {}", record.id.issue());
        Some((record.latest()?.at.to_utc(), log))
    });
    if let Some((at, log)) = changed.chain(recorded).max()
        && let ahead = (at - now.to_utc()).num_seconds()
        && ahead > 60
    {
        let what = format!("a step is dated {ahead} s after this machine's clock");
        let cure = format!(
            "set the clock that is wrong, here or where that step was made: `git handoff {log}`"
        );
        found.add(Weight::Warning, "clock", what, cure);
    }
    output.complete(&mut attention);
    let mut expired = 0;
    for record in records.iter().filter(|record| record.is_expired(now)) {
        expired += usize::from(!tip.is_paused_for(record.id.issue(), &record.to)?);
    }
    if expired > 0 {
        let what = format!(
            "{} ran out of time, which nobody recorded",
            counted(expired, "handoff")
        );
        found.add(
            Weight::Warning,
            "work",
            what,
            "`git handoff reap` records it",
        );
    }
    for one in attention.iter().take(EACH) {
        let what = format!(
            "{} {}, {}'s turn: {}",
            one.id,
            one.need.as_str(),
            one.turn,
            one.why
        );
        found.add(Weight::Warning, "work", what, format!("`{}`", one.next));
    }
    let paused = tip.paused_among(records.iter().map(|record| record.id.issue()))?;
    // An order is no fault.
    for (key, paused) in paused.iter().filter(|(_, paused)| paused.after.is_empty()) {
        let cure = format!("`{}`", paused.resume(key, "WHY"));
        found.add(
            Weight::Warning,
            "work",
            format!("issue {key} is {paused}"),
            cure,
        );
    }
    if let Some(more) = attention.len().checked_sub(EACH).filter(|more| *more > 0) {
        let what = format!("{} more", counted(more, "handoff"));
        found.add(
            Weight::Warning,
            "work",
            what,
            "`git handoff status --limit 0` lists them",
        );
    }
    Ok(())
}
