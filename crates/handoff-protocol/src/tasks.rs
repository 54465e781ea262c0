//! Tasks: reads them from a contract, and checks that they are consistent.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::{counted, counted_as, quoted};
use serde_json::Value;

use crate::definition::TaskFields;
use crate::term;

/// The maximum length of a task's name, in bytes.
const MAX_ID: usize = 128;

/// The maximum number of tasks that one contract may open: each becomes a handoff.
const MAX_TASKS: usize = 1000;

/// The tasks that a contract names.
#[derive(Clone, Debug, Default)]
pub struct TaskPlan {
    /// The task of which the others are parts.
    pub parent: Option<String>,
    /// The tasks to hand over, in order.
    pub opens: Vec<String>,
    /// Their titles, where given.
    pub titles: BTreeMap<String, String>,
    /// The dependencies of each of them.
    pub dependencies: BTreeMap<String, Vec<String>>,
    /// The order of all tasks, if given.
    pub order: Vec<String>,
    /// The task to begin with, if given.
    pub start: Option<String>,
    /// Groups of tasks that can be done at the same time.
    pub groups: Vec<Vec<String>>,
    /// The completed task.
    pub completes: Option<String>,
    /// All tasks with the same parent, if listed.
    pub siblings: Vec<String>,
}

impl TaskFields {
    /// Reads the tasks from a contract.
    pub fn read(&self, contract: &Value) -> TaskPlan {
        let at = |pointer: &Option<String>| contract.pointer(pointer.as_deref()?);
        let one = |pointer| at(pointer).and_then(Value::as_str).map(str::to_owned);
        let dependencies = at(&self.dependencies).and_then(Value::as_object);
        let groups = match at(&self.groups) {
            Some(Value::Array(groups)) => groups.as_slice(),
            other => other.map_or(&[][..], std::slice::from_ref),
        };
        let (order, start) = (names(at(&self.order)), one(&self.start));
        let mut opens = names(at(&self.opens));
        let place = |id: &String| order.iter().position(|o| o == id).unwrap_or(usize::MAX);
        opens.sort_by_cached_key(|id| (start.as_ref() != Some(id), place(id)));
        TaskPlan {
            parent: one(&self.parent),
            titles: titles(at(&self.titles).or(at(&self.opens)), &opens),
            opens,
            dependencies: dependencies
                .into_iter()
                .flatten()
                .map(|(task, on)| (task.clone(), names(Some(on))))
                .collect(),
            order,
            start,
            groups: groups.iter().map(|g| names(Some(g))).collect(),
            completes: one(&self.completes),
            siblings: names(at(&self.siblings)),
        }
    }

    /// The contradictions in a plan, at JSON Pointers.
    pub fn faults(&self, contract: &Value, plan: &TaskPlan) -> Vec<Finding> {
        let count = plan.opens.len();
        if count > MAX_TASKS {
            let text = format!("{count} tasks at once, and at most {MAX_TASKS} are opened");
            return vec![fault(FindingCode::TaskCount, &self.opens, text)];
        }
        let mut found = self.name_faults(plan);
        let weights = self.weights.as_deref().and_then(|p| contract.pointer(p));
        let weights = weights.and_then(Value::as_array).map(Vec::len);
        if let Some(weights) = weights.filter(|weights| *weights != count) {
            let text = format!(
                "{} for {}",
                counted_as(weights, "entr", ["y", "ies"]),
                counted(count, "task")
            );
            found.push(fault(FindingCode::TaskCount, &self.weights, text));
        }
        found.extend(self.orphans(plan));
        if let Some(circle) = plan.circle() {
            let text = format!("the tasks wait for one another: {}", circle.join(" → "));
            found.push(fault(FindingCode::TaskCycle, &self.dependencies, text));
            return found;
        }
        found.extend(self.order_faults(plan));
        if let (Some(done), false) = (&plan.completes, plan.siblings.is_empty())
            && !plan.siblings.contains(done)
        {
            let text = format!("{} is not among its own siblings", quoted(done));
            found.push(fault(FindingCode::TaskOrphan, &self.siblings, text));
        }
        found
    }

    /// Tasks that are listed twice, and invalid names of tasks.
    fn name_faults(&self, plan: &TaskPlan) -> Vec<Finding> {
        let mut found = Vec::new();
        for (list, pointer) in [(&plan.opens, &self.opens), (&plan.order, &self.order)] {
            if let Some(twice) = repeated(list) {
                let text = format!("task {} is listed twice", quoted(twice));
                found.push(fault(FindingCode::TaskDuplicate, pointer, text));
            }
        }
        let all = plan.opens.iter().chain(&plan.parent).chain(&plan.completes);
        for id in all.filter(|id| id.is_empty() || id.len() > MAX_ID) {
            let text = format!(
                "{} cannot be a task's name: 1 to {MAX_ID} bytes",
                quoted(id)
            );
            found.push(fault(FindingCode::TaskName, &self.opens, text));
        }
        found
    }

