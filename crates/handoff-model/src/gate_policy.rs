//! What a gate asks, as a file outside the ledger: whoever writes to the ledger can't change it.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_protocol::Signers;
use serde::Deserialize;

/// What a gate asks.
#[derive(Debug, Default)]
pub struct GatePolicy {
    /// The protocol that the issue must follow; by default the ledger's.
    pub protocol: Option<AgentName>,
    /// The requirements; if empty, those that the protocol sets for a merge.
    pub require: Vec<String>,
    /// Whether each step of the issue must be signed with a listed key.
    pub signed: bool,
    /// The keys that count, in place of those that the ledger lists.
    pub signers: Option<Signers>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    #[serde(default)]
    protocol: Option<AgentName>,
    #[serde(default)]
    require: Vec<String>,
    #[serde(default)]
    signed: bool,
    /// Lines as in `allowed_signers`.
    #[serde(default)]
    signers: Option<Vec<String>>,
}

impl GatePolicy {
    /// Parses the file; a list of keys asks for signatures.
    ///
    /// # Errors
    /// Every fault: a file that is not understood opens no gate.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let fault = |text: String| vec![Finding::error(FindingCode::GatePolicy, "", text)];
        let stored: Stored = serde_json::from_slice(bytes)
            .map_err(|error| fault(format!("it is not a policy: {error}")))?;
        if stored.format != 1 {
            return Err(fault(format!("its format is {}, not 1", stored.format)));
        }
        let signers = stored.signers.map(|lines| {
            let (signers, mut found) = Signers::parse(lines.join("\n").as_bytes());
            if signers.is_empty() && found.is_empty() {
                let text = "the list of keys is empty";
                found.push(Finding::error(FindingCode::GatePolicy, "/signers", text));
            }
            (signers, found)
        });
        let signers = match signers {
            Some((_, found)) if !found.is_empty() => return Err(found),
            signers => signers.map(|(signers, _)| signers),
        };
        Ok(Self {
            protocol: stored.protocol,
            require: stored.require,
            signed: stored.signed || signers.is_some(),
            signers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::GatePolicy;

    #[test]
    fn a_policy_is_read_whole_or_refused() {
        let read = |text: &str| match GatePolicy::parse(text.as_bytes()) {
            Ok(policy) => format!(
                "{} {:?} {} {}",
                policy.protocol.map_or("-".to_owned(), |p| p.to_string()),
                policy.require,
                policy.signed,
                policy.signers.map_or(0, |s| s.iter().count()),
            ),
            Err(found) => found.iter().map(|f| f.code.to_string()).collect(),
        };
        let print = "0123456789ABCDEF0123456789ABCDEF01234567";
        assert_eq!(read(r#"{"format": 1}"#), "- [] false 0");
        let listed = format!(
            r#"{{"format": 1, "protocol": "a", "require": ["approved"], "signers": ["b openpgp {print}"]}}"#
        );
        assert_eq!(read(&listed), "a [\"approved\"] true 1");
        for refused in [
            "",
            "[]",
            r#"{"format": 2}"#,
            r#"{"format": 1, "sined": true}"#,
            r#"{"format": 1, "signed": "yes"}"#,
            r#"{"format": 1, "signers": []}"#,
            r##"{"format": 1, "signers": ["# none"]}"##,
            r#"{"format": 1} {}"#,
        ] {
            assert_eq!(read(refused), "gate.policy", "{refused}");
        }
        assert_eq!(read(r#"{"format": 1, "signers": ["b"]}"#), "signers.syntax");
    }
}
