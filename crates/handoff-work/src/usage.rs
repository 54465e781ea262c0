//! Reads a run's usage from its command's output, at the places that its profile defines.
//!
//! The output comes from an agent: it may be large, or made to hide costs. Memory is bounded,
//! figures never decrease, and an unreadable report differs from none.

use std::collections::{BTreeMap, VecDeque};

use handoff::base::text::quoted;
use handoff::base::{Amount, Currency};
use handoff::model::usage::{MOST_MODELS, ensure_usage};
use handoff::model::{ModelUsage, Spent, read_usage};
use serde::Deserialize;
use serde_json::Value;

use super::documents::{Found, Picked, PlaceSet, Splitter};

/// The maximum number of named reports that are remembered for later ones of the same name.
const MOST_NAMED: usize = 64;

/// The places of usage figures in one kind of JSON document in the output. Places are JSON
/// Pointers; the figures of several places are added up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageRule {
    /// The values that such a document must have, by place: texts, numbers and booleans.
    #[serde(default)]
    pub(super) when: BTreeMap<String, Value>,
    /// The place of an object with a member per model; the other places are in its members.
    each_of: Option<String>,
    /// Whether to add up all such documents, instead of using the highest figures.
    #[serde(default)]
    sum: bool,
    /// With `sum`: the place of a name; of documents with the same name, one counts.
    once: Option<String>,
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
pub(super) enum Places {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Places {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }

    /// The sum of the counts that exist.
    fn count(&self, of: &Picked) -> Result<Option<u64>, String> {
        self.total(of, "a count", Value::as_u64, u64::saturating_add)
    }

    fn cost(&self, of: &Picked) -> Result<Option<Amount>, String> {
        let amount = |value: &Value| Amount::try_from(value.as_f64()?).ok();
        self.total(of, "a cost", amount, Amount::plus)
    }

    fn total<T>(
        &self,
        of: &Picked,
        wanted: &str,
        read: impl Fn(&Value) -> Option<T>,
        add: impl Fn(T, T) -> T,
    ) -> Result<Option<T>, String> {
        let mut total = None;
        for place in self.all() {
            let value = match of.at(place) {
                None | Some(Picked::Scalar(Value::Null)) => continue,
                Some(found) => found.scalar(),
            };
            let Some(one) = value.and_then(&read) else {
                let shown = value.map_or_else(|| "no number".to_owned(), short);
                return Err(format!("{place} is {shown}, which is not {wanted}"));
            };
            total = Some(match total {
                Some(total) => add(total, one),
                None => one,
            });
        }
        Ok(total)
    }
}

/// A value for a message.
fn short(value: &Value) -> String {
    let text = value.to_string();
    quoted(text.trim_matches('"'))
}

impl UsageRule {
    /// Checks that the rule is valid.
    pub(super) fn ensure(&self) -> Result<(), String> {
        ensure_when(&self.when)?;
        let figures = [
            &self.input_tokens,
            &self.output_tokens,
            &self.cached_tokens,
            &self.turns,
            &self.cost,
        ];
        let places = figures.into_iter().flat_map(Places::all);
        let named = [&self.each_of, &self.model, &self.once];
        ensure_places(places.chain(named.into_iter().flatten()))
    }

    fn insert_places(&self, set: &mut PlaceSet) {
        self.when.keys().for_each(|place| set.insert(place));
        let each = self.each_of.as_ref();
        let within = each.map_or(String::new(), |each| format!("{each}/*"));
        for figures in [
            &self.input_tokens,
            &self.output_tokens,
            &self.cached_tokens,
            &self.turns,
            &self.cost,
        ] {
            for place in figures.all() {
                set.insert(&format!("{within}{place}"));
            }
        }
        if let Some(model) = &self.model {
            set.insert(&format!("{within}{model}"));
        }
        self.once.iter().for_each(|place| set.insert(place));
    }

    fn fits(&self, document: &Picked) -> bool {
        let each = self.each_of.as_ref();
        let has_models = |place: &String| document.at(place)?.members().map(|_| ());
        fits(&self.when, document) && each.is_none_or(|place| has_models(place).is_some())
    }

    /// Texts that occur in every such document: others need not be parsed.
    fn needles(&self) -> Vec<Needle> {
        let each = self.each_of.iter().filter_map(|place| named(place));
        let values = self.when.values().map(Value::to_string);
        let words = values.chain(each);
        words.filter_map(|word| needle(&word)).collect()
    }

