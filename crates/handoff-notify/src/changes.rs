//! Compares what needs attention now with the notices that were sent.

use std::collections::BTreeMap;

use handoff::base::ids::HandoffId;
use handoff::ledger::attention::Attention;

use super::notice::Notice;
use super::told::Known;

/// The notices to send now: first of settled needs, then of new and changed ones, the most urgent
/// first.
pub(super) fn between(
    told: &BTreeMap<HandoffId, Known>,
    mut now: Vec<Attention>,
    ledger: &str,
) -> Vec<Notice> {
    now.sort_by(|a, b| (a.need, a.since, &a.id).cmp(&(b.need, b.since, &b.id)));
    // If the same need began later than noted, it is a new one, and the noted one is settled.
    let goes_on = |known: &Notice, found: &Attention| {
        known.about.need != found.need || known.about.since == found.since
    };
    let found = |id: &HandoffId| now.iter().find(|found| found.id == *id);
    let over = told
        .values()
        .map(|known| &known.notice)
        .filter(|known| found(&known.about.id).is_none_or(|found| !goes_on(known, found)));
    let mut events: Vec<Notice> = over.map(Notice::settled).collect();
    for found in &now {
        let new = Notice::opened(found, ledger);
        let known = told.get(&found.id);
        match known.filter(|known| goes_on(&known.notice, found)) {
            Some(known) if known.notice.says(&new) && !known.notice.is_settled() => {
                // A delivery with an unknown result is repeated, with the same id.
                events.extend(known.unsure.then(|| known.notice.clone()));
            }
            Some(known) => events.push(new.updating(&known.notice)),
            None => events.push(new),
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use handoff::base::Moment;
    use handoff::protocol::Need;

    use super::*;

    fn at(second: u32) -> Moment {
        let text = format!("2026-05-01T10:00:{second:02}Z");
        text.parse().expect("a moment")
    }

    fn attention(id: &str, need: Need, since: u32, why: &str) -> Attention {
        let agent = "fixer-agent".parse().expect("a name");
        Attention {
            issue: "7".parse().expect("a key"),
            title: "Titles become slugs".to_owned(),
            id: id.parse().expect("an id"),
            need,
            with: "fixer-agent".parse().expect("a name"),
            turn: "maintainer".parse().expect("a name"),
            told: vec![agent],
            since: at(since),
            why: why.to_owned(),
            attempt: 1,
            next: "git handoff next 7".to_owned(),
            read: None,
            by: None,
            takes_nothing: false,
        }
    }

    /// Delivers each event, and returns them in short.
    fn step(told: &mut BTreeMap<HandoffId, Known>, now: Vec<Attention>) -> Vec<String> {
        let events = between(told, now, "urn:uuid:1");
        let short = events.iter().map(|one| {
            format!(
                "{} {} {} {}",
                one.event.as_str(),
                one.notice,
                one.about.need.as_str(),
                one.about.why
            )
        });
        let short: Vec<String> = short.collect();
        for event in events {
            if event.is_settled() {
                told.remove(&event.about.id);
            } else {
                told.insert(event.about.id.clone(), Known::of(event, None));
            }
        }
        short
    }

    #[test]
    fn each_need_is_told_once_and_withdrawn_once() {
        let told = &mut BTreeMap::new();
        let blocked = || attention("7.2", Need::Blocked, 1, "which port?");
        let dead = || attention("8.1", Need::Dead, 2, "it does not build");
        assert_eq!(
            step(told, vec![blocked(), dead()]),
            [
                "opened 8.1@2026-05-01T10:00:02.000Z dead it does not build",
                "opened 7.2@2026-05-01T10:00:01.000Z blocked which port?",
            ]
        );
        assert_eq!(step(told, vec![dead(), blocked()]), [""; 0]);
        // Answered meanwhile.
        assert_eq!(
            step(told, vec![dead()]),
            ["settled 7.2@2026-05-01T10:00:01.000Z blocked which port?"]
        );
        assert_eq!(step(told, vec![dead()]), [""; 0]);
        // It failed again meanwhile: another notice about the same handoff.
        let again = attention("8.1", Need::Dead, 9, "it does not link");
        assert_eq!(
            step(told, vec![again]),
            [
                "settled 8.1@2026-05-01T10:00:02.000Z dead it does not build",
                "opened 8.1@2026-05-01T10:00:09.000Z dead it does not link",
            ]
        );
        assert_eq!(step(told, Vec::new()).len(), 1);
        assert_eq!(step(told, Vec::new()), [""; 0]);
    }

    #[test]
    fn what_may_have_arrived_goes_again_or_is_settled() {
        let told = &mut BTreeMap::new();
        let blocked = || attention("7.2", Need::Blocked, 1, "which port?");
        let first = between(told, vec![blocked()], "urn:uuid:1").remove(0);
        let unsure = Known {
            unsure: true,
            ..Known::of(first.clone(), None)
        };
        told.insert(first.about.id.clone(), unsure);
        let again = between(told, vec![blocked()], "urn:uuid:1");
        assert_eq!(again, std::slice::from_ref(&first), "the same delivery");
        let over = between(told, Vec::new(), "urn:uuid:1");
        assert_eq!((over.len(), over[0].event.as_str()), (1, "settled"));
    }

    #[test]
    fn another_reason_updates_the_notice() {
        let told = &mut BTreeMap::new();
        step(told, vec![attention("7.2", Need::LeaseEnding, 1, "a")]);
        let late = || attention("7.2", Need::LeaseRanOut, 5, "a");
        assert_eq!(
            step(told, vec![late()]),
            ["updated 7.2@2026-05-01T10:00:01.000Z lease_ran_out a"]
        );
        assert_eq!(step(told, vec![late()]), [""; 0]);
        assert_eq!(
            step(told, Vec::new()),
            ["settled 7.2@2026-05-01T10:00:01.000Z lease_ran_out a"]
        );
    }

    #[test]
    fn what_looks_like_a_secret_is_not_told() {
        let secret = ["ghp_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
        let why = format!("the token {secret}\u{1b}[31m expired");
        let notice = Notice::opened(&attention("7.2", Need::Dead, 1, &why), "urn:uuid:1");
        let told = serde_json::to_string(&notice).expect("it is JSON");
        assert!(
            !told.contains(&secret[..12]) && !told.contains('\u{1b}'),
            "{told}"
        );
        assert!(notice.text.contains("expired"));
    }
}
