//! Reads other systems' files as contracts, in the order of their work.

use std::collections::HashSet;

use chrono::{DateTime, FixedOffset};
use handoff::base::finding::FindingCode;
use handoff::base::ids::IssueKey;
use handoff::base::text::{quoted, without_mark};
use handoff::contract::Input;
use handoff::ledger::ContractMatch;
use serde::Deserialize;
use serde_json::Value;

use super::deliver::{Delivery, Importer, names_issue};
use super::fault::Fault;
use super::files::Folder;
use super::line::STEPS;
use super::places::{ARCHIVE, DOCUMENTS, ENDS, ENTRIES, FAILED, LINES, LOG, PROTOCOLS};
use super::{ExchangeError, Layout, Source, states};

/// The issue of a log's entries if none is given.
const LOG_ISSUE: &str = "log";

/// The maximum size of a log in a single document, in bytes.
const LONGEST_LOG: u64 = 64 << 20;

/// Detects the format of a folder or of a file in it.
pub(super) fn source_of(folder: &Folder, file: Option<&str>) -> Source {
    let layout = match file {
        Some(STEPS) => return Source::Steps,
        Some(LINES) => Layout::Archive,
        Some(file) if is_failed(file) || is_log(folder, file) => Layout::Log,
        Some(_) => Layout::Files,
        None if folder.has(STEPS) => return Source::Steps,
        None if states::top_of(folder).is_some() => Layout::Folders,
        None if folder.has(LOG) => Layout::Log,
        None if folder.has(FAILED) => Layout::Log,
        None if folder.has(LINES) || folder.has_folder(ARCHIVE) => Layout::Archive,
        None => Layout::Files,
    };
    Source::Layout(layout)
}

/// Whether a file describes a failed handoff.
fn is_failed(file: &str) -> bool {
    file.rsplit('/').next() == Some(FAILED)
}

/// Whether a file is a log in a single document.
fn is_log(folder: &Folder, file: &str) -> bool {
    let bytes = folder.read_up_to(file, LONGEST_LOG).unwrap_or_default();
    #[derive(Deserialize)]
    struct Log {
        #[serde(rename = "handoff_log")]
        _entries: Vec<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Log>(without_mark(&bytes)).is_ok()
}

pub(super) fn read(
    folder: &Folder,
    file: Option<&str>,
    layout: Layout,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    match (layout, file) {
        (Layout::Log, file) => log(folder, file, importer),
        (Layout::Archive, file) => archive(folder, file.unwrap_or(LINES), importer),
        (Layout::Files | Layout::Folders, Some(file)) => states::single(folder, file, importer),
        (Layout::Files, None) => {
            for file in contracts_in(folder)? {
                one(folder, &file, importer)?;
            }
            Ok(())
        }
        (Layout::Folders, None) => states::read(folder, importer),
    }
}

/// Every file of a folder that may be a contract, except files of exports.
fn contracts_in(folder: &Folder) -> Result<Vec<String>, ExchangeError> {
    let mut files = folder.list("", &ENDS)?;
    files.retain(|file| {
        let within = |top: &str| file.strip_prefix(top).is_some_and(|f| f.starts_with('/'));
        !within(PROTOCOLS) && !within(DOCUMENTS)
    });
    Ok(files)
}

/// Imports a file with a single contract.
fn one(
    folder: &Folder,
    file: &str,
    importer: &mut Importer<'_, '_>,
) -> Result<bool, ExchangeError> {
    match folder.contract(file) {
        Ok(bytes) => importer.deliver(&[Delivery::new(file, bytes)]),
        Err(fault) => {
            importer.refuse(file, fault);
            Ok(false)
        }
    }
}

/// Imports a log whose entries are contracts, and the files of failed handoffs, by time.
fn log(
    folder: &Folder,
    file: Option<&str>,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    let (logs, failed) = match file {
        Some(file) if is_failed(file) => (None, vec![file.to_owned()]),
        Some(file) => (Some(file), Vec::new()),
        None => {
            let mut failed = folder.list("", &[FAILED])?;
            failed.retain(|file| is_failed(file));
            (Some(LOG).filter(|log| folder.has(log)), failed)
        }
    };
    let mut found = Vec::new();
    if let Some(file) = logs {
        match entries(folder, file) {
            Ok(entries) => found.extend(entries),
            Err(fault) => importer.refuse(file, fault),
        }
    }
    for file in failed {
        match folder.contract(&file) {
            Ok(bytes) => {
                let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let at = time(&value["failed_at"]);
                found.push(Delivery {
                    at,
                    ..Delivery::new(&file, bytes)
                });
            }
            Err(fault) => importer.refuse(&file, fault),
        }
    }
    if importer.issue.is_none() {
        importer.issue = LOG_ISSUE.parse().ok();
    }
    found.sort_by_key(|item| item.at.map_or(i64::MAX, |at| at.timestamp_millis()));
    for item in found {
        importer.deliver(&[item])?;
    }
    Ok(())
}

/// The entries of a log.
fn entries(folder: &Folder, file: &str) -> Result<Vec<Delivery>, Fault> {
    let refused = |text: String| Fault::unreadable(FindingCode::ImportEntries, text);
    let bytes = folder.read_up_to(file, LONGEST_LOG)?;
    if bytes.len() as u64 > LONGEST_LOG {
        return Err(refused(format!("at most {LONGEST_LOG} bytes are read")));
    }
    let document: Value = serde_json::from_slice(without_mark(&bytes))
        .map_err(|e| refused(format!("it is not JSON: {e}")))?;
    let Some(Value::Array(entries)) = document.get(ENTRIES) else {
        return Err(refused(format!("it has no list `{ENTRIES}`")));
    };
    let delivery = |(index, entry): (usize, &Value)| {
        let mut bytes = serde_json::to_vec_pretty(entry).expect("a value has string keys");
        bytes.push(b'\n');
        Delivery {
            at: time(&entry["timestamp"]),
            ..Delivery::new(&format!("{file}#/{ENTRIES}/{index}"), bytes)
        }
    };
    Ok(entries.iter().enumerate().map(delivery).collect())
}

fn time(value: &Value) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(value.as_str()?).ok()
}