    /// Texts of figures, which show that an unparsable document could be such a report; for rules
    /// without required values.
    fn figures(&self) -> Vec<Needle> {
        let places = self.cost.all().iter().chain(self.output_tokens.all());
        let words = places.filter_map(|place| named(place));
        words.filter_map(|word| needle(&word)).collect()
    }

    /// The usage in a document.
    ///
    /// # Errors
    /// Why it can't be read.
    fn read(&self, document: &Picked) -> Result<Vec<ModelUsage>, String> {
        let place = self.each_of.as_deref();
        let models = place.and_then(|place| document.at(place)?.members());
        let Some((models, count)) = models else {
            return Ok(self.usage(document, None)?.into_iter().collect());
        };
        if count > MOST_MODELS {
            return Err(format!("it lists more than {MOST_MODELS} models"));
        }
        let each = models
            .iter()
            .map(|(name, own)| self.usage(own, Some(name)).transpose());
        each.flatten().collect()
    }

    fn usage(&self, of: &Picked, name: Option<&String>) -> Result<Option<ModelUsage>, String> {
        let named = || Some(of.at(self.model.as_deref()?)?.text()?.to_owned());
        let cost = self.cost.cost(of)?;
        let usage = ModelUsage {
            provider: self.provider.clone(),
            model: name.cloned().or_else(named),
            input_tokens: self.input_tokens.count(of)?,
            output_tokens: self.output_tokens.count(of)?,
            cached_tokens: self.cached_tokens.count(of)?,
            turns: self.turns.count(of)?,
            currency: cost.and(self.currency.clone()),
            cost,
            ..ModelUsage::default()
        };
        let counts = [usage.input_tokens, usage.output_tokens];
        let is_more = counts.into_iter().flatten().any(|count| count > 0);
        if !is_more && usage.cost.unwrap_or_default() == Amount::default() {
            return Ok(None);
        }
        ensure_usage(std::slice::from_ref(&usage)).map_err(|error| error.to_string())?;
        Ok(Some(usage))
    }
}

/// Whether a document has all of these values.
pub(super) fn fits(when: &BTreeMap<String, Value>, document: &Picked) -> bool {
    when.iter()
        .all(|(place, value)| document.at(place).and_then(Picked::scalar) == Some(value))
}

/// Checks that these can be values of a document.
pub(super) fn ensure_when(when: &BTreeMap<String, Value>) -> Result<(), String> {
    let composite = when
        .iter()
        .find(|(_, value)| value.is_object() || value.is_array() || value.is_null());
    if let Some((place, _)) = composite {
        return Err(format!(
            "when {} takes a text, a number, true or false",
            quoted(place)
        ));
    }
    ensure_places(when.keys())
}

pub(super) fn ensure_places<'a>(
    mut places: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    match places.find(|place| !place.starts_with('/')) {
        Some(place) => Err(format!(
            "{} is not a place: write a JSON Pointer, such as \"/usage/tokens\"",
            quoted(place)
        )),
        None => Ok(()),
    }
}

type Needle = regex::bytes::Regex;

fn needle(word: &str) -> Option<Needle> {
    Needle::new(&regex::escape(word)).ok()
}

/// The name of the member at a place, in quotes.
fn named(place: &str) -> Option<String> {
    let name = place.rsplit('/').next()?;
    Some(format!("\"{name}\""))
}

/// The usage in a run's output so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UsageSoFar {
    pub(super) usage: Vec<ModelUsage>,
    /// Why a report is unreadable; then the usage is unknown.
    pub(super) unreadable: Option<String>,
}

/// Reads a run's output as it arrives.
#[derive(Debug)]
pub(super) struct UsageReader {
    rules: Vec<UsageRule>,
    places: PlaceSet,
    needles: Vec<Vec<Needle>>,
    splitter: Splitter,
    /// The results of each rule.
    found: Vec<Sum>,
    /// Whether a rule's document was found.
    has_report: bool,
    unreadable: Option<String>,
}

/// The total of a rule's documents.
#[derive(Clone, Debug, Default)]
struct Sum {
    usage: Vec<ModelUsage>,
    /// The named reports, the last at the end.
    named: VecDeque<(String, Vec<ModelUsage>)>,
}

