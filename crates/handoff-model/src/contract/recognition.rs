//! Recognizes files that are meant as contracts, by their root or their distinctive fields. They
//! may have any fault, because a check is to find it.

use handoff_contract::{Format, Outline};
use handoff_protocol::{ContractType, Protocol, Words};

/// Whether a file looks like a contract of this protocol.
pub fn is_contract_of(protocol: &Protocol, outline: &Outline<'_>) -> bool {
    let definition = protocol.definition();
    let format = outline.format().extension();
    if !definition.formats.iter().any(|known| known == format) {
        return false;
    }
    let mut types = definition
        .contracts
        .iter()
        .filter(|kind| kind.has_format(format));
    types.any(|kind| {
        let is_rooted = outline.root() == Some(kind.root.as_str());
        match outline.format() {
            Format::Xml => is_rooted,
            Format::Json => is_rooted || has_fields(protocol, kind, outline),
            // No other Markdown starts like a message.
            Format::Markdown => true,
        }
    })
}

/// Whether a JSON document has a type's sender and receiver, or so much of its envelope that it
/// can't be another kind of file.
fn has_fields(protocol: &Protocol, kind: &ContractType, outline: &Outline<'_>) -> bool {
    let read = |at: Option<&str>| at.and_then(|at| outline.probe(at));
    let parties = [
        read(protocol.field(kind, |f| &f.from)),
        read(protocol.field(kind, |f| &f.to)),
    ];
    let named = parties.iter().flatten();
    let agents = named.filter(|name| protocol.agent(name).is_some()).count();
    let others = || {
        let all = [
            protocol.field(kind, |f| &f.id),
            protocol.field(kind, |f| &f.issue),
            protocol.field(kind, |f| &f.status),
            protocol.field(kind, |f| &f.at),
            protocol.field(kind, |f| &f.priority),
            protocol.field(kind, |f| &f.title),
            protocol.field(kind, |f| &f.summary),
        ];
        let all = all
            .into_iter()
            .filter(|at| at.is_some_and(|at| outline.probe(at).is_some()));
        all.count()
    };
    let has_when = || {
        let mut fields = kind.when.iter();
        let has = |(at, words): (&String, &Words)| {
            outline.probe(at).is_some_and(|text| words.accept(&text))
        };
        !kind.when.is_empty() && fields.all(has)
    };
    // `*` matches any value, so it identifies nothing.
    let any = |words: &Words| words.texts().iter().any(|word| word == "*");
    let is_told_apart = || has_when() && !kind.when.values().any(any);
    match agents {
        0 if parties.iter().any(Option::is_some) => others() > 2 || is_told_apart() && others() > 0,
        0 => kind.implied_from.is_some() && kind.implied_to.is_some() && others() > 2,
        1 => has_when() || others() > 0,
        _ => true,
    }
}
