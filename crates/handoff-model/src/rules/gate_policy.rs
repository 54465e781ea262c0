//! A gate's policy in a file outside the ledger, so that those who write to the ledger can't change
//! it.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_base::text::without_mark;
use handoff_protocol::Signers;
use serde::Deserialize;

/// A gate's policy.
#[derive(Clone, Debug, Default)]
pub struct GatePolicy {
    /// The protocol that the issue must follow; by default the ledger's.
    pub protocol: Option<AgentName>,
    /// The requirements; if empty, those of the protocol for a merge.
    pub require: Vec<String>,
    /// Whether each step of the issue must be signed with a listed key.
    pub signed: bool,
    /// The keys that count, instead of the ledger's.
    pub signers: Option<Signers>,
    /// The exemptions; a pull request is exempt if one of them applies.
    pub exempt: Vec<Exemption>,
}

/// Exempts pull requests that meet all of these conditions from the requirements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exemption {
    /// Why, for people.
    pub reason: String,
    /// It is by one of these accounts.
    pub authors: Option<Vec<String>>,
    /// It has one of these labels.
    pub labels: Option<Vec<String>>,
    /// It changes only paths that match these patterns.
    pub paths: Option<Vec<String>>,
    /// It comes from a branch of this repository that matches these patterns.
    pub branches: Option<Vec<String>>,
    /// It targets a branch that matches these patterns.
    pub into: Option<Vec<String>>,
    /// It names no issue.
    pub without_issue: Option<bool>,
}

impl Exemption {
    /// Why the exemption is invalid, if it is: without any condition, it would exempt everything.
    fn fault(&self) -> Option<&'static str> {
        let Self {
            reason,
            authors,
            labels,
            paths,
            branches,
            into,
            without_issue,
        } = self;
        let lists = [authors, labels, paths, branches, into];
        let is_empty = |list: &Vec<String>| list.is_empty() || list.iter().any(String::is_empty);
        match () {
            () if reason.trim().is_empty() => Some("it has no reason"),
            () if lists.iter().copied().flatten().any(is_empty) => {
                Some("a list or an entry of one is empty")
            }
            () if *without_issue == Some(false) => Some("`without_issue` can only be true"),
            () if lists.iter().all(|list| list.is_none()) && without_issue.is_none() => {
                Some("it has no condition")
            }
            () => None,
        }
    }
}

/// The stored form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    protocol: Option<AgentName>,
    #[serde(default)]
    require: Vec<String>,
    #[serde(default)]
    signed: bool,
    /// Lines as in `allowed_signers`.
    signers: Option<Vec<String>>,
    #[serde(default)]
    exempt: Vec<Exemption>,
}

impl GatePolicy {
    /// Parses the file; a list of keys requires signatures.
    ///
    /// # Errors
    /// Every fault: with an invalid file, the gate stays closed.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let fault = |text: String| vec![Finding::error(FindingCode::GatePolicy, "", text)];
        let stored: Stored = serde_json::from_slice(without_mark(bytes))
            .map_err(|error| fault(format!("it is not a policy: {error}")))?;
        if stored.format != 1 {
            return Err(fault(format!("its format is {}, not 1", stored.format)));
        }
        for (i, exemption) in stored.exempt.iter().enumerate() {
            if let Some(why) = exemption.fault() {
                let at = format!("/exempt/{i}");
                return Err(vec![Finding::error(FindingCode::GatePolicy, at, why)]);
            }
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
            exempt: stored.exempt,
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
        // Some editors write a byte order mark.
        assert_eq!(read("\u{feff}{\"format\": 1}"), "- [] false 0");
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
            r#"{"format": 1, "exempt": [{}]}"#,
            r#"{"format": 1, "exempt": [{"reason": "all"}]}"#,
            r#"{"format": 1, "exempt": [{"reason": " ", "labels": ["x"]}]}"#,
            r#"{"format": 1, "exempt": [{"reason": "x", "labels": []}]}"#,
            r#"{"format": 1, "exempt": [{"reason": "x", "labels": ["a"], "paths": [""]}]}"#,
            r#"{"format": 1, "exempt": [{"reason": "x", "label": ["a"]}]}"#,
            r#"{"format": 1, "exempt": [{"reason": "x", "without_issue": false}]}"#,
        ] {
            assert_eq!(read(refused), "gate.policy", "{refused}");
        }
        assert_eq!(read(r#"{"format": 1, "signers": ["b"]}"#), "signers.syntax");
    }
}