impl UsageReader {
    pub(super) fn new(rules: &[UsageRule]) -> Self {
        let mut places = PlaceSet::default();
        for rule in rules {
            rule.insert_places(&mut places);
        }
        Self {
            rules: rules.to_vec(),
            places,
            needles: rules.iter().map(UsageRule::needles).collect(),
            splitter: Splitter::default(),
            found: vec![Sum::default(); rules.len()],
            has_report: false,
            unreadable: None,
        }
    }

    /// Reads the next chunk of the output.
    pub(super) fn feed(&mut self, output: &[u8]) {
        if self.rules.is_empty() {
            return;
        }
        let Self {
            rules,
            places,
            needles,
            splitter,
            found,
            has_report,
            unreadable,
        } = self;
        let has = |text: &[u8], all: &Vec<Needle>| all.iter().all(|needle| needle.is_match(text));
        let could_be = |text: &[u8], why: &str| {
            let mut pairs = rules.iter().zip(needles.iter());
            let could_be = pairs.any(|(rule, needles)| {
                if needles.is_empty() {
                    rule.figures().iter().any(|needle| needle.is_match(text))
                } else {
                    has(text, needles)
                }
            });
            if could_be {
                return Err(why.to_owned());
            }
            Ok(())
        };
        splitter.feed(output, |document| {
            let told = match document {
                Found::Part(text) => could_be(text, "it is larger than 1 MiB"),
                Found::Document(text) if !needles.iter().any(|all| has(text, all)) => return,
                Found::Document(text) => match Picked::read(text, places) {
                    Some(picked) => {
                        *has_report |= rules.iter().any(|rule| rule.fits(&picked));
                        take_in(rules, found, &picked)
                    }
                    None => could_be(text, "it is not JSON"),
                },
            };
            if let Err(why) = told {
                unreadable.get_or_insert(why);
            }
        });
    }

    /// The usage so far: by unit, from the first rule with a result unless another found more.
    pub(super) fn used(&self) -> UsageSoFar {
        let found = self.found.iter().map(|sum| &sum.usage);
        let usage = found.fold(Vec::new(), |known, more| combine(&known, more));
        let refused = (!usage.is_empty())
            .then(|| ensure_usage(&usage).err())
            .flatten();
        UsageSoFar {
            unreadable: self
                .unreadable
                .clone()
                .or(refused.map(|error| error.to_string())),
            usage,
        }
    }
}

fn take_in(rules: &[UsageRule], found: &mut [Sum], document: &Picked) -> Result<(), String> {
    for (rule, sum) in rules.iter().zip(found) {
        if !rule.fits(document) {
            continue;
        }
        let usage = rule.read(document)?;
        if usage.is_empty() {
            continue;
        }
        if !rule.sum {
            raise(&mut sum.usage, usage);
        } else {
            let name = rule.once.as_deref();
            let name = name.and_then(|place| document.at(place)?.text());
            sum.add(name, usage);
        }
        if sum.usage.len() > MOST_MODELS {
            sum.usage.truncate(MOST_MODELS);
            return Err(format!("it lists more than {MOST_MODELS} models"));
        }
    }
    Ok(())
}

impl Sum {
    /// Adds a report; of reports with the same name, the highest figures count.
    fn add(&mut self, name: Option<&str>, usage: Vec<ModelUsage>) {
        let Some(name) = name else {
            return add(&mut self.usage, usage);
        };
        let known = self.named.iter().position(|(known, _)| known == name);
        let before = known.and_then(|at| self.named.remove(at));
        let before = before.map_or_else(Vec::new, |(_, usage)| usage);
        let mut highest = before.clone();
        raise(&mut highest, usage);
        add(&mut self.usage, beyond(&highest, &before));
        self.named.push_back((name.to_owned(), highest));
        if self.named.len() > MOST_NAMED {
            self.named.pop_front();
        }
    }
}

/// Reads the report file: a usage report, or the output that a profile's program writes there
/// itself.
///
/// # Errors
/// Why it is not a report.
pub(super) fn in_file(rules: &[UsageRule], bytes: &[u8]) -> Result<Vec<ModelUsage>, String> {
    read_usage(bytes).or_else(|error| {
        let mut reader = UsageReader::new(rules);
        reader.feed(bytes);
        let found = reader.used();
        match found.unreadable {
            Some(why) => Err(why),
            // The run may have used nothing.
            None if reader.has_report => Ok(found.usage),
            None => Err(error.to_string()),
        }
    })
}

/// Whether both are about the same model.
fn is_same(one: &ModelUsage, other: &ModelUsage) -> bool {
    one.provider == other.provider
        && one.model == other.model
        && (one.currency == other.currency || one.currency.is_none() || other.currency.is_none())
}

