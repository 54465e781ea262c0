//! What a run took, read from what its command printed: profiles say where it stands.

use std::collections::BTreeMap;

use handoff_base::{Amount, Currency};
use handoff_model::ModelUsage;
use handoff_model::usage::ensure_usage;
use serde::Deserialize;
use serde_json::{Deserializer, Value};

/// Where a kind of JSON document in the output tells what was used. Places are JSON Pointers; a list
/// of them is added up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageRule {
    /// What such a document has, by place.
    #[serde(default)]
    when: BTreeMap<String, Value>,
    /// The place of an object with a member for each model; the other places are in its members.
    each_of: Option<String>,
    /// Whether every such document counts, and not only the last.
    #[serde(default)]
    sum: bool,
    provider: Option<String>,
    /// The place of the model's name.
    model: Option<String>,
    #[serde(default)]
    input_tokens: Places,
    #[serde(default)]
    output_tokens: Places,
    #[serde(default)]
    cached_tokens: Places,
    #[serde(default)]
    turns: Places,
    #[serde(default)]
    cost: Places,
    currency: Option<Currency>,
}

/// One place or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum Places {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Places {
    fn all(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }

    /// The sum of the counts that are there.
    fn count(&self, of: &Value) -> Option<u64> {
        let counts = self
            .all()
            .iter()
            .filter_map(|place| of.pointer(place)?.as_u64());
        counts.reduce(u64::saturating_add)
    }

    fn cost(&self, of: &Value) -> Option<Amount> {
        let costs = self
            .all()
            .iter()
            .filter_map(|place| of.pointer(place)?.as_f64());
        let costs = costs.filter_map(|cost| Amount::try_from(cost).ok());
        costs.reduce(Amount::plus)
    }
}

impl UsageRule {
    fn fits(&self, document: &Value) -> bool {
        let each = self.each_of.as_ref();
        self.when
            .iter()
            .all(|(place, value)| document.pointer(place) == Some(value))
            && each.is_none_or(|place| document.pointer(place).is_some_and(Value::is_object))
    }

    fn read(&self, document: &Value) -> Vec<ModelUsage> {
        let place = self.each_of.as_deref();
        let models = place.and_then(|place| document.pointer(place)?.as_object());
        match models {
            Some(models) => models
                .iter()
                .filter_map(|(name, own)| self.usage(own, Some(name)))
                .collect(),
            None => self.usage(document, None).into_iter().collect(),
        }
    }

    fn usage(&self, of: &Value, name: Option<&String>) -> Option<ModelUsage> {
        let named = || Some(of.pointer(self.model.as_deref()?)?.as_str()?.to_owned());
        let cost = self.cost.cost(of);
        let usage = ModelUsage {
            provider: self.provider.clone(),
            model: name.cloned().or_else(named),
            input_tokens: self.input_tokens.count(of),
            output_tokens: self.output_tokens.count(of),
            cached_tokens: self.cached_tokens.count(of),
            turns: self.turns.count(of),
            currency: cost.and(self.currency.clone()),
            cost,
            ..ModelUsage::default()
        };
        let says =
            usage.cost.is_some() || usage.input_tokens.is_some() || usage.output_tokens.is_some();
        says.then_some(usage)
    }
}