    /// Handed-over tasks that are not in the order, and tasks named elsewhere that are not handed
    /// over.
    fn orphans(&self, plan: &TaskPlan) -> Vec<Finding> {
        let orphan = |pointer, text| fault(FindingCode::TaskOrphan, pointer, text);
        let known: BTreeSet<&str> = plan.opens.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        let tasks = plan.dependencies.keys();
        for task in tasks.filter(|t| !known.contains(t.as_str())) {
            let text = format!("{} has dependencies, and is not handed over", quoted(task));
            found.push(orphan(&self.dependencies, text));
        }
        if !plan.order.is_empty() {
            for task in plan.opens.iter().filter(|t| !plan.order.contains(t)) {
                let text = format!("{} has no place in the order", quoted(task));
                found.push(orphan(&self.order, text));
            }
        }
        let lists = std::iter::once((&plan.order, &self.order));
        for (list, pointer) in lists.chain(plan.groups.iter().map(|g| (g, &self.groups))) {
            for task in list.iter().filter(|t| !known.contains(t.as_str())) {
                let text = format!(
                    "{} is not among the tasks that are handed over",
                    quoted(task)
                );
                found.push(orphan(pointer, text));
            }
        }
        found
    }

    /// Tasks that are ordered before, or grouped with, one of their dependencies.
    fn order_faults(&self, plan: &TaskPlan) -> Vec<Finding> {
        let mut found = Vec::new();
        for (i, task) in plan.order.iter().enumerate() {
            let later = |on: &&String| plan.order[i..].contains(on);
            if let Some(on) = plan.on(task).iter().find(later) {
                let text = format!(
                    "{} comes before {}, which it depends on",
                    quoted(task),
                    quoted(on)
                );
                found.push(fault(FindingCode::TaskOrder, &self.order, text));
            }
        }
        if let Some(start) = &plan.start
            && let Some(on) = plan.on(start).iter().find(|on| plan.opens.contains(on))
        {
            let (start, on) = (quoted(start), quoted(on));
            let text = format!("{start} can't be the first: it depends on {on}");
            found.push(fault(FindingCode::TaskOrder, &self.start, text));
        }
        for group in &plan.groups {
            for task in group {
                let needs = plan.all_on(task);
                if let Some(other) = group.iter().find(|other| needs.contains(other.as_str())) {
                    let text = format!(
                        "{} depends on {}, and can't be done at the same time",
                        quoted(task),
                        quoted(other)
                    );
                    found.push(fault(FindingCode::TaskGroup, &self.groups, text));
                }
            }
        }
        found
    }
}

impl TaskPlan {
    /// A task's direct dependencies.
    pub fn on(&self, task: &str) -> &[String] {
        self.dependencies.get(task).map_or(&[], Vec::as_slice)
    }

    /// A task's transitive dependencies.
    fn all_on<'a>(&'a self, task: &str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&'a String> = self.on(task).iter().collect();
        while let Some(on) = next.pop() {
            if found.insert(on.as_str()) {
                next.extend(self.on(on));
            }
        }
        found
    }

    /// A cycle of dependencies, if there is one; its first task is repeated at the end.
    pub fn circle(&self) -> Option<Vec<&str>> {
        // Remove tasks without remaining dependencies until only cycles are left.
        let mut left: BTreeSet<&str> = self.dependencies.keys().map(String::as_str).collect();
        loop {
            let waits = |task: &&str| self.on(task).iter().any(|on| left.contains(on.as_str()));
            let still: BTreeSet<&str> = left.iter().copied().filter(|t| waits(t)).collect();
            if still.len() == left.len() {
                break;
            }
            left = still;
        }
        let mut path = vec![*left.first()?];
        loop {
            let last = path.last()?;
            let on = self.on(last).iter().find(|on| left.contains(on.as_str()))?;
            let start = path.iter().position(|seen| seen == on);
            path.push(on);
            if let Some(start) = start {
                return Some(path.split_off(start));
            }
        }
    }
}

fn fault(code: FindingCode, pointer: &Option<String>, text: String) -> Finding {
    Finding::error(code, pointer.clone().unwrap_or_default(), text)
}

fn names(value: Option<&Value>) -> Vec<String> {
    value.map_or_else(Vec::new, |value| {
        term::names(std::slice::from_ref(value)).collect()
    })
}