/// Raises known figures to those of a later report, by model; no figure decreases.
fn raise(known: &mut Vec<ModelUsage>, later: Vec<ModelUsage>) {
    for one in later {
        let Some(own) = known.iter_mut().find(|own| is_same(own, &one)) else {
            known.push(one);
            continue;
        };
        own.input_tokens = own.input_tokens.max(one.input_tokens);
        own.output_tokens = own.output_tokens.max(one.output_tokens);
        own.cached_tokens = own.cached_tokens.max(one.cached_tokens);
        own.turns = own.turns.max(one.turns);
        own.wall_seconds = own.wall_seconds.max(one.wall_seconds);
        own.working_seconds = own.working_seconds.max(one.working_seconds);
        own.cost = own.cost.max(one.cost);
        own.currency = own.currency.take().or(one.currency);
    }
}

/// Subtracts the earlier figures, by model.
fn beyond(highest: &[ModelUsage], before: &[ModelUsage]) -> Vec<ModelUsage> {
    let less =
        |all: Option<u64>, part: Option<u64>| Some(all?.saturating_sub(part.unwrap_or_default()));
    let mut more = highest.to_vec();
    for one in &mut more {
        let Some(part) = before.iter().find(|part| is_same(part, one)) else {
            continue;
        };
        one.input_tokens = less(one.input_tokens, part.input_tokens);
        one.output_tokens = less(one.output_tokens, part.output_tokens);
        one.cached_tokens = less(one.cached_tokens, part.cached_tokens);
        one.turns = less(one.turns, part.turns);
        one.cost = one
            .cost
            .map(|cost| cost.minus(part.cost.unwrap_or_default()));
    }
    more
}

/// Combines two reports of one run: per unit, the figures of the report with the higher total.
///
/// The first is preferred if they agree to a thousandth, since sums may be rounded.
pub(super) fn combine(first: &[ModelUsage], other: &[ModelUsage]) -> Vec<ModelUsage> {
    if first.is_empty() || other.is_empty() {
        return [first, other].concat();
    }
    let is_more = |own: u64, more: u64| more > own.saturating_add(own / 1000);
    let (own, more) = (Spent::of(first), Spent::of(other));
    let takes_input = is_more(own.input_tokens, more.input_tokens);
    let takes_output = is_more(own.output_tokens, more.output_tokens);
    let dearer = more.cost.iter().filter(|(currency, cost)| {
        let known = own.cost.get(currency).copied().unwrap_or_default();
        is_more(known.billionths(), cost.billionths())
    });
    let dearer: Vec<&Currency> = dearer.map(|(currency, _)| currency).collect();
    if !takes_input && !takes_output && dearer.is_empty() {
        return first.to_vec();
    }
    let mut combined: Vec<ModelUsage> = Vec::new();
    for (usage, is_other) in [(first, false), (other, true)] {
        for one in usage {
            let mut part = one.clone();
            if takes_input != is_other {
                (part.input_tokens, part.cached_tokens) = (None, None);
            }
            if takes_output != is_other {
                part.output_tokens = None;
            }
            let is_dearer = part.currency.as_ref().is_some_and(|c| dearer.contains(&c));
            if is_dearer != is_other {
                (part.cost, part.currency) = (None, None);
            }
            if is_other {
                (part.turns, part.wall_seconds, part.working_seconds) = (None, None, None);
            }
            if ensure_usage(std::slice::from_ref(&part)).is_ok() {
                add(&mut combined, vec![part]);
            }
        }
    }
    combined
}

