//! The code of every finding.

use super::{ExplainedCode, after, codes};

codes! {
    /// The code of a finding.
    FindingCode {
    "Findings in contracts" {
        /// - cause: `check`: the file does not exist
        /// - example: `git handoff check contracts/*.xml` when no file matches the pattern
        /// - cure: name an existing file, or `-`
        InputNotFound = "input.not_found";

        /// - cause: the path is a folder, a device or a socket
        /// - example: `git handoff check contracts/`
        /// - cure: name a file
        InputNotAFile = "input.not_a_file";

        /// - cause: the file can't be read
        /// - example: a file with mode 000
        /// - cure: grant permission
        InputUnreadable = "input.unreadable";

        /// - cause: the input is empty or only white space
        /// - example: an editor was closed before anything was written
        /// - cure: write the contract
        InputEmpty = "input.empty";

        /// - cause: the input is larger than 1 MiB
        /// - example: a contract with a whole diff in its summary
        /// - cure: refer to large data instead of including it
        InputTooLarge = "input.too_large";

        /// - cause: the input contains bytes that are not UTF-8
        /// - example: `é` saved as Latin-1, the byte E9
        /// - cure: save it as UTF-8
        InputNotUtf8 = "input.not_utf8";

        /// - cause: the input is not XML, JSON or a Markdown message
        /// - example: a reply that begins with `Here is the contract:`
        /// - cure: begin with `<`, `{` or `HANDOFF:`
        InputUnknownFormat = "input.unknown_format";

        /// - cause: the text looks like a secret; `path` is its place, for event details for example `/failure/details`
        /// - example: `"summary": "log in with AKIA…"`
        /// - cure: remove it, and replace the secret wherever it is used; if it is not a secret, allow it as `RULE@PLACE`
        SecretFound = "secret.found";

        /// - cause: a text contains a character that a contract can't hold
        /// - example: terminal colour codes in a pasted log
        /// - cure: remove it
        TextControlCharacter = "text.control_character";

        /// - cause: the XML is not well-formed
        /// - example: `<summary>parse & print</summary>`
        /// - cure: write `&` as `&amp;` and `<` as `&lt;`; close every element
        XmlSyntax = "xml.syntax";

        /// - cause: the XML version is not 1.0
        /// - example: `<?xml version="1.1"?>`
        /// - cure: declare 1.0, or nothing
        XmlVersion = "xml.version";

        /// - cause: the declared encoding is not UTF-8
        /// - example: `<?xml version="1.0" encoding="ISO-8859-1"?>`
        /// - cure: save the file as UTF-8, and declare that or nothing
        XmlEncoding = "xml.encoding";

        /// - cause: the XML has a document type or entities
        /// - example: `<!DOCTYPE handoff [<!ENTITY x "…">]>`
        /// - cure: remove it, and write entities out
        XmlDoctype = "xml.doctype";

        /// - cause: the XML uses a namespace or a prefix
        /// - example: `<h:handoff xmlns:h="urn:x">`
        /// - cure: remove it
        XmlNamespace = "xml.namespace";

        /// - cause: elements nest deeper than 64 levels
        /// - example: 65 elements, each inside the one before
        /// - cure: nest less
        XmlTooDeep = "xml.too_deep";

        /// - cause: an element has more than 64 attributes
        /// - example: `<handoff a1="" a2="" … a65="">`
        /// - cure: use elements
        XmlTooManyAttributes = "xml.too_many_attributes";

        /// - cause: there is an element where text belongs
        /// - example: `<summary>use <b>bold</b></summary>`
        /// - cure: write `<` as `&lt;`, or only the text
        XmlUnexpectedElement = "xml.unexpected_element";

        /// - cause: there is text where elements belong
        /// - example: `<requirements>all of it</requirements>` in place of a list of `<requirement>`
        /// - cure: put it into an element
        XmlUnexpectedText = "xml.unexpected_text";

        /// - cause: the JSON is not valid
        /// - example: `{"from": "prep-agent",}`
        /// - cure: fix it at the line and column
        JsonSyntax = "json.syntax";

        /// - cause: a key appears twice
        /// - example: `{"to": "fixer-agent", "to": "validator-agent"}`
        /// - cure: keep one
        JsonDuplicateKey = "json.duplicate_key";

        /// - cause: a number is out of range
        /// - example: `{"attempt": 1e400}`
        /// - cure: write a smaller number, or text
        JsonNumberRange = "json.number_range";

        /// - cause: values nest deeper than 64 levels
        /// - example: 65 lists, each inside the one before
        /// - cure: nest less
        JsonTooDeep = "json.too_deep";

        /// - cause: the top level is a list or a scalar
        /// - example: `[{"from": "prep-agent"}]`
        /// - cure: write one object
        JsonNotAnObject = "json.not_an_object";

        /// - cause: the title is not `HANDOFF: A → B`
        /// - example: `HANDOFF: prep to implementer`
        /// - cure: name one sender, one arrow and one receiver
        MarkdownTitle = "markdown.title";

        /// - cause: the title names other agents than the contract in the message
        /// - example: the title says `HANDOFF: A → B`, but the JSON below it says `"from": "C"`
        /// - cure: use the same names in both
        MarkdownParties = "markdown.parties";

        /// - cause: a second line begins with `HANDOFF:`
        /// - example: two messages pasted into one
        /// - cure: send each handoff as a separate message
        MarkdownSecondTitle = "markdown.second_title";

        /// - cause: there is text between the title and the first heading
        /// - example: `Hello, this is my handoff.` below the title
        /// - cure: put it under a heading in capitals, such as `STATUS:`
        MarkdownTextBeforeSection = "markdown.text_before_section";

        /// - cause: two sections, or two bullets of a section, have the same key
        /// - example: `STATUS:` twice
        /// - cure: keep one, or rename one
        MarkdownDuplicateKey = "markdown.duplicate_key";

        /// - cause: a section or a bullet is empty
        /// - example: `FILES:` with nothing below it
        /// - cure: fill it in, or remove it
        MarkdownEmpty = "markdown.empty";

        /// - cause: one section mixes JSON, bullets and lines of text
        /// - example: a bullet followed by a paragraph, below `SUMMARY:`
        /// - cure: use a separate section for each
        MarkdownMixed = "markdown.mixed";

        /// - cause: a code block in a section contains no JSON object or list
        /// - example: a fenced block of shell commands below `STATUS:`
        /// - cure: write JSON, or text without the fence
        MarkdownCodeBlock = "markdown.code_block";

        /// - cause: JSON or a code block is not closed
        /// - example: a message that ends halfway through its JSON
        /// - cure: close it; the message may be cut off
        MarkdownUnclosed = "markdown.unclosed";

        /// - cause: there is text after the closing rule or fence
        /// - example: `Let me know!` below the closing rule
        /// - cure: remove it, or move it above the rule
        MarkdownTextAfterEnd = "markdown.text_after_end";

        /// - cause: the protocol does not accept this format
        /// - example: a Markdown message in a protocol that accepts XML and JSON
        /// - cure: use a format that the fix names
        ContractFormat = "contract.format";

        /// - cause: the contract could be of several types, and names neither sender nor receiver
        /// - example: `{"summary": "done"}`
        /// - cure: name its sender and receiver
        ContractType = "contract.type";

        /// - cause: the contract follows a built-in protocol that this ledger does not have
        /// - example: a contract with `sourceAgent` and `handoffTo` in a ledger that has only `issue-to-pr`
        /// - cure: put that protocol in force with the command that the fix names, or write a contract of one that is in force
        ContractNotInForce = "contract.not_in_force";

        /// - cause: the root, or the wrapper of a JSON contract, is wrong
        /// - example: `<contract>` in place of `<handoff>`
        /// - cure: use one that the fix names
        ContractRoot = "contract.root";

        /// - cause: an agent's name is malformed
        /// - example: `<from>prep agent</from>`: a name can't contain a space
        /// - cure: use a name of the protocol
        AgentName = "agent.name";

        /// - cause: the agent is not part of the protocol
        /// - example: `<to>tester-agent</to>`
        /// - cure: use a name from the fix
        AgentUnknown = "agent.unknown";

        /// - cause: the protocol has no route between these two agents
        /// - example: from prep-agent to closer-agent
        /// - cure: send to an agent that the fix names
        RouteUnknown = "route.unknown";

        /// - cause: the protocol forbids this route, and gives a reason
        /// - example: from one specialist to another, when only the orchestrator hands out work
        /// - cure: send to an agent that the fix names
        RouteForbidden = "route.forbidden";

        /// - cause: the contract names no issue (a note in `check`), a malformed one, or a different one than `--issue`
        /// - example: `<issue_number>twelve</issue_number>`, or 12 with `--issue 13`
        /// - cure: name the issue in the contract, or with `--issue`
        EnvelopeIssue = "envelope.issue";

        /// - cause: a warning: a request says that its receiver is already working
        /// - example: `"status": "in_progress"` in a new request
        /// - cure: send it as it is: it waits to be claimed
        StatusClaimed = "status.claimed";

        /// - cause: the status says that the work failed or is blocked, in a contract that ends the issue
        /// - example: `<status>failure</status>` in a contract to `workflow-complete`
        /// - cure: send it to the agent that decides what follows, or fail what you hold: `git handoff fail ID --message WHY`
        StatusClosing = "status.closing";

        /// - cause: the status says that the sender is still working
        /// - example: `"status": "IN_PROGRESS"` in the contract that hands the work on
        /// - cure: send it when the work is done, failed or blocked
        StatusUnfinished = "status.unfinished";

        /// - cause: a required field is missing
        /// - example: a contract without `<summary>`
        /// - cure: add it
        FieldMissing = "field.missing";

        /// - cause: the type has no such field
        /// - example: `<sumary>`
        /// - cure: correct its spelling, or remove it
        FieldUnknown = "field.unknown";

        /// - cause: a field appears twice
        /// - example: `<branch>` twice
        /// - cure: keep one
        FieldRepeated = "field.repeated";

        /// - cause: a placeholder of the skeleton is left
        /// - example: `<summary>{{fill: what this issue asks for, in one line}}</summary>`
        /// - cure: replace it with what it asks for; what `{{fill by send: …}}` asks for too, if `send` can't tell it
        FieldUnfilled = "field.unfilled";

        /// - cause: the value lists all choices; a warning in the examples that the protocol names
        /// - example: `<type>feature, bug, enhancement, refactor or chore</type>`
        /// - cure: pick one
        FieldUndecided = "field.undecided";

        /// - cause: a value has the wrong type
        /// - example: `<attempt>three</attempt>`
        /// - cure: write a value of the right type
        FieldType = "field.type";

        /// - cause: the value is not one of the allowed values
        /// - example: `<priority>urgent</priority>` when the allowed values are critical, high, medium and low
        /// - cure: use one of them
        FieldValue = "field.value";

        /// - cause: the text is blank or does not have the right form
        /// - example: `"sha": "latest"` in place of forty hexadecimal digits
        /// - cure: write it as the fix describes
        FieldPattern = "field.pattern";

        /// - cause: the value does not have the required format, such as a date
        /// - example: `"created_at": "yesterday"`
        /// - cure: write it as the fix shows
        FieldFormat = "field.format";

        /// - cause: the value is too short, too long, or empty
        /// - example: `<summary></summary>`
        /// - cure: write more or less
        FieldLength = "field.length";

        /// - cause: a number is out of range
        /// - example: `<coverage>120</coverage>`
        /// - cure: write a number within the range
        FieldRange = "field.range";

        /// - cause: the value breaks another rule of the schema
        /// - example: a list with a duplicate entry, when entries must be unique
        /// - cure: read the message
        FieldInvalid = "field.invalid";

        /// - cause: the contract names a schema that the protocol does not have
        /// - example: `"expected_output": {"schema": "report-v9"}`
        /// - cure: use a schema that the fix names
        SchemaUnknown = "schema.unknown";

        /// - cause: the protocol has no such error code
        /// - example: `"code": "E999"` when the protocol lists its codes
        /// - cure: use a code that the fix names
        ErrorUnknown = "error.unknown";

        /// - cause: the request expects an artifact, but the answer names none; `claim`, `verify` (a warning): a delivered file is gone
        /// - example: the request expects `docs/plan.md`, but the response names no artifact
        /// - cure: name the artifact, or restore the file
        /// - verify: A file that was delivered, and that nobody has taken up yet, is not here.
        ArtifactMissing = "artifact.missing";

        /// - cause: `claim`, `verify`: a delivered file was changed
        /// - example: someone edited `docs/plan.md` after it was delivered
        /// - cure: restore it, or reject the handoff
        /// - verify: A file that was delivered, and that nobody has taken up yet, is not what it was.
        ArtifactChanged = "artifact.changed";

        /// - cause: `claim`: the commit with which the work was handed on is not on the remote, or not on its branch there
        /// - example: the branch was deleted there, rewritten, or never pushed
        /// - cure: push it from the clone that has it, or reject the handoff
        CodeMissing = "code.missing";

        /// - cause: `claim ID`: another issue comes before it in the order in which work is merged into one base (`limits.turns`)
        /// - example: another validator is about to merge into `main`
        /// - cure: give it back, and use `claim --next`
        ClaimTurn = "claim.turn";

        /// - cause: `claim` of an issue's first handoff: another open issue touches a file that its contract names
        /// - example: both name `src/rates.rs`, or the other one's branch changes it
        /// - cure: say so in what is handed on, or let one wait: `git handoff set ISSUE after=OTHER`
        ClaimSameFiles = "claim.same_files";

        /// - cause: the artifact is not of the kind that the request expects
        /// - example: a `diagram`, when a `document` was requested
        /// - cure: deliver the requested kind
        ArtifactType = "artifact.type";

        /// - cause: the artifact's path is not the one that the request expects
        /// - example: `plan.md`, when `docs/plan.md` was requested
        /// - cure: deliver it there
        ArtifactDestination = "artifact.destination";

        /// - cause: the artifact's file does not match its schema
        /// - example: a `plan.json` without the key `steps`
        /// - cure: fix the file
        ArtifactSchema = "artifact.schema";

        /// - cause: the branch exists neither here nor on `origin`; an approval: it moved
        /// - example: `<branch>feature/12</branch>` was never pushed to `origin`
        /// - cure: create or fetch the branch, or name the right one
        EvidenceBranch = "evidence.branch";

        /// - cause: an id is not a commit, or not one that the branch added to its base
        /// - example: `<sha>` of a commit on main
        /// - cure: list the commits that the fix shows
        EvidenceCommits = "evidence.commits";

        /// - cause: the branch changes a different number of files, or different files
        /// - example: `<files_changed>3</files_changed>`, but `git diff --stat` shows 5
        /// - cure: use what the fix shows
        EvidenceFilesChanged = "evidence.files_changed";

        /// - cause: the branch gained a different number of commits since its sender received the work
        /// - example: `<commits_added>2</commits_added>`, but one was added
        /// - cure: use what the fix shows
        EvidenceCommitsAdded = "evidence.commits_added";

        /// - cause: the commit is not on the base branch, or was not made the way the contract says
        /// - example: `<merge_sha>` of a commit that is on the branch, but not on main
        /// - cure: name the commit that the merge created, and say how it was made
        EvidenceMerge = "evidence.merge";

        /// - cause: a merge lacks an approval, a person disapproved of the same code, or who sent a contract keeps it from counting
        /// - example: validator-agent reports a merge, and maintainer rejected that commit
        /// - cure: hand it back for new code, or let that person approve it
        EvidenceApproval = "evidence.approval";

        /// - cause: a delivered file does not exist
        /// - example: `"artifacts": ["docs/plan.md"]`, but the file does not exist
        /// - cure: deliver it
        EvidenceArtifacts = "evidence.artifacts";

        /// - cause: the sender changed a file that its role may not change
        /// - example: prep-agent commits to `src/`, which its role may not change
        /// - cure: revert that change, or hand over to an agent that may change the file
        EvidencePaths = "evidence.paths";

        /// - cause: the test report has different counts
        /// - example: `<tests>42 passed</tests>`, but the report counts 41
        /// - cure: use the report's counts
        EvidenceTests = "evidence.tests";

        /// - cause: the contract says that more tests were added than the test report has
        /// - example: `<tests_added>50</tests_added>`, but the report has 41 tests in all
        /// - cure: count the tests of this work
        EvidenceTestsAdded = "evidence.tests_added";

        /// - cause: the coverage report has a different percentage
        /// - example: `<coverage>90%</coverage>`, but the report says 87.5%
        /// - cure: use the report's percentage
        EvidenceCoverage = "evidence.coverage";

        /// - cause: a task's name is empty or too long
        /// - example: `"task_id": ""`
        /// - cure: use 1 to 128 bytes
        TaskName = "task.name";

        /// - cause: the contract lacks only what a profile for files of other systems allows
        /// - example: a file of a shared folder, without `priority` and `retry_policy`
        /// - cure: import it: `git handoff import FILE`; or add what the other findings name, and send it
        ContractImportable = "contract.importable";

        /// - cause: two places of the contract contradict each other, or one contradicts what is known of the issue; the message names both values, where the known one came from, and the rule in `consistency` of the protocol
        /// - example: `critical_count` is 2, and `blocking_issues` has one critical finding
        /// - cure: correct the value that is wrong; if the issue has changed, record that with `git handoff annotate ISSUE --fact NAME=VALUE --note 'WHY'`
        ContractInconsistent = "contract.inconsistent";

        /// - cause: a warning: two open issues share a fact that is marked `exclusive` (port, workspace, branch), or an issue's branch is the base
        /// - example: `<port>3107</port>` for issue 87, while issue 88 is open with port 3107
        /// - cure: use another one, or wait until nobody works on the other issue
        ContractShared = "contract.shared";

        /// - cause: a task is listed twice
        /// - example: `"tasks": ["2.1", "2.1"]`
        /// - cure: remove one
        TaskDuplicate = "task.duplicate";

        /// - cause: a list does not have one entry for each task, or more than 1,000 tasks are opened at once
        /// - example: three ids and two titles
        /// - cure: make the lists equal in length; open tasks in batches
        TaskCount = "task.count";

        /// - cause: a task has no known parent, or no place in the plan
        /// - example: task 2.1.1, when nobody handed over 2.1
        /// - cure: hand the parent over, or remove the task
        TaskOrphan = "task.orphan";

        /// - cause: a task depends on an unknown task
        /// - example: `"depends_on": ["9.9"]`
        /// - cure: name a task of the plan
        TaskUnknownDependency = "task.unknown_dependency";

        /// - cause: tasks wait for each other
        /// - example: 2.1 depends on 2.2, and 2.2 on 2.1
        /// - cure: remove one dependency
        TaskCycle = "task.cycle";

        /// - cause: a task is listed before one that it depends on
        /// - example: the plan lists 2.2 before 2.1, but 2.2 depends on 2.1
        /// - cure: list it after that task
        TaskOrder = "task.order";

        /// - cause: tasks of a parallel group depend on each other
        /// - example: 2.1 and 2.2 in one parallel group, and 2.2 depends on 2.1
        /// - cure: remove one of them from the group
        TaskGroup = "task.group";

        /// - cause: a task is not in the state that the contract implies: held by another agent, completed, or not begun
        /// - example: a contract completes task 2.1 while another agent holds it
        /// - cure: see `git handoff status ISSUE`
        TaskState = "task.state";

        /// - cause: a finding of a review has no answer yet, or its answer is disputed
        /// - example: `F2 (important, src/b.rs:9)` is in no `fix`, or is open when the reviewer approves
        /// - cure: answer it, as fixed or as skipped with the reason
        FindingOpen = "finding.open";

        /// - cause: a skipped finding is raised again on the same code
        /// - example: F1 was answered with `"skipped": true`, and no commit came since
        /// - cure: approve the work, or `block` and let a person decide
        FindingDismissed = "finding.dismissed";

        /// - cause: no review raised this finding
        /// - example: `<fix finding="F7" …>` in an issue with two findings
        /// - cure: name one that the message lists, as the fix says
        FindingUnknown = "finding.unknown";

        /// - cause: the file of `gate --policy` is not a policy: not JSON, an unknown key, another format, or no keys
        /// - example: `{"format": 1, "requires": ["approved"]}`
        /// - cure: fix the file: `git handoff help gate.md` describes it
        GatePolicy = "gate.policy";

        /// - cause: gate failed: something required is missing
        /// - example: a message without its context section
        /// - cure: fix the other findings
        GateRequiredFields = "gate.required_fields";

        /// - cause: gate failed: a value is wrong, or values contradict each other
        /// - example: three subtasks are announced, but two are listed
        /// - cure: fix the other findings
        GateDataIntegrity = "gate.data_integrity";

        /// - cause: gate failed: a task is not in the state that the contract implies
        /// - example: a contract completes a task that nobody began
        /// - cure: fix the other findings
        GateStateConsistency = "gate.state_consistency";

        /// - cause: gate failed: a task has no parent or no place in the plan
        /// - example: a subtask whose parent is not in the plan
        /// - cure: fix the other findings
        GateNoOrphanedTasks = "gate.no_orphaned_tasks";

        /// - cause: gate failed: the sender may not send this to this receiver now
        /// - example: planning sends to planning
        /// - cure: do what the error says
        GateValidTransition = "gate.valid_transition";

        /// - cause: the contract may not be sent now
        /// - example: a contract with a blank summary, from an agent that holds no work
        /// - cure: do what the fix says
        StepRefused = "step.refused";

        /// - cause: `import`: a named file does not exist, is not a file, or is outside the folder
        /// - example: `steps.jsonl` names `contracts/7.1.xml`, but the file does not exist
        /// - cure: put it into the folder
        ImportFile = "import.file";

        /// - cause: `import`: a line is not JSON, or is not a step or entry
        /// - example: a line of `steps.jsonl` that was cut off
        /// - cure: fix the line
        ImportLine = "import.line";

        /// - cause: `import`: `steps.jsonl` does not begin with its header
        /// - example: a `steps.jsonl` whose first line was removed
        /// - cure: export again
        ImportHeader = "import.header";

        /// - cause: `import`: a file does not match the line that names it
        /// - example: a contract was edited after the export
        /// - cure: replace it with the right file
        ImportSha256 = "import.sha256";

        /// - cause: `import`: a document's status does not belong into the folder that it lies in
        /// - example: `completed/r-7.json` with `"status": "failed"`
        /// - cure: find out what happened, then move the file or correct its status
        ImportState = "import.state";

        /// - cause: `import`: a log is not JSON, or has no list of entries
        /// - example: `handoff_log.json` is `{}`
        /// - cure: fix the log
        ImportEntries = "import.entries";

        /// - cause: `import`: a log names a contract that is not in the archive
        /// - example: the log has an entry `h-3`, but the archive has no `h-3.json`
        /// - cure: add the contract to the archive
        ImportContract = "import.contract";

        /// - cause: `import`: the request that an answer belongs to is neither in the ledger nor in the folder
        /// - example: `responses/r-7.json` without `requests/r-7.json`
        /// - cure: put the request into `requests`
        ImportRequest = "import.request";

        /// - cause: a requested key has no value, in `answer` or in a contract that answers
        /// - example: `git handoff answer 123.2 port=8080` when `host` is required too; `"status": "resolved"` without the inputs that were asked for
        /// - cure: give the key a value, or a status that says it is not all
        AnswerMissing = "answer.missing";

        /// - cause: a value has another type than was asked for, in `answer` or in a contract that answers
        /// - example: `port=soon` when `port:integer` was asked for
        /// - cure: write a value of that type
        AnswerType = "answer.type";

        /// - cause: nobody asked for this key, in `answer` or in a contract that answers
        /// - example: `prot=8080`
        /// - cure: leave it out
        AnswerUnknown = "answer.unknown";

        /// - cause: a note: there are more than 200 faults, and the rest are not listed
        /// - example: a log of 5,000 lines given as a contract
        /// - cure: fix those, then check again
        FindingsMore = "findings.more";
    }
    "Findings in protocols" {
        /// - cause: the file is not JSON, or not a valid protocol
        /// - example: a comma after the last agent
        /// - cure: fix it at the line and column
        ProtocolSyntax = "protocol.syntax";

        /// - cause: the key is one of an earlier form of the file, and is elsewhere now
        /// - example: `"leases": {"seconds": 60}`
        /// - cure: move it where the finding says; `git handoff protocol update NAME` does it for a built-in protocol
        ProtocolMoved = "protocol.moved";

        /// - cause: `format` is not 1, or a contract format is not `xml`, `json` or `md`
        /// - example: `"format": 2`
        /// - cure: use a supported value
        ProtocolFormat = "protocol.format";

        /// - cause: an agent, a priority or a contract type is defined twice
        /// - example: two agents with the id `reviewer-agent`
        /// - cure: rename or remove one
        ProtocolDuplicate = "protocol.duplicate";

        /// - cause: an agent is not defined
        /// - example: a route leads to `tester-agent`, which is not in `agents`
        /// - cure: define it, or correct the name
        ProtocolUnknownAgent = "protocol.unknown_agent";

        /// - cause: `secrets` allows an unknown rule
        /// - example: `"secrets": {"allow": ["no-such-rule"]}`
        /// - cure: correct the name
        ProtocolUnknownRule = "protocol.unknown_rule";

        /// - cause: a contract type is not defined
        /// - example: a route has the type `review`, which is not in `contracts`
        /// - cure: define it, or correct the name
        ProtocolUnknownType = "protocol.unknown_type";

        /// - cause: a rule or a schema has a word that is not in `words.status`
        /// - example: `"outcome": {"stuck": "block"}`, but `status` has no `stuck`
        /// - cure: add the word, or correct it
        ProtocolUnknownStatus = "protocol.unknown_status";

        /// - cause: the value is not a JSON Pointer to a field
        /// - example: `"from": "from"` instead of `"/from"`
        /// - cure: write it as `/from`
        ProtocolPointer = "protocol.pointer";

        /// - cause: a file's path leads outside the folder
        /// - example: `"schema": "../schema.json"`
        /// - cure: write a plain relative path
        ProtocolPath = "protocol.path";

        /// - cause: the root is not a valid element name
        /// - example: `"root": "1handoff"`
        /// - cure: rename it
        ProtocolRoot = "protocol.root";

        /// - cause: a route starts at the end, has no types, or is also forbidden; its contract's schema lists other agents; or no route opens an issue
        /// - example: a route that is also listed in `forbidden`
        /// - cure: fix the routes
        ProtocolRoute = "protocol.route";

        /// - cause: two types on one route can't be told apart by any field
        /// - example: two types from A to B, one of them without `when`
        /// - cure: give `when` of both types one field, with different values
        ProtocolAmbiguous = "protocol.ambiguous";

        /// - cause: nothing says where a type's sender or receiver is found
        /// - example: there is no `fields.to`, and a type does not imply its receiver
        /// - cure: name it in `fields`, or imply both
        ProtocolField = "protocol.field";

        /// - cause: a pointer leads to a field that is not in the schema
        /// - example: `"summary": "/sumary"`
        /// - cure: correct it, or add the field to the schema
        ProtocolUnknownField = "protocol.unknown_field";

        /// - cause: a pointer leads to a field of the wrong type for the rule
        /// - example: `"priority": "/requirements"`, which is a list
        /// - cure: point to another field, or change the schema
        ProtocolFieldType = "protocol.field_type";

        /// - cause: a schema, a template or an XSD is missing
        /// - example: `"schema": "schemas/review.schema.json"`, but the folder has no such file
        /// - cure: add the file
        ProtocolMissingFile = "protocol.missing_file";

        /// - cause: a schema is not JSON, or can't be used
        /// - example: `{"type": "strnig"}`
        /// - cure: fix it as the message says
        ProtocolSchema = "protocol.schema";

        /// - cause: a template is not a JSON object; or, as a warning, it lacks a field that the schema requires, so that `new` and printed commands lack it too
        /// - example: a template that is a list
        /// - cure: fix it; add the field, with a value or `"{{fill: what belongs there}}"`
        ProtocolTemplate = "protocol.template";

        /// - cause: the version is not a single word, or another definition in force already has it
        /// - example: `"version": "1 beta"`
        /// - cure: use another version
        ProtocolVersion = "protocol.version";

        /// - cause: a title is missing, or a title or role has several lines or invisible characters
        /// - example: `"title": ""`
        /// - cure: write one line
        ProtocolTitle = "protocol.title";

        /// - cause: the protocol checks something less strictly than the ledger's default one
        /// - example: it has no `allowed_signers`, or its check `commits` only warns
        /// - cure: make it as strict, or use `--weaker`
        ProtocolWeaker = "protocol.weaker";

        /// - cause: a list of texts is empty
        /// - example: `"when": {"/status": []}`
        /// - cure: name a text, or `*`
        ProtocolWhen = "protocol.when";

        /// - cause: a failure's code is not in `words.errors`
        /// - example: `"code": {"is": "E7"}`, but `errors` has no E7
        /// - cure: add it
        ProtocolErrorCode = "protocol.error_code";

        /// - cause: an entry of `examples` is not a SHA-256
        /// - example: `"examples": ["example-1.xml"]`
        /// - cure: write the digest of the example's content as JSON with sorted keys, as `jq -cSj . FILE | sha256sum` prints it
        ProtocolExample = "protocol.example";

        /// - cause: a `call` protocol has tasks, or a type both opens and completes tasks, or does neither
        /// - example: `tasks` in a protocol of style `call`
        /// - cure: choose one
        ProtocolTasks = "protocol.tasks";

        /// - cause: no route leads to the agent from where issues are opened
        /// - example: an agent that no route leads to
        /// - cure: add a route, or remove the agent
        ProtocolUnreachableAgent = "protocol.unreachable_agent";

        /// - cause: no contract can have the status word, or each that has it is refused
        /// - example: `"words": {"status": {"parked": "blocked"}}`, but no schema allows `parked`
        /// - cure: allow it in a schema, or remove it; make it `completed`
        ProtocolUnreachableState = "protocol.unreachable_state";

        /// - cause: no route uses this contract type
        /// - example: a contract type that no route names
        /// - cure: add it to a route, or remove it
        ProtocolUnusedType = "protocol.unused_type";

        /// - cause: an action is both allowed and forbidden, or a violation has no agent to go to
        /// - example: one agent has `merge` among both its allowed and its forbidden actions
        /// - cure: fix the agents
        ProtocolAction = "protocol.action";

        /// - cause: an entry of `claims` names nothing to check, or words and kinds refer to a field that is not named; as a note, no contract type has `claims`, so that `evidence` checks nothing
        /// - example: `"claims": {"merge": {}}`
        /// - cure: complete it, or remove it; `git handoff help evidence` lists what can be checked
        ProtocolClaims = "protocol.claims";

        /// - cause: a path pattern is invalid
        /// - example: `"paths": ["/src/**"]`: patterns start at the repository's root, without a slash
        /// - cure: write it as `src/**`, relative to the repository's root
        ProtocolPaths = "protocol.paths";

        /// - cause: a type answers requests in a relay, or has half of what compares its answers with questions
        /// - example: `"answers": true` in a relay
        /// - cure: use style `call`
        ProtocolAnswer = "protocol.answer";

        /// - cause: findings that nobody could answer or settles, or a type that has two parts in them
        /// - example: `raises` in a protocol in which no type has `fixes`; `"settles": true` on a type that raises findings
        /// - cure: let one type raise findings, another answer, a third settle them
        ProtocolFindings = "protocol.findings";

        /// - cause: a note can't answer a request
        /// - example: `"note": true` and `"answers": true` on one type
        /// - cure: choose one
        ProtocolNote = "protocol.note";

        /// - cause: a relay can't have `limits.loops`
        /// - example: `"limits": {"loops": …}` in a relay
        /// - cure: remove it
        ProtocolLoops = "protocol.loops";

        /// - cause: `protocol update`: an open handoff needs something that the new definition lacks
        /// - example: reviewer-agent is removed while 123.3 is open with it
        /// - cure: finish it, or keep what it needs
        ProtocolOrphan = "protocol.orphan";

        /// - cause: `protocol update`: the new version lacks `allowed_signers`, which the current one has
        /// - example: `git handoff protocol update ./our-way` from a folder without `allowed_signers`
        /// - cure: copy the file; one that lists no keys requires no signatures
        ProtocolSigners = "protocol.signers";

        /// - cause: a line of `allowed_signers` is not names, options, type and key
        /// - example: a line with a key and no name
        /// - cure: write it as `NAMES [OPTIONS] TYPE KEY`
        SignersSyntax = "signers.syntax";

        /// - cause: an option is unknown, duplicated, has an unquoted value, or excludes the namespace `git`
        /// - example: `cert-authority,namespaces="file"`
        /// - cure: use `namespaces`, `valid-after`, `valid-before`
        SignersOption = "signers.option";

        /// - cause: a date is invalid or does not end in `Z`, or the key's validity ends before it begins
        /// - example: `valid-before="2026-13-01"`
        /// - cure: write it as `20260331Z` or `20260331123000Z`
        SignersDate = "signers.date";

        /// - cause: the key can't be read, or its kind or size can't be verified
        /// - example: a key that was truncated when it was copied
        /// - cure: use an ed25519 key, or the full fingerprint after `openpgp`
        SignersKey = "signers.key";

        /// - cause: the line names a certificate authority
        /// - example: `*@example.com cert-authority ssh-ed25519 …`
        /// - cure: list the keys themselves
        SignersAuthority = "signers.authority";

        /// - cause: a pattern with an `@` covers agents as well as people, so that every agent's key could change the protocol
        /// - example: `*@* ssh-ed25519 …`
        /// - cure: name the domain, such as `*@example.com`; name agents without an `@`
        SignersPattern = "signers.pattern";

        /// - cause: a warning: the line names an OpenPGP key by its fingerprint, so that nothing here says whether there is such a key, or whether it may sign
        /// - example: `issue-manager openpgp 0123456789ABCDEF0123456789ABCDEF01234567`
        /// - cure: `gpg --list-keys FINGERPRINT`, wherever the ledger is verified
        SignersUnjudged = "signers.unjudged";

        /// - cause: a warning: an agent has no key
        /// - example: there are seven agents, but six lines
        /// - cure: add a line for it
        SignersNoKey = "signers.no_key";

        /// - cause: a warning: no person's address has a key, so the protocol can't be changed
        /// - example: there are keys for agents, but none for `robin@example.com`
        /// - cure: add a line with an address
        SignersNoPerson = "signers.no_person";

        /// - cause: an attribute or event of `traces` has an invalid name or one that is taken, or an event lists no contract types
        /// - example: `"attributes": {"handoff.id": "/id"}`: the name is taken
        /// - cure: correct it
        ProtocolTrace = "protocol.trace";

        /// - cause: `traces` names a fact that the protocol does not have, or a count with an invalid name
        /// - example: `"traces": {"pull_request": "pr"}`, and the fact is called `pr_number`
        /// - cure: name a fact of `facts` or of a rule in `github`; name counts in lower-case letters, digits, `_` and `-`
        ProtocolTrail = "protocol.trail";

        /// - cause: a rule of `consistency` has an invalid or repeated name, compares no place of the contract, or names a fact that the protocol does not have
        /// - example: `"compare": {"same": ["/pr_number", "fact:pull_request"]}`, and the fact is called `pr_number`
        /// - cure: name a fact of `facts` or of a rule in `github`, or a place such as `/pr_number`
        ProtocolConsistency = "protocol.consistency";

        /// - cause: two rules contradict each other, or one can never apply, hold or be met
        /// - example: one rule wants `/count` to be 0, another at least 1, in the same contracts
        /// - cure: change one of the two, or narrow its `of` or `when`
        ProtocolContradiction = "protocol.contradiction";

        /// - cause: a duration is 0 where it must not be, longer than ten years, or a maximum lease shorter than the default
        /// - example: `"limits": {"lease_seconds": 0}`
        /// - cure: correct it
        ProtocolTime = "protocol.time";

        /// - cause: delays are both listed and computed, grow by a factor below 1, or a text is empty
        /// - example: `"delays_seconds"` and `"initial_seconds"` in one policy
        /// - cure: correct it
        ProtocolRetry = "protocol.retry";

        /// - cause: a requirement is malformed, or nothing can satisfy it
        /// - example: `"approved"` by a contract type that no route uses
        /// - cure: correct it
        ProtocolRequirement = "protocol.requirement";

        /// - cause: a rule for GitHub events refers to nothing, can never apply, does nothing, or its agent can't carry it out
        /// - example: a rule on `issues` whose `do` is `"answer"`
        /// - cure: correct it
        ProtocolGithub = "protocol.github";

        /// - cause: an alert lacks a name, a threshold or an action, or has a key that its metric does not support
        /// - example: an alert on `success_rate` with a `quantile`
        /// - cure: correct it
        ProtocolAlert = "protocol.alert";

        /// - cause: a limit is 0, or can never be reached
        /// - example: `"handoffs": 0`
        /// - cure: correct it
        ProtocolLimit = "protocol.limit";

        /// - cause: a rule uses an unknown word, has no reason, or its action does not apply to its state
        /// - example: `"action": "retry"` when the state is `completed`
        /// - cure: correct it
        ProtocolDecision = "protocol.decision";

        /// - cause: a fact has no source
        /// - example: `"facts": {"pr_url": {"last": []}}`
        /// - cure: name its source
        ProtocolFact = "protocol.fact";
    }
    "Findings in hooks" {
        /// - cause: no hook calls the program
        /// - example: a clone in which `git handoff hooks install` was never run
        /// - cure: `git handoff hooks install NAME`
        HookMissing = "hook.missing";

        /// - cause: the block was written by another version, or edited
        /// - example: the block in pre-push is from an older version
        /// - cure: `git handoff hooks install NAME`
        HookOutdated = "hook.outdated";

        /// - cause: a line of output from a hook on the remote that refused a push: with the error `remote_refused`
        /// - example: `remote: handoff 123.4: field.missing /summary`
        /// - cure: do what it says
        RemoteHook = "remote.hook";

        /// - cause: the block has no end marker
        /// - example: the line `# <<< git-handoff <<<` was deleted
        /// - cure: fix the markers
        HookUnclosedBlock = "hook.unclosed_block";

        /// - cause: the block has no start marker
        /// - example: the line `# >>> git-handoff >>>` was deleted
        /// - cure: fix the markers
        HookUnopenedBlock = "hook.unopened_block";

        /// - cause: there are two blocks
        /// - example: a hook was concatenated with itself
        /// - cure: fix the markers
        HookSecondBlock = "hook.second_block";

        /// - cause: the hook is not a shell script, or not one that Unix can run
        /// - example: `#!/usr/bin/env python3`
        /// - cure: have it call `git-handoff hook NAME`
        HookNotShell = "hook.not_shell";

        /// - cause: the hook is a link to a file that others may share
        /// - example: `.git/hooks/pre-commit` points to `../../tools/pre-commit`
        /// - cure: call the program from that file, or replace the link with a file
        HookSymlink = "hook.symlink";

        /// - cause: a folder or something else is in the hook's place
        /// - example: a folder `.git/hooks/pre-commit`
        /// - cure: move it away
        HookNotAFile = "hook.not_a_file";

        /// - cause: the file is not writable
        /// - example: mode 0444
        /// - cure: make it writable, if that is allowed
        HookReadOnly = "hook.read_only";

        /// - cause: the hook is not executable, so git skips it
        /// - example: mode 0644
        /// - cure: make it executable, or move it away
        HookNotExecutable = "hook.not_executable";

        /// - cause: the script exits before it reaches the block, or the lines that call the program
        /// - example: `exit 0` above the block
        /// - cure: move those lines up, directly below the first line
        HookEarlyExit = "hook.early_exit";

        /// - cause: the user's own lines ignore the program's exit code (`|| true`)
        /// - example: `git-handoff hook pre-push || true`
        /// - cure: end them with `|| exit 1`, or with nothing
        HookIgnored = "hook.ignored";

        /// - cause: a hook manager overwrites the file
        /// - example: husky's or lefthook's file
        /// - cure: add the hook to the manager's own configuration
        HookManaged = "hook.managed";

        /// - cause: `core.hooksPath` points outside the repository's git directory
        /// - example: `core.hooksPath` is `~/hooks`
        /// - cure: the command that the hint shows: `--into-hooks-path`, or, if no file can be there, `git config core.hooksPath` and the same again; or call the program from the hooks there
        HookElsewhere = "hook.elsewhere";

        /// - cause: git's configuration disables it
        /// - example: `hook.git-handoff.enabled` is false
        /// - cure: remove that setting
        HookDisabled = "hook.disabled";

        /// - cause: this version of git has no such hook, or does not read hooks from its configuration
        /// - example: reference-transaction with git 2.27
        /// - cure: `hooks install --files`, or use a newer git
        HookOldGit = "hook.old_git";

        /// - cause: hooks can't find `git-handoff`
        /// - example: `~/.local/bin` is not on the PATH of the editor that commits
        /// - cure: add its folder to the PATH
        HookNoProgram = "hook.no_program";

        /// - cause: the file system does not run programs
        /// - example: a repository on a USB stick
        /// - cure: mount it without noexec, or keep the hooks elsewhere
        HookNoexec = "hook.noexec";

        /// - cause: git never runs it in a bare repository
        /// - example: pre-commit in a bare repository
        /// - cure: `git handoff hooks install --server`
        HookNever = "hook.never";

        /// - cause: git-handoff is not on the PATH, so the harness's hooks do nothing
        /// - example: it is in `~/.local/bin`, but the harness was started from a menu
        /// - cure: add its folder to the PATH from which the harness is started
        AgentsProgram = "agents.program";

        /// - cause: another version comes first on the PATH
        /// - example: an old one in `/usr/local/bin`
        /// - cure: put the version that you want first
        AgentsVersion = "agents.version";

        /// - cause: the harness's program on the PATH is older than the version that was tried
        /// - example: `claude` 2.0.14, installed a year ago
        /// - cure: update it
        AgentsHarness = "agents.harness";

        /// - cause: a person has not yet trusted or allowed what the harness would use
        /// - example: Codex reads `.codex/` only in a trusted folder
        /// - cure: start the harness there once and accept, as the finding says
        AgentsConsent = "agents.consent";

        /// - cause: there is no ledger for the hooks to report on
        /// - example: a clone without the ledger's branch
        /// - cure: `git handoff init`, or `git handoff init --remote origin` for the one that `origin` has
        AgentsNoLedger = "agents.no_ledger";

        /// - cause: no agent is named, or one that the ledger does not know
        /// - example: hooks without `--as`, in a session without `GIT_HANDOFF_AGENT`
        /// - cure: set `GIT_HANDOFF_AGENT`, or install with `--as AGENT`
        AgentsNoAgent = "agents.no_agent";

        /// - cause: a setting disables all hooks of the harness
        /// - example: `"disableAllHooks": true` in `.claude/settings.local.json`
        /// - cure: remove it
        AgentsDisabled = "agents.disabled";

        /// - cause: the instructions file has no block for the harness, or one from another version
        /// - example: `AGENTS.md` was rewritten
        /// - cure: `git handoff agents install NAME`
        AgentsBlock = "agents.block";

        /// - cause: the block's start or end is unclear
        /// - example: its last line was deleted together with the text below it
        /// - cure: restore the missing line, or remove the block by hand
        AgentsMarker = "agents.marker";

        /// - cause: the skill is missing, from another version, or not written by the program
        /// - example: a skill that was edited
        /// - cure: `git handoff agents install NAME`, or rename its folder
        AgentsSkill = "agents.skill";

        /// - cause: a hook is missing, duplicated, or edited by hand
        /// - example: a timeout of one second
        /// - cure: `git handoff agents install NAME`
        AgentsEntry = "agents.entry";

        /// - cause: the configuration is not JSON, has comments, or has a duplicate key
        /// - example: `// ours` in `.cursor/hooks.json`
        /// - cure: fix it, or add the entry by hand
        AgentsConfig = "agents.config";

        /// - cause: a link points outside the worktree, or something is not a regular file
        /// - example: `.claude` is a link to the home folder
        /// - cure: replace it with a file
        AgentsLink = "agents.link";

        /// - cause: the file is read-only
        /// - example: `AGENTS.md` has mode 444
        /// - cure: make it writable
        AgentsReadOnly = "agents.read_only";

        /// - cause: git ignores the file, so others don't get it (a warning)
        /// - example: `.claude/` in `.gitignore`
        /// - cure: remove it from `.gitignore`
        AgentsIgnored = "agents.ignored";

        /// - cause: there is already an MCP server with this name that the program did not write
        /// - example: `git-handoff` in `.mcp.json` with your own command
        /// - cure: omit `--mcp`, or replace it with what is shown
        AgentsServer = "agents.server";

        /// - cause: a process that was killed left a temporary file behind (a warning)
        /// - example: `.codex/.hooks.json.git-handoff-4711`
        /// - cure: `git handoff agents install NAME` removes it
        AgentsLeftover = "agents.leftover";
    }
    "Findings in ledgers" {
        /// - cause: an object is missing or damaged, or a tree nests deeper than 2,048 levels or has more than 20,000 entries that differ
        /// - example: a file in `.git/objects` was truncated
        /// - cure: fetch it from another clone
        /// - verify: Something was lost or damaged on the disk.
        ObjectUnreadable = "object.unreadable";

        /// - cause: an object is not in this partial clone
        /// - example: a clone that was made with `--filter=blob:none`
        /// - cure: `git handoff fetch --full`
        ObjectLeftOut = "object.left_out";

        /// - cause: a required file is missing
        /// - example: a commit removed `issues/23/01/123/0002.json`
        /// - cure: find the commit that removed it
        /// - verify: Something that must be there is missing.
        FileMissing = "file.missing";

        /// - cause: a file is malformed, or from a later version
        /// - example: a record with `"state": "done-ish"`
        /// - cure: find the commit that changed it; use a newer program for a later version
        /// - verify: A file of the ledger can't be understood.
        FileUnreadable = "file.unreadable";

        /// - cause: a file outside the issues was changed
        /// - example: a commit changed `README.md` on the ledger's branch
        /// - cure: find the commit that changed it
        /// - verify: A file of the ledger was changed that no step changes.
        FileAltered = "file.altered";

        /// - cause: there is a file that no step writes
        /// - example: a commit added `issues/23/01/123/notes.txt`
        /// - cure: find the commit that added it
        /// - verify: A file lies in the ledger that no step put there.
        FileStray = "file.stray";

        /// - cause: a contract differs from what was sent
        /// - example: someone fixed a typo in a contract after it was sent
        /// - cure: compare it with another clone
        /// - verify: A contract is not what its sender handed over.
        ContractAltered = "contract.altered";

        /// - cause: a record does not match its step
        /// - example: someone wrote `"state": "completed"` into a record
        /// - cure: compare it with another clone
        /// - verify: The record of a handoff does not follow from its steps.
        RecordAltered = "record.altered";

        /// - cause: what was saved of a failed attempt does not match its step
        /// - example: someone replaced a log that was attached to a failure
        /// - cure: compare it with another clone
        /// - verify: What was kept of a failure was changed, added to, or removed.
        FailureAltered = "failure.altered";

        /// - cause: an issue's file does not match its step
        /// - example: someone wrote another agent into `issue.json`
        /// - cure: compare it with another clone
        /// - verify: What is known of an issue does not follow from its steps.
        IssueAltered = "issue.altered";

        /// - cause: an open entry does not match its record
        /// - example: `open/fixer-agent/` has an entry of 123.4, but 123.4 is completed
        /// - cure: compare it with another clone
        /// - verify: The list of open handoffs says something else than the handoffs themselves.
        OpenStale = "open.stale";

        /// - cause: an open handoff has no entry
        /// - example: 123.4 is pending, but has no entry in `open/`
        /// - cure: compare it with another clone
        /// - verify: An open handoff is missing from the list of open ones.
        OpenMissing = "open.missing";

        /// - cause: the message or its trailers do not match what the step did
        /// - example: `git commit --amend` removed the trailer `Transition`
        /// - cure: find out who wrote the commit
        /// - verify: The description of the step does not tell what the step did.
        CommitMessage = "commit.message";

        /// - cause: the author is not the agent that took the step
        /// - example: a step of fixer-agent that Robin committed by hand
        /// - cure: find out who wrote the commit
        /// - verify: The step bears another name than that of the agent whose step it is.
        CommitAuthor = "commit.author";

        /// - cause: the commit's header is not byte for byte what the program writes, so that readers may take it differently
        /// - example: a second `author`, an `encoding` header, a time zone `-0000`
        /// - cure: find out who wrote the commit
        /// - verify: The step carries technical data that this program never writes.
        CommitHeader = "commit.header";

        /// - cause: the step's folders are not byte for byte those that writing its files makes
        /// - example: an empty folder, two entries of one name, entries out of order
        /// - cure: find out who wrote the commit
        /// - verify: The step's files lie in folders that are not stored as this program stores them.
        CommitTree = "commit.tree";

        /// - cause: `hook`: the operation would delete the ledger's branch
        /// - example: `git push origin :handoffs`
        /// - cure: don't delete it
        BranchDeleted = "branch.deleted";

        /// - cause: `hook`: the operation would turn the ledger's branch into a symbolic ref
        /// - example: `git symbolic-ref refs/heads/handoffs refs/heads/main`
        /// - cure: don't do that
        BranchSymbolic = "branch.symbolic";

        /// - cause: `hook`: the commit that the remote branch points to is not in this repository
        /// - example: `git push` in a clone that did not fetch what others pushed
        /// - cure: `git fetch` it, and repeat the step on top of it
        BranchUnknown = "branch.unknown";

        /// - cause: `hook pre-push` with `handoff.pushGuard`: the agent does not hold the issue of the code branch
        /// - example: fixer-agent pushes `issue-123` while reviewer-agent holds 123
        /// - cure: claim the issue, or leave the push to the agent that holds it
        BranchNotHeld = "branch.not_held";

        /// - cause: the contract names a branch that work can't be on: the ledger's own, HEAD, or no name of a branch
        /// - example: `<branch>handoffs</branch>`, or `"branch": "HEAD"`
        /// - cure: name the branch that the work is on, such as `issue-123`
        BranchRefused = "branch.refused";

        /// - cause: the commit is not a ledger step: it changes nothing, no issue, or several handoffs arbitrarily
        /// - example: a commit on the branch that has only a message
        /// - cure: find out who wrote the commit
        /// - verify: The commit is not a step of any agent.
        StepNone = "step.none";

        /// - cause: the commit changes several issues
        /// - example: a commit that changes issues 123 and 124
        /// - cure: find out who wrote the commit
        /// - verify: One commit changes several issues, which no step does.
        StepMany = "step.many";

        /// - cause: the protocol does not allow the step
        /// - example: a commit that completes 123.4, which was never claimed
        /// - cure: find out who wrote the commit
        /// - verify: The rules in force did not allow this step.
        StepIllegal = "step.illegal";

        /// - cause: the step is not signed, but its protocol lists who may sign
        /// - example: `git commit` without `-S` when the protocol lists keys
        /// - cure: find out who wrote the commit
        /// - verify: Nobody signed the step, and the rules in force want a signature.
        SignatureMissing = "signature.missing";

        /// - cause: the signature does not belong to this commit: it is forged or copied, or the commit was changed since
        /// - example: a signature copied from another commit
        /// - cure: find out who wrote the commit
        /// - verify: The signature does not belong to this step: it was forged, or the step was changed after it was signed.
        SignatureBad = "signature.bad";

        /// - cause: the key does not belong to anyone
        /// - example: a key that is not in `allowed_signers`
        /// - cure: find out who wrote the commit
        /// - verify: The step was signed with a key that nobody is known to have.
        SignatureUnknown = "signature.unknown";

        /// - cause: the key does not belong to the agent that took the step
        /// - example: a step of reviewer-agent, signed with implementer-agent's key
        /// - cure: find out who wrote the commit
        /// - verify: The step was signed with the key of somebody else than the agent whose step it is.
        SignatureOtherAgent = "signature.other_agent";

        /// - cause: the key was not valid at the time, or was revoked
        /// - example: a key with `valid-before` last month
        /// - cure: find out who wrote the commit
        /// - verify: The step was signed with a key that was not valid at that time.
        SignatureNotValid = "signature.not_valid";

        /// - cause: gpg does not have the key, or gpg or ssh-keygen can't be run or gives no reliable answer
        /// - example: an OpenPGP signature on a machine without gpg, one of an RSA key without ssh-keygen
        /// - cure: `gpg --import` the signer's key; install gpg, or set `gpg.program`; install OpenSSH 8.1 or later
        /// - verify: The signature could not be verified on this machine.
        SignatureUnverified = "signature.unverified";

        /// - cause: the commit is dated before its parent, or the step before its issue's last step
        /// - example: a machine whose clock is an hour behind
        /// - cure: find out who wrote the commit
        /// - verify: The step pretends to be older than what it follows.
        StepBackdated = "step.backdated";

        /// - cause: the step is dated more than a day after it was recorded, or was recorded more than a day ahead of the reader's clock: then its date limits no later step
        /// - example: a machine whose clock is two days fast
        /// - cure: correct the clock of the machine that made it
        /// - verify: The step pretends to be made in the future.
        StepPostdated = "step.postdated";

        /// - cause: the step was already taken
        /// - example: the commit of a claim was cherry-picked onto the branch again
        /// - cure: find out who wrote the commit
        /// - verify: The step repeats one that had been made already.
        StepRepeated = "step.repeated";

        /// - cause: a check is recorded as passed, but checking it again contradicts that
        /// - example: the record says that `files_changed` was checked, but the diff has a different number
        /// - cure: find out who wrote the commit
        /// - verify: The step says that a statement was checked and is true, and it is not.
        EvidenceForged = "evidence.forged";

        /// - cause: the commit is a merge, but the ledger's history must be linear
        /// - example: `git merge` of the branches of two ledgers
        /// - cure: find out who wrote the commit
        /// - verify: Two lines of history were joined, so that the order of the steps is not certain.
        HistoryMerge = "history.merge";

        /// - cause: the branch's history lacks commits that this clone saw, or the one after `--since`
        /// - example: `git push --force` of an older state
        /// - cure: compare with another clone; `verify --accept-rewritten` if it was intended
        /// - verify: Steps that were here before are gone, or history was written anew.
        HistoryRewritten = "history.rewritten";

        /// - cause: the commit was no step of the ledger; a person signed off that it does not count any more
        /// - example: `git commit` in a worktree of the ledger's branch, and then `git handoff verify --quarantine`
        /// - cure: none is needed: it is a note
        /// - verify: Somebody wrote past the ledger. A person took it back, on record.
        HistoryQuarantined = "history.quarantined";

        /// - cause: the history can't be followed any further
        /// - example: the object of an old commit is missing
        /// - cure: fetch it from another clone
        /// - verify: Part of the history is missing.
        HistoryBroken = "history.broken";
    }
    }
}

impl FindingCode {
    /// The explanation that `verify` prints for people who know neither Git nor JSON.
    pub fn meaning(self) -> &'static str {
        let meaning = Self::EXPLAINED[self as usize].meaning;
        meaning.unwrap_or("A contract is not as its protocol of the time wanted it.")
    }

    /// Whether the finding is a failed gate, which only sums up other findings.
    pub fn is_gate(self) -> bool {
        matches!(
            self,
            Self::GateDataIntegrity
                | Self::GateNoOrphanedTasks
                | Self::GateRequiredFields
                | Self::GateStateConsistency
                | Self::GateValidTransition
        )
    }

    /// Whether the finding is that no route goes from this sender to this receiver.
    pub fn is_route(self) -> bool {
        matches!(self, Self::RouteForbidden | Self::RouteUnknown)
    }
}