/// What the output of a command says that it used, by the first rule that fits any of it.
pub(super) fn in_output(rules: &[UsageRule], output: &str) -> Vec<ModelUsage> {
    if rules.is_empty() {
        return Vec::new();
    }
    let documents = documents(output);
    for rule in rules {
        let mut fitting = documents.iter().filter(|document| rule.fits(document));
        let counted: Vec<&Value> = if rule.sum {
            fitting.collect()
        } else {
            fitting.next_back().into_iter().collect()
        };
        let mut found = Vec::new();
        for document in counted {
            add(&mut found, rule.read(document));
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The JSON objects that begin on a line of their own, whether they take one line or several.
fn documents(output: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = output;
    while !rest.is_empty() {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let mut taken = line;
        if rest[..line].trim_start().starts_with('{') {
            let mut stream = Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(document)) = stream.next() {
                found.push(document);
                taken = stream.byte_offset().max(1);
            }
        }
        rest = &rest[taken..];
    }
    found
}

/// Adds what was used to what was known, by provider and model.
pub(super) fn add(known: &mut Vec<ModelUsage>, more: Vec<ModelUsage>) {
    let sum = |known: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *known = Some(known.unwrap_or(0).saturating_add(more));
        }
    };
    for one in more {
        let same = |known: &&mut ModelUsage| {
            let name = |usage: &ModelUsage| (usage.provider.clone(), usage.model.clone());
            name(known) == name(&one)
                && (known.currency == one.currency
                    || known.currency.is_none()
                    || one.currency.is_none())
        };
        let Some(own) = known.iter_mut().find(same) else {
            known.push(one);
            continue;
        };
        sum(&mut own.input_tokens, one.input_tokens);
        sum(&mut own.output_tokens, one.output_tokens);
        sum(&mut own.cached_tokens, one.cached_tokens);
        sum(&mut own.turns, one.turns);
        sum(&mut own.wall_seconds, one.wall_seconds);
        sum(&mut own.working_seconds, one.working_seconds);
        if let Some(cost) = one.cost {
            own.cost = Some(own.cost.unwrap_or_default().plus(cost));
            own.currency = one.currency;
        }
    }
}

/// The option that reports it; none if nothing was used.
///
/// Runs that each were a report may not be one together; work is not lost for that.
pub(super) fn option(usage: &[ModelUsage]) -> Option<String> {
    let json = serde_json::to_string(usage)
        .ok()
        .filter(|_| ensure_usage(usage).is_ok())?;
    Some(format!("--usage={json}"))
}

#[cfg(test)]
mod tests {
    use super::{add, documents, in_output};
    use crate::work::roles::tests::rules;

    /// What a run of each agent prints, as its documentation and its users' reports show it, and the
    /// figures that it gives itself.
    const OUTPUTS: [(&str, &str, &str); 5] = [
        (
            "claude",
            concat!(
                "a warning\n",
                r#"{"type":"result","subtype":"success","num_turns":7,"total_cost_usd":0.1847265,"#,
                r#""usage":{"input_tokens":12,"cache_creation_input_tokens":8000,"#,
                r#""cache_read_input_tokens":90000,"output_tokens":2100},"#,
                r#""modelUsage":{"claude-opus-4-1":{"inputTokens":10,"outputTokens":2000,"#,
                r#""cacheReadInputTokens":90000,"cacheCreationInputTokens":8000,"costUSD":0.1841},"#,
                r#""claude-haiku-4-5":{"inputTokens":2,"outputTokens":100,"cacheReadInputTokens":0,"#,
                r#""cacheCreationInputTokens":0,"costUSD":0.0006265}}}"#,
                "\n",
            ),
            "claude-opus-4-1 98010+2000 (90000) 0.18 USD, claude-haiku-4-5 2+100 (0) 0.0006265 USD",
        ),
        (
            "claude",
            r#"{"type":"result","num_turns":1,"total_cost_usd":0.0079825,"usage":{"input_tokens":3,"cache_read_input_tokens":15635,"output_tokens":6}}"#,
            "? 15638+6 (15635) 0.0079825 USD",
        ),
        (
            "codex",
            concat!(
                "{\"type\":\"turn.started\"}\n",
                r#"{"type":"turn.completed","usage":{"input_tokens":26549,"cached_input_tokens":22272,"output_tokens":1590}}"#,
                "\n",
                r#"{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":10}}"#,
            ),
            "? 27549+1600 (22272)",
        ),
        (
            "gemini",
            "{\n  \"response\": \"done\",\n  \"stats\": {\n    \"models\": {\n      \"gemini-2.5-pro\": {\n        \
             \"api\": {\"totalRequests\": 2},\n        \"tokens\": {\"prompt\": 24939, \"candidates\": 20, \
             \"cached\": 21263, \"thoughts\": 154}\n      }\n    }\n  }\n}\n",
            "gemini-2.5-pro 24939+174 (21263)",
        ),
        (
            "opencode",
            concat!(
                r#"{"type":"step_finish","part":{"tokens":{"input":11087,"output":145,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.0070147}}"#,
                "\n",
                r#"{"type":"step_finish","part":{"tokens":{"input":10,"output":5,"reasoning":20,"cache":{"write":40,"read":11000}},"cost":0.001}}"#,
            ),
            "? 22137+170 (11000) 0.0080147 USD",
        ),
    ];