/// Adds usage to known usage, by provider and model.
pub(super) fn add(known: &mut Vec<ModelUsage>, more: Vec<ModelUsage>) {
    let sum = |known: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *known = Some(known.unwrap_or(0).saturating_add(more));
        }
    };
    for one in more {
        let Some(own) = known.iter_mut().find(|known| is_same(known, &one)) else {
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

/// The option that reports this usage; `None` if it is invalid. Reports that are valid alone may be
/// invalid together, and the work must not be lost for that.
pub(super) fn option(usage: &[ModelUsage]) -> Option<String> {
    let json = serde_json::to_string(usage)
        .ok()
        .filter(|_| ensure_usage(usage).is_ok())?;
    Some(format!("--usage={json}"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use handoff::model::read_usage;

    use super::{UsageReader, UsageRule, UsageSoFar, add, combine, in_file};
    use crate::roles::tests::rules;

    /// The output of a run of each agent, from its documentation and users' reports, and the
    /// figures that it states.
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

    fn read(rules: &[UsageRule], output: &str) -> UsageSoFar {
        // In chunks, as from a pipe.
        let mut reader = UsageReader::new(rules);
        for part in output.as_bytes().chunks(7) {
            reader.feed(part);
        }
        reader.used()
    }

    fn shown(usage: &[handoff::model::ModelUsage]) -> String {
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
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_agents_say_of_their_own_runs_is_recorded() {
        for (name, output, wanted) in OUTPUTS {
            let so_far = read(&rules(name), output);
            assert_eq!(shown(&so_far.usage), wanted, "{name}");
            assert_eq!(so_far.unreadable, None, "{name}");
        }
    }

    #[test]
    fn a_total_is_the_figure_that_the_agent_gives_itself() {
        let total = |output: &str, name: &str| {
            let name = format!("\"{name}\":");
            let parts = output.split(&name).skip(1);
            let number = |part: &str| part.split([',', '}']).next()?.parse::<f64>().ok();
            parts.filter_map(number).sum::<f64>()
        };
        for (name, place) in [(0, "total_cost_usd"), (1, "total_cost_usd"), (4, "cost")] {
            let (agent, output, _) = OUTPUTS[name];
            let usage = read(&rules(agent), output).usage;
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
        let usage = read(&rules("codex"), output).usage;
        assert_eq!(usage.len(), 1);
        assert_eq!(usage[0].output_tokens, Some(5));
        // A truncated document hides none that follows.
        let cut = "{\"a\": [\n{\"b\": \"c\n{\"type\":\"turn.completed\",\"usage\":{\"output_tokens\":5}}\n";
        assert_eq!(read(&rules("codex"), cut).usage, usage);
        assert_eq!(read(&rules("codex"), ""), UsageSoFar::default());
        assert_eq!(read(&[], output), UsageSoFar::default());
        let mut twice = usage.clone();
        add(&mut twice, usage);
        assert_eq!((twice.len(), twice[0].output_tokens), (1, Some(10)));
    }

    /// The rule of a custom profile.
    fn own(rule: &str) -> Vec<UsageRule> {
        vec![toml::from_str(rule).expect("it is a rule")]
    }

    #[test]
    fn what_an_agent_prints_lowers_no_figure_and_hides_none() {
        let own = own(concat!(
            "when = {\"/type\" = \"end\"}\neach_of = \"/models\"\n",
            "output_tokens = \"/out\"\ncost = \"/usd\"\ncurrency = \"USD\"\n",
        ));
        let end = |models: &str| format!("{{\"type\":\"end\",\"models\":{{{models}}}}}\n");
        let first = end(r#""m":{"out":1,"usd":1000}"#);
        let later = first.clone() + &end(r#""m":{"out":2,"usd":0}"#);
        assert_eq!(shown(&read(&own, &later).usage), "m 0+2 (0) 1000.00 USD");
        let mut many = String::new();
        for index in 0..21 {
            write!(many, "\"m{index}\":{{\"out\":1}},").expect("it is a text");
        }
        let many = end(many.trim_end_matches(','));
        for (output, why) in [
            (many.as_str(), "it lists more than 20 models"),
            (&end(r#""a model":{"out":1}"#), "\"a model\" is not a name"),
            (&end(r#""m":{"usd":1e308}"#), "/usd is \"1e+308\""),
            (&end(r#""m":{"usd":1e309}"#), "it is not JSON"),
            (&end(r#""m":{"usd":NaN}"#), "it is not JSON"),
            (&end(r#""m":{"usd":2000000000}"#), "a report has less than"),
            (
                &end(r#""m":{"usd":-1}"#),
                "/usd is \"-1\", which is not a cost",
            ),
            (
                &end(r#""m":{"usd":"1000"}"#),
                "/usd is \"1000\", which is not a cost",
            ),
            (
                &end(r#""m":{"out":1.5}"#),
                "/out is \"1.5\", which is not a count",
            ),
        ] {
            let so_far = read(&own, &(first.clone() + output));
            let told = so_far.unreadable.unwrap_or_default();
            assert!(told.contains(why), "{output}: {told}");
            assert_eq!(shown(&so_far.usage), "m 0+1 (0) 1000.00 USD");
        }
        // A quoted report is not a report.
        let quoting = "{\"type\":\"item\",\"text\":\"{\\\"type\\\":\\\"end\\\"\" broken}\n";
        assert_eq!(read(&own, quoting), UsageSoFar::default());
    }

    #[test]
    fn a_document_beyond_what_is_read_is_told_if_it_could_be_a_report() {
        let codex = rules("codex");
        let mut reader = UsageReader::new(&codex);
        reader.feed(b"{\"x\":[");
        let part = "{\"\":0},".repeat(100_000);
        for _ in 0..3 {
            reader.feed(part.as_bytes());
            assert!(reader.splitter.kept_bytes() <= 1024 * 1024);
        }
        assert_eq!(reader.used(), UsageSoFar::default());
        reader.feed(b"0],\"type\":\"turn.completed\"}\n");
        let told = reader.used().unreadable;
        assert_eq!(told.as_deref(), Some("it is larger than 1 MiB"));
        reader.feed(b"{\"type\":\"turn.completed\",\"usage\":{\"output_tokens\":5}}\n");
        assert_eq!(reader.used().usage[0].output_tokens, Some(5));
    }

    #[test]
    fn messages_that_are_printed_twice_count_once_and_a_result_stands_for_them() {
        let message = |id: &str, output: u32| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"m\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":{output}}}}}}}\n"
            )
        };
        let output = message("a", 1) + &message("b", 1) + &message("a", 4);
        assert_eq!(shown(&read(&rules("claude"), &output).usage), "m 20+5 (0)");
        let result = "{\"type\":\"result\",\"modelUsage\":{\"m[1m]\":{\"inputTokens\":20,\"outputTokens\":9,\"costUSD\":0.5}}}\n";
        let ended = read(&rules("claude"), &(output + result));
        assert_eq!(shown(&ended.usage), "m[1m] 20+9 (0) 0.50 USD");
    }

    #[test]
    fn the_file_has_a_report_or_what_the_program_of_the_profile_writes() {
        let own = "{\n  \"modelMetrics\": {\n    \"gpt-5\": {\n      \"requests\": {\"count\": 6},\n      \"usage\": {\"inputTokens\": 77058, \
                   \"outputTokens\": 125, \"cacheReadTokens\": 600}\n    }\n  }\n}\n";
        let copilot = rules("copilot");
        let read = |text: &str| in_file(&copilot, text.as_bytes()).map(|usage| shown(&usage));
        assert_eq!(read(own), Ok("gpt-5 77058+125 (600)".to_owned()));
        let report = r#"{"model":"m","output_tokens":5}"#;
        for text in [
            report.to_owned(),
            format!("\u{feff}{report}"),
            format!("```json\n{report}\n```\n"),
        ] {
            assert_eq!(read(&text), Ok("m 0+5 (0)".to_owned()), "{text}");
        }
        assert_eq!(
            read("{\"totalUserRequests\":1,\"modelMetrics\":{}}"),
            Ok(String::new())
        );
        assert!(read("not JSON").is_err_and(|why| why.contains("not JSON")));
        assert!(
            read("{\"modelMetrics\":{\"m\":{\"usage\":{\"outputTokens\":-1}}}}")
                .is_err_and(|why| why.contains("not a count"))
        );
    }

    #[test]
    fn of_two_reports_each_unit_is_of_the_one_that_has_more() {
        let usage = |json: &str| read_usage(json.as_bytes()).expect("it is a report");
        let output = usage(
            r#"{"model":"m","input_tokens":50,"output_tokens":10,"cost":1000,"currency":"USD"}"#,
        );
        for (file, wanted) in [
            (
                r#"{"model":"n","cost":0,"currency":"USD"}"#,
                "m 50+10 (0) 1000.00 USD",
            ),
            (r#"{"turns":1}"#, "? 0+0 (0), m 50+10 (0) 1000.00 USD"),
            (
                r#"{"model":"m","output_tokens":20,"cost":1000.5,"currency":"USD"}"#,
                "m 50+20 (0) 1000.50 USD",
            ),
            (
                r#"{"model":"m","output_tokens":20,"cost":5,"currency":"EUR"}"#,
                "m 0+20 (0) 5.00 EUR, m 50+0 (0) 1000.00 USD",
            ),
        ] {
            let both = combine(&usage(file), &output);
            assert_eq!(shown(&both), wanted, "{file}");
            assert_eq!(handoff::model::usage::ensure_usage(&both), Ok(()), "{file}");
        }
    }
}
