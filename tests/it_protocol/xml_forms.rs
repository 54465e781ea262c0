//! A contract in XML holds what it holds in JSON, in every protocol: sample by sample, there and
//! back.

use std::collections::BTreeMap;
use std::{env, fs};

use handoff::contract::{Schema, Source, write_xml};
use handoff::protocol::ContractType;
use serde_json::Value;

use crate::rules::{NAME, Rules, Sample, line, root};
use crate::xsd::{Case, has_xmllint, xsd_verdicts};

/// A valid JSON sample whose type may be XML too, with its value and that value in XML.
struct Form {
    sample: Sample,
    kind: String,
    value: Value,
    xml: String,
}

fn forms(rules: &Rules) -> Vec<Form> {
    let samples = rules.samples("valid").into_iter();
    samples
        .filter(Sample::is_json)
        .filter_map(|sample| {
            let kind = rules.review(&sample.bytes).kind.unwrap();
            let own: &ContractType = rules.protocol.contract_type(&kind).unwrap();
            if !rules.formats(own).contains(&"xml".to_owned()) {
                return None;
            }
            let schema = Schema::compile(&rules.schema(&kind)).unwrap();
            let value = schema
                .check(&Source::parse(&sample.bytes).unwrap(), None)
                .value;
            let value = match value.as_object().filter(|members| members.len() == 1) {
                Some(members) if members.contains_key(&own.root) => members[&own.root].clone(),
                _ => value,
            };
            let xml = write_xml(&value, schema.shape(), &own.root);
            Some(Form {
                sample,
                kind,
                value,
                xml,
            })
        })
        .collect()
}

#[test]
fn every_sample_goes_to_xml_and_back() {
    let mut compared = 0;
    for rules in Rules::all() {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut cases = Vec::new();
        for form in forms(&rules) {
            let what = format!("{} {}\n{}", rules.name, form.sample.name, form.xml);
            let schema = Schema::compile(&rules.schema(&form.kind)).unwrap();
            let source = Source::parse(form.xml.as_bytes()).unwrap();
            let checked = schema.check(&source, None);
            assert_eq!(checked.value, form.value, "{what}");
            // Without its schema it is known as what it is, and nothing else is found than in JSON.
            let review = rules.review(form.xml.as_bytes());
            let before = rules.review(&form.sample.bytes);
            assert_eq!(review.kind.as_ref(), Some(&form.kind), "{what}");
            let codes = |review: &handoff::model::Review| {
                let found = review.findings.iter();
                found.map(|f| f.code.to_string()).collect::<Vec<_>>()
            };
            let lines: Vec<String> = review.findings.iter().map(line).collect();
            assert_eq!(codes(&review), codes(&before), "{what}\n{lines:#?}");
            let (xml, json) = (review.contract, before.contract);
            assert_eq!(xml.is_some(), json.is_some(), "{what}");
            if let (Some(xml), Some(json)) = (xml, json) {
                assert_eq!(
                    (
                        &xml.value,
                        &xml.from,
                        &xml.to,
                        &xml.id,
                        &xml.issue,
                        &xml.status
                    ),
                    (
                        &json.value,
                        &json.from,
                        &json.to,
                        &json.id,
                        &json.issue,
                        &json.status
                    ),
                    "{what}"
                );
            }
            *seen.entry(form.kind.clone()).or_default() += 1;
            compared += 1;
            cases.push(Case {
                name: form.sample.name,
                kind: form.kind,
                bytes: form.xml.into_bytes(),
            });
        }
        let types = rules.protocol.definition().contracts.iter();
        let has_xml = rules
            .protocol
            .definition()
            .formats
            .iter()
            .any(|f| f == "xml");
        let types = types
            .filter(|kind| has_xml && kind.formats != ["md"])
            .count();
        assert_eq!(seen.len(), types, "{}: a sample of each type", rules.name);
        if has_xmllint() {
            let verdicts = xsd_verdicts(rules.name, &cases);
            for (case, valid) in cases.iter().zip(verdicts) {
                let text = String::from_utf8_lossy(&case.bytes);
                assert!(valid, "{} {}\n{text}", rules.name, case.name);
            }
        }
    }
    assert!(compared > 80, "{compared}");
}

/// The sample `TYPE.xml` of each type is the first JSON sample of that type, in XML;
/// `UPDATE_REFERENCE` writes it. Those of the first protocol are its document's.
#[test]
fn xml_samples_hold_what_the_json_ones_hold() {
    for rules in Rules::all().filter(|rules| rules.name != NAME) {
        let mut first: BTreeMap<String, Form> = BTreeMap::new();
        for form in forms(&rules) {
            let named = form.sample.name == format!("{}.json", form.kind);
            if named || !first.contains_key(&form.kind) {
                first.insert(form.kind.clone(), form);
            }
        }
        for (kind, form) in first {
            let path = format!("tests/samples/{}/valid/{kind}.xml", rules.name);
            let file = root().join(&path);
            if env::var_os("UPDATE_REFERENCE").is_some() {
                fs::write(&file, &form.xml).unwrap();
            }
            let found = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                found == form.xml,
                "{path} is not {} in XML: UPDATE_REFERENCE=1 cargo test xml_samples",
                form.sample.name
            );
        }
    }
}