    #[test]
    fn what_agents_say_of_their_own_runs_is_recorded() {
        for (name, output, wanted) in OUTPUTS {
            let usage = in_output(&rules(name), output);
            let shown = usage.iter().map(|one| {
                let count = |count: Option<u64>| count.unwrap_or_default();
                let cost = one.cost.zip(one.currency.as_ref());
                let cost = cost.map(|(cost, currency)| format!(" {cost} {currency}"));
                format!(
                    "{} {}+{} ({}){}",
                    one.model.as_deref().unwrap_or("?"),
                    count(one.input_tokens),
                    count(one.output_tokens),
                    count(one.cached_tokens),
                    cost.unwrap_or_default(),
                )
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), wanted, "{name}");
            assert_eq!(handoff_model::usage::ensure_usage(&usage), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_total_is_the_figure_that_the_agent_gives_itself() {
        let total = |output: &str, place: &str| {
            let all = documents(output);
            all.iter()
                .filter_map(|one| one.pointer(place)?.as_f64())
                .sum::<f64>()
        };
        for (name, place) in [
            (0, "/total_cost_usd"),
            (1, "/total_cost_usd"),
            (4, "/part/cost"),
        ] {
            let (agent, output, _) = OUTPUTS[name];
            let usage = in_output(&rules(agent), output);
            let recorded: f64 = usage.iter().filter_map(|one| one.cost.map(f64::from)).sum();
            assert!(
                (recorded - total(output, place)).abs() < 1e-9,
                "{agent}: {recorded}"
            );
        }
    }

    #[test]
    fn what_is_no_document_of_the_agent_is_passed_over() {
        let output = "{ not json\n{\"type\":\"other\"}\n  {\"type\":\"turn.completed\",\"usage\":{\"output_tokens\":5}}\n{\"cut";
        let usage = in_output(&rules("codex"), output);
        assert_eq!(usage.len(), 1);
        assert_eq!(usage[0].output_tokens, Some(5));
        assert!(in_output(&rules("codex"), "").is_empty());
        assert!(in_output(&[], output).is_empty());
        let mut twice = usage.clone();
        add(&mut twice, usage);
        assert_eq!((twice.len(), twice[0].output_tokens), (1, Some(10)));
    }
}

/// SHIM
#[derive(Clone, Debug, Default)]
pub(super) struct UsageSoFar {
    pub(super) usage: Vec<ModelUsage>,
    pub(super) unreadable: Option<String>,
}
pub(super) struct UsageReader {
    rules: Vec<UsageRule>,
    text: Vec<u8>,
}
impl UsageReader {
    pub(super) fn new(rules: &[UsageRule]) -> Self {
        Self {
            rules: rules.to_vec(),
            text: Vec::new(),
        }
    }
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }
    pub(super) fn used(&self) -> UsageSoFar {
        UsageSoFar {
            usage: in_output(&self.rules, &String::from_utf8_lossy(&self.text)),
            unreadable: None,
        }
    }
}
pub(super) fn combine(
    file: Result<Option<Vec<ModelUsage>>, String>,
    output: UsageSoFar,
) -> UsageSoFar {
    match file {
        Ok(Some(usage)) => UsageSoFar {
            usage,
            unreadable: output.unreadable,
        },
        Ok(None) => output,
        Err(why) => UsageSoFar {
            unreadable: Some(why),
            ..output
        },
    }
}