/// The titles by task. A key may have words before the task's name.
fn titles(value: Option<&Value>, tasks: &[String]) -> BTreeMap<String, String> {
    let named = value.and_then(Value::as_object).into_iter().flatten();
    let ends: Vec<String> = tasks.iter().map(|task| term::key_of(task)).collect();
    let texts = named.filter_map(|(key, title)| {
        let is_end = |end: &String| key.strip_suffix(end).is_some_and(|s| s.ends_with('_'));
        let place = tasks.iter().position(|task| task == key);
        let place = place.or_else(|| ends.iter().position(is_end))?;
        Some((tasks[place].clone(), title.as_str()?.to_owned()))
    });
    texts.collect()
}

fn repeated(list: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    list.iter().find(|id| !seen.insert(*id))
}

#[cfg(test)]
mod tests {
    use super::TaskFields;
    use serde_json::{Value, json};

    fn fields() -> TaskFields {
        let fields = json!({"parent": "/p", "opens": "/t", "weights": "/w", "dependencies": "/d",
            "order": "/o", "start": "/b", "groups": "/g", "completes": "/c", "siblings": "/s"});
        serde_json::from_value(fields).expect("the fields are as they should be")
    }

    fn codes(contract: &Value) -> Vec<String> {
        let fields = fields();
        let found = fields.faults(contract, &fields.read(contract));
        found
            .into_iter()
            .map(|f| format!("{} {}: {}", f.code, f.path, f.message))
            .collect()
    }

    #[test]
    fn a_plan_that_fits_together_has_no_fault() {
        let plan = json!({"p": "9", "t": ["a", "b", "c"], "w": [1, 2, 3], "d": {"b": ["a"], "c": ["a"]},
            "o": ["a", "b", "c"], "g": [["b", "c"]]});
        assert_eq!(codes(&plan), Vec::<String>::new());
        let message = json!({"t": {"a": "one", "b": "two"}, "d": {"a": [], "b": ["a"]}});
        assert_eq!(codes(&message), Vec::<String>::new());
        assert_eq!(
            codes(&json!({"c": "a", "s": "[a, b]"})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn tasks_are_handed_out_from_the_start_in_their_order() {
        let opens = |contract: Value| fields().read(&contract).opens;
        let plan = json!({"t": ["a", "b", "c"], "o": ["c", "a", "b"]});
        assert_eq!(opens(plan), ["c", "a", "b"]);
        let message = json!({"t": {"a": "one", "b": "two", "c": "three"}, "b": "b"});
        assert_eq!(opens(message), ["b", "a", "c"]);
    }

    #[test]
    fn every_contradiction_is_named() {
        let table = [
            (
                json!({"t": ["a", "a"]}),
                r#"task.duplicate /t: task "a" is listed twice"#,
            ),
            (
                json!({"t": ["a"], "w": [1, 2]}),
                r#"task.count /w: 2 entries for 1 task"#,
            ),
            (
                json!({"t": ["a"], "d": {"z": []}}),
                r#"task.orphan /d: "z" has dependencies, and is not handed over"#,
            ),
            (
                json!({"t": ["a", "b"], "o": ["a"]}),
                r#"task.orphan /o: "b" has no place in the order"#,
            ),
            (
                json!({"t": ["a"], "g": [["z"]]}),
                r#"task.orphan /g: "z" is not among the tasks that are handed over"#,
            ),
            (
                json!({"t": ["a", "b"], "d": {"a": ["b"], "b": ["a"]}}),
                r#"task.cycle /d: the tasks wait for one another: a → b → a"#,
            ),
            (
                json!({"t": ["a"], "d": {"a": ["a"]}}),
                r#"task.cycle /d: the tasks wait for one another: a → a"#,
            ),
            (
                json!({"t": ["a", "b"], "d": {"a": ["b"]}, "o": ["a", "b"]}),
                r#"task.order /o: "a" comes before "b", which it depends on"#,
            ),
            (
                json!({"t": ["a", "b", "c"], "d": {"c": ["b"], "b": ["a"]}, "g": [["a", "c"]]}),
                r#"task.group /g: "c" depends on "a", and can't be done at the same time"#,
            ),
            (
                json!({"t": ["a", "b", "c"], "d": {"c": ["b"]}, "g": "[b, c] after a"}),
                r#"task.group /g: "c" depends on "b", and can't be done at the same time"#,
            ),
            (
                json!({"t": ["a", "b"], "d": {"b": ["a"]}, "b": "b"}),
                r#"task.order /b: "b" can't be the first: it depends on "a""#,
            ),
            (
                json!({"t": [""]}),
                r#"task.name /t: "" cannot be a task's name: 1 to 128 bytes"#,
            ),
            (
                json!({"c": "a", "s": ["b"]}),
                r#"task.orphan /s: "a" is not among its own siblings"#,
            ),
        ];
        for (contract, expected) in table {
            assert_eq!(codes(&contract), [expected], "{contract}");
        }
    }
}
