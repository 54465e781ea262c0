//! The wrapper around a contract: an XML root, a member, or a message.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::escaped_part;
use handoff_base::text::quoted;
use handoff_contract::{Format, Source};
use handoff_protocol::Protocol;

/// A document's wrapper.
pub struct Opened {
    /// The XML root element, or the key of a wrapped JSON contract.
    pub(super) root: Option<String>,
    /// The member that holds the contract.
    pub wrapper: Option<String>,
    /// The contract's own format.
    pub(super) format: &'static str,
    /// Whether a message contains a whole contract.
    pub(super) embedded: bool,
}

/// The section of a Markdown message that may hold a whole contract.
const EMBEDDED: &str = "handoff_data";

impl Opened {
    /// Locates the contract in a document, by the protocol's roots and fields.
    pub fn new(protocol: &Protocol, source: &Source) -> Self {
        let root = source.root(&protocol.roots());
        let fields = &protocol.definition().fields;
        let mut parties = [&fields.from, &fields.to].into_iter().flatten();
        let embedded = source.format() == Format::Markdown
            && parties.any(|at| source.probe(None, &format!("/{EMBEDDED}{at}")).is_some());
        let wrapper = match source.format() {
            Format::Json => root.clone(),
            Format::Markdown if embedded => Some(EMBEDDED.to_owned()),
            Format::Markdown | Format::Xml => None,
        };
        let format = if embedded {
            Format::Json
        } else {
            source.format()
        };
        Self {
            root,
            wrapper,
            format: format.extension(),
            embedded,
        }
    }
}

/// Findings for a JSON contract in the wrong place: in a member with another name or with siblings,
/// or in nested wrappers.
pub(super) fn wrapped_wrong(
    protocol: &Protocol,
    source: &Source,
    wrapper: Option<&str>,
) -> Vec<Finding> {
    let fields = &protocol.definition().fields;
    let own = protocol.definition().contracts.iter().map(|c| &c.fields);
    let parties: Vec<&String> = std::iter::once(fields)
        .chain(own)
        .flat_map(|fields| [&fields.from, &fields.to])
        .flatten()
        .collect();
    let named = |inside: &str| {
        let mut pointers = parties.iter().map(|field| format!("{inside}{field}"));
        pointers.any(|pointer| source.probe(wrapper, &pointer).is_some())
    };
    if source.format() != Format::Json || named("") {
        return Vec::new();
    }
    let members = source.members(wrapper);
    let holder = members.iter().find(|(key, is_object)| {
        *is_object && !key.contains(['/', '~']) && named(&format!("/{key}"))
    });
    let Some(&(holder, _)) = holder else {
        return Vec::new();
    };
    let roots = protocol.roots();
    if wrapper.is_some() {
        let finding = Finding::error(
            FindingCode::ContractRoot,
            format!("/{holder}"),
            "the contract is wrapped twice",
        );
        return vec![finding.fix(format!("remove one {}", quoted(holder)))];
    }
    if !roots.contains(&holder) {
        let text = format!(
            "the contract is in {}, which is not a root that protocol {} has",
            quoted(holder),
            protocol.name()
        );
        let finding = Finding::error(FindingCode::ContractRoot, format!("/{holder}"), text);
        return vec![finding.fix(format!("use one of: {}", roots.join(", ")))];
    }
    let beside = members.iter().filter(|(key, _)| *key != holder);
    beside
        .map(|(key, _)| {
            let pointer = format!("/{}", escaped_part(key));
            let text = format!(
                "nothing may stand beside {}, which holds the contract",
                quoted(holder)
            );
            Finding::error(FindingCode::ContractRoot, pointer, text)
                .fix("move it inside or remove it")
        })
        .collect()
}