/// An entry of a line-based log; the contract has the rest.
#[derive(Deserialize)]
struct Entry {
    handoff_id: String,
}

/// Imports an archive in the order of its log. Contracts that the log does not name come last,
/// unless the log has a broken line where they may have been.
fn archive(
    folder: &Folder,
    file: &str,
    importer: &mut Importer<'_, '_>,
) -> Result<(), ExchangeError> {
    let mut unnamed: Vec<String> = Vec::new();
    if folder.has_folder(ARCHIVE) {
        unnamed = folder.list(ARCHIVE, &ENDS)?;
    }
    let mut order: Vec<(String, Result<String, Fault>)> = Vec::new();
    if folder.has(file) {
        match folder.lines(file) {
            Ok(lines) => {
                for line in lines {
                    let line = line?;
                    let place = format!("{file}:{}", line.number);
                    order.push((place, entry(line.text.as_deref(), &unnamed)));
                }
            }
            Err(fault) => importer.refuse(file, fault),
        }
    }
    let named = order
        .iter()
        .filter_map(|(_, contract)| contract.as_ref().ok());
    let named: HashSet<&String> = named.collect();
    unnamed.retain(|contract| !named.contains(contract));
    // An unmatched line blocks later ones of its issue.
    let mut held: HashSet<Option<IssueKey>> = HashSet::new();
    for (place, contract) in order {
        match contract {
            Ok(contract) => {
                let key = issue_of(folder, &contract, importer)?;
                if held.contains(&key) {
                    importer.refuse(&contract, behind());
                } else {
                    one(folder, &contract, importer)?;
                }
            }
            Err(fault) => {
                if fault.is_of(FindingCode::ImportLine) {
                    for contract in &unnamed {
                        held.insert(issue_of(folder, contract, importer)?);
                    }
                }
                importer.refuse(&place, fault);
            }
        }
    }
    for contract in unnamed {
        let key = issue_of(folder, &contract, importer)?;
        if held.contains(&key) {
            importer.refuse(&contract, behind());
        } else {
            one(folder, &contract, importer)?;
        }
    }
    Ok(())
}

fn behind() -> Fault {
    let why = "the log is broken where a contract of its issue may have been".to_owned();
    Fault::Behind { why }
}

/// The contract of a log's line.
fn entry(text: Option<&str>, contracts: &[String]) -> Result<String, Fault> {
    let broken = |text: String| Fault::unreadable(FindingCode::ImportLine, text);
    let text = text.ok_or_else(|| broken("the line is too long, or is not UTF-8".to_owned()))?;
    let entry: Entry = serde_json::from_str(text)
        .map_err(|error| broken(format!("the line is no entry: {error}")))?;
    let id = &entry.handoff_id;
    let paths = ENDS.map(|end| format!("{ARCHIVE}/{id}{end}"));
    let mut found = contracts.iter().filter(|file| paths.contains(file));
    found.next().cloned().ok_or_else(|| {
        let text = format!("{ARCHIVE} has no contract {}", quoted(id));
        Fault::unreadable(FindingCode::ImportContract, text)
    })
}

/// The issue that a contract names, or the common issue of those that name none.
fn issue_of(
    folder: &Folder,
    contract: &str,
    importer: &Importer<'_, '_>,
) -> Result<Option<IssueKey>, ExchangeError> {
    let Ok(bytes) = folder.contract(contract) else {
        return Ok(None);
    };
    let tip = importer.ledger.tip()?;
    let input = Input::read(&bytes);
    let (ContractMatch { rules, review }, _) = importer.match_file(&tip, &input, contract)?;
    Ok(review
        .contract
        .filter(|contract| names_issue(&rules, contract))
        .map(|contract| contract.issue))
}
