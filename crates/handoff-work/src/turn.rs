//! A piece of work's part in the protocol's turns: whether its agent merges, and the contract for a
//! conflict.

use handoff::base::ids::AgentName;
use handoff::base::text::quoted;
use handoff::ledger::Snapshot;
use serde_json::Value;

/// The maximum number of files in conflict that are named.
pub(super) const NAMED: usize = 50;

/// A piece of work's part in merges (`limits.turns` of its protocol).
#[derive(Clone, Debug, Default)]
pub(super) struct Merging {
    /// Whether its agent merges into the base.
    pub(super) merges: bool,
    /// Whether it was sent because of a conflict.
    pub(super) is_conflict: bool,
    /// The contract for a conflict.
    pub(super) conflict: Option<Conflict>,
}

/// A contract about a conflict.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub(super) kind: String,
    pub(super) to: String,
    /// The fields that mark it as a conflict, by path as in `--set`.
    fields: Vec<(String, String)>,
    /// The list of problems, and the text field of its entries.
    list: (String, String),
}

impl Merging {
    pub(super) fn of(tip: &Snapshot<'_>, claimed: &Value, agent: &AgentName) -> Self {
        let text = |at: &str| claimed.pointer(at).and_then(Value::as_str);
        let Ok(rules) = tip.rules(text("/record/protocol").unwrap_or_default()) else {
            return Self::default();
        };
        let protocol = rules.protocol();
        let limits = protocol.definition().limits.as_ref();
        let Some((limits, turns)) = limits.and_then(|all| Some((all, all.turns.as_ref()?))) else {
            return Self::default();
        };
        let round = turns.kept_through.as_ref();
        let round = round.and_then(|name| limits.rounds.get(name));
        let kind = round.and_then(|round| round.contracts.first());
        let conflict = kind.and_then(|kind| {
            let mut routes = protocol.routes_from(turns.agent.as_str());
            let raised = protocol.contract_type(kind)?.raises.as_ref()?;
            let fields = round.into_iter().flat_map(|round| &round.when);
            let fields = fields
                .filter_map(|(at, words)| Some((field(at), words.texts().first()?.to_owned())));
            Some(Conflict {
                kind: kind.clone(),
                to: routes
                    .find(|route| route.contracts.contains(kind))?
                    .to
                    .to_string(),
                fields: fields.collect(),
                list: (field(&raised.list), field(&raised.text)),
            })
        });
        let given = text("/record/contract_type").or(text("/handoff/contract_type"));
        Self {
            merges: turns.agent == *agent,
            is_conflict: kind.map(String::as_str) == given,
            conflict,
        }
    }
}

/// Converts a JSON Pointer to a path for `--set`.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

impl Conflict {
    /// The fields of a contract about conflicts in these files.
    pub(super) fn filled(&self, files: &[String], what: &str) -> Vec<String> {
        let (list, entry) = (&self.list.0, &self.list.1);
        let first = format!("{list}.0.");
        let mut all = Vec::new();
        for (at, file) in files.iter().take(NAMED).enumerate() {
            for (name, word) in &self.fields {
                match name.strip_prefix(&first) {
                    Some(name) => all.push(format!("{list}.{at}.{name}={word}")),
                    None if at == 0 => all.push(format!("{name}={word}")),
                    None => {}
                }
            }
            let more = files.len().saturating_sub(NAMED);
            let more = match more {
                1 if at + 1 == NAMED => "; so does 1 more file".to_owned(),
                2.. if at + 1 == NAMED => format!("; so do {more} more files"),
                _ => String::new(),
            };
            let file = quoted(file);
            all.push(format!("{list}.{at}.{entry}={file}: {what}{more}"));
        }
        all
    }
}
