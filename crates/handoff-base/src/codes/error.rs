//! The code of every error, with the exit codes that go with it, the usual one first.

use super::{ExplainedCode, after, codes, exit};

codes! {
    /// The code of an error.
    ErrorCode {
    "Errors" {
        /// - cause: `protocol check`: the protocol has a fault
        /// - example: `git handoff protocol check ./our-way` when a route leads to an undefined agent
        /// - cure: fix what the findings name, then check again
        ProtocolFaults = "protocol_faults", NO;

        /// - cause: `protocol test`: a scenario had an unexpected outcome
        /// - example: `git handoff protocol test ./our-way` when no route leads from the last agent to the end
        /// - cure: each scenario says what was unexpected; if no value was found for a field, give it `examples` in its schema
        ProtocolUnexpected = "protocol_unexpected", NO;

        /// - cause: `hook`: git must stop, because the ledger would refuse what it was about to do
        /// - example: `git commit` in a repository with the hooks installed, when a staged contract still contains `{{fill: …}}`
        /// - cure: fix what the findings name; see `git handoff help hooks.md`
        HookRefused = "hook_refused", NO;

        /// - cause: the file of `gate --policy` is not a policy
        /// - example: a policy with `"requires"` in place of `"require"`
        /// - cure: fix the file: `git handoff help gate.md` describes it
        GatePolicyRefused = "gate_policy_refused", USAGE;

        /// - cause: GitHub refused a request for pull requests or statuses of commits, and its reason is printed
        /// - example: the job's token lacks `statuses: write`
        /// - cure: give the job the permissions that `git handoff help github.md` lists, then run the command again
        GithubRefused = "github_refused", ENVIRONMENT;

        /// - cause: GitHub's API did not answer, or asks to wait for longer than the command may take
        /// - example: a rate limit is reached
        /// - cure: run the command again, after the time that is named
        GithubUnreachable = "github_unreachable", ENVIRONMENT;

        /// - cause: `gate`: the issue does not meet a requirement
        /// - example: `git handoff gate --issue 123 --require approved` when the reviewer asked for changes
        /// - cure: see `requirements` in the data, `git handoff status ISSUE`, and `git handoff next ISSUE`
        GateClosed = "gate_closed", NO;

        /// - cause: `alerts`: a threshold is crossed
        /// - example: `git handoff alerts` when a handoff has waited longer than the protocol's alert allows
        /// - cure: do what `action` in the data says
        Alert = "alert", NO;

        /// - cause: `doctor`: something is wrong, or waits
        /// - example: `git handoff doctor` when a lock was left behind
        /// - cure: run the `cure` of each fault
        Faults = "faults", NO;

        /// - cause: `wait`: what was waited for failed, was rejected, or needs an answer
        /// - example: `git handoff wait 123.4` when its agent records `fail`
        /// - cure: see the data, or `git handoff show ID`
        WaitFailed = "wait_failed", NO;

        /// - cause: unknown or missing arguments, a malformed id or name, or an empty text
        /// - example: `git handoff claim 123..4`: an id is `ISSUE.N`
        /// - cure: read the hint, or `git handoff COMMAND -h`
        Usage = "usage", USAGE;

        /// - cause: the command needs to know which agent acts
        /// - example: `git handoff inbox` when none of `--as`, GIT_HANDOFF_AGENT and handoff.agent is set
        /// - cure: name the agent: `--as`, `GIT_HANDOFF_AGENT`, `handoff.agent`
        NoAgent = "no_agent", USAGE;

        /// - cause: a folder or a file in it can't be read
        /// - example: `git handoff import backup` when `backup/issues` belongs to another user
        /// - cure: read the message; grant permission
        FolderUnreadable = "folder_unreadable", USAGE;

        /// - cause: `export` needs an empty or new folder
        /// - example: `git handoff export --format files out` when `out` holds a file
        /// - cure: name a folder that does not exist yet
        FolderNotEmpty = "folder_not_empty", USAGE;

        /// - cause: `exchange`: the path is not a folder, or lies in a git directory
        /// - example: `git handoff exchange .git/shared`
        /// - cure: name a folder of its own, such as one beside the repository
        FolderUnfit = "folder_unfit", USAGE;

        /// - cause: `exchange`: no protocol in force has an import profile, so none has files that are moved from state to state
        /// - example: `git handoff exchange shared` in a ledger of issue-to-pr alone
        /// - cure: `git handoff protocol add orchestrator-specialist`
        NoImportProfile = "no_import_profile", USAGE;

        /// - cause: `--allow-secret` names a rule or a place for which no secret was found
        /// - example: `git handoff send contract.xml --allow-secret generic-api-key` when nothing in the contract looks like one
        /// - cure: leave it out; `git handoff check FILE` names rules and places
        UnusedAllowance = "unused_allowance", USAGE;

        /// - cause: `gate`: the protocol has no such requirement
        /// - example: `git handoff gate --issue 123 --require aproved`
        /// - cure: use one that the hint names
        NoRequirement = "no_requirement", USAGE;

        /// - cause: the step is dated before the last step of its issue
        /// - example: GIT_AUTHOR_DATE is set to yesterday, and the issue has a step from today
        /// - cure: leave `GIT_AUTHOR_DATE` unset
        Backdated = "backdated", USAGE;

        /// - cause: the ledger has no remote
        /// - example: `git handoff sync` when the ledger exists in this clone only
        /// - cure: `git config handoff.remote origin`
        NoRemote = "no_remote", USAGE;

        /// - cause: `github`: the runner named no file or no event, for example outside a workflow
        /// - example: `git handoff github summary` in a shell without GITHUB_STEP_SUMMARY
        /// - cure: name the output, `git handoff github summary --output FILE` (`-` is standard output), or the event: `git handoff github event --file FILE --name NAME`
        NoWorkflow = "no_workflow", USAGE;

        /// - cause: the claim names no worker
        /// - example: a program that claims through the library names none
        /// - cure: name the worker with `--worker ID`, GIT_HANDOFF_WORKER or `git config handoff.worker ID`
        NoWorker = "no_worker", USAGE;

        /// - cause: `mcp --as AGENT`: a call names another agent
        /// - example: a tool is called with `"as": "fixer-agent"` on a server started with `--as reviewer-agent`
        /// - cure: leave `as` out; start a separate server for another agent: `git handoff mcp --as AGENT`
        OtherAgent = "other_agent", USAGE;

        /// - cause: the contract is unreadable, incomplete or contradicts itself
        /// - example: `git handoff send contract.xml` when `<priority>` is `urgent`, an unknown priority
        /// - cure: fix it (`git handoff check FILE`) and send it again
        ContractRefused = "contract_refused", CONTRACT;

        /// - cause: the contract, or a note, contradicts what is known of the issue: another contract, an event, the tasks; each contradiction is a finding `contract.inconsistent`
        /// - example: a review of pull request 71 in an issue whose pull request is 70
        /// - cure: correct the contract; if the issue has changed, record that first: `git handoff annotate 123 --fact pr_number=71 --note 'WHY'`
        Inconsistent = "inconsistent", PROTOCOL;

        /// - cause: something to be recorded contains what looks like a secret; each is a finding `secret.found`
        /// - example: a contract whose summary quotes a log line that contains a token
        /// - cure: remove it and run the command again, or allow it by rule and place
        SecretFound = "secret_found", CONTRACT;

        /// - cause: an attached file is not a regular file, can't be read, or is larger than 10 MiB
        /// - example: `git handoff fail 123.2 --message 'out of time' --attach core.dump` with a file of 2 GiB
        /// - cure: attach part of it, or leave it out
        AttachmentRefused = "attachment_refused", CONTRACT;

        /// - cause: the worktree contains something that a snapshot can't hold: too much data, a nested repository, or a changed submodule
        /// - example: `git handoff fail 123.2 --message 'out of time' --snapshot` when the worktree contains a clone of another repository
        /// - cure: do what the hint says, or leave out `--snapshot`
        SnapshotRefused = "snapshot_refused", CONTRACT;

        /// - cause: a delivered file is not what the request asked for
        /// - example: the request asks for a JSON file that matches a schema, and the delivered file has other fields
        /// - cure: fix the file and send the contract again
        ArtifactRefused = "artifact_refused", CONTRACT;

        /// - cause: the repository contradicts what the contract states; each is a finding `evidence.…`
        /// - example: the contract says `<files_changed>3</files_changed>`, but the branch changes five
        /// - cure: make the repository match the contract, or correct the contract, and send it again
        EvidenceContradicted = "evidence_contradicted", CONTRACT;

        /// - cause: `--usage` is not a report of what work took
        /// - example: `git handoff extend 9.4 --usage '{"cost": 0.2}'`, which names no currency
        /// - cure: give JSON as `git handoff help work.md` shows it, or a file with it
        UsageRefused = "usage_refused", CONTRACT;

        /// - cause: import: the recorded checks of a contract's statements do not satisfy the rules
        /// - example: `git handoff import backup` into a ledger that enforces evidence, with steps from one that did not
        /// - cure: send the contract in a repository where its statements can be checked
        EvidenceRefused = "evidence_refused", CONTRACT;

        /// - cause: `claim`: a delivered file was changed or removed
        /// - example: `git handoff claim 123.4` when a file that 123.4 delivers was edited after it was sent
        /// - cure: restore it, or reject the handoff
        ArtifactChanged = "artifact_changed", CONTRACT;

        /// - cause: a report is not a JUnit, lcov or Cobertura report, or is larger than 16 MiB
        /// - example: `git handoff send contract.xml --tests build.log`: a log is not a report
        /// - cure: pass the report that the test runner wrote
        ReportRefused = "report_refused", CONTRACT;

        /// - cause: a shared document does not match its schema
        /// - example: `git handoff document set tech-stack stack.json` when the file lacks a required field
        /// - cure: fix it and set it again
        DocumentRefused = "document_refused", CONTRACT;

        /// - cause: a protocol would check less than the default one of a ledger with listed keys
        /// - example: `git handoff protocol add ./lax` without `allowed_signers`, where the default protocol has the file
        /// - cure: make it as strict, or say so on record: `--weaker`
        ProtocolWeaker = "protocol_weaker", PROTOCOL;

        /// - cause: the protocol in the folder is invalid, or has other files than the version in force but not another version
        /// - example: `git handoff protocol add ./our-way` when `git handoff protocol check` finds faults in it
        /// - cure: `git handoff protocol check FOLDER`, then fix what it finds, or raise the version
        ProtocolRefused = "protocol_refused", CONTRACT;

        /// - cause: `import`: items were refused. The first of them decides the exit code: 3 for a contract or an unreadable item, 4 for the protocol, 5 for a different step in the ledger
        /// - example: `git handoff import old-workflow` when one of forty contracts has no receiver
        /// - cure: fix what `refused` lists and import again; after exit 5, import into a new ledger
        ImportRefused = "import_refused", CONTRACT | PROTOCOL | CONFLICT;

        /// - cause: an item, or a file that all items depend on, is malformed
        /// - example: `git handoff import backup` when a line of `steps.jsonl` was cut off
        /// - cure: read the findings
        ImportUnreadable = "import_unreadable", CONTRACT;

        /// - cause: `steps.jsonl` was written by a newer program
        /// - example: the export was made with a newer program than the one that imports it
        /// - cure: use that program
        ImportVersion = "import_version", CONTRACT;

        /// - cause: the answer does not match the question: a key is missing, has the wrong type, or was not asked for
        /// - example: `port:integer` was asked for, and the answer is `git handoff answer 123.2 port=soon`
        /// - cure: answer every key with a value of its type; `git handoff show ID` lists them
        AnswerRefused = "answer_refused", CONTRACT;

        /// - cause: `github event`, `github issue`: the file is not an event payload: not JSON, larger than 25 MiB, or something else
        /// - example: `git handoff github event --name issues --file README.md`
        /// - cure: pass the payload as GitHub delivers it; in a workflow, the file that GITHUB_EVENT_PATH names
        EventRefused = "event_refused", CONTRACT;

        /// - cause: `github comment`: the file that `--existing` names is not a list of comments
        /// - example: `git handoff github comment 123 --existing page.html`
        /// - cure: list them with `gh api --paginate repos/OWNER/NAME/issues/NUMBER/comments`
        CommentsRefused = "comments_refused", CONTRACT;

        /// - cause: the protocol has no such route, or does not allow this contract type on it
        /// - example: prep-agent sends to reviewer-agent, but the protocol routes its work to implementer-agent
        /// - cure: send to an agent that the hint or the fix names
        RouteRefused = "route_refused", PROTOCOL;

        /// - cause: the agent is not part of the protocol
        /// - example: `git handoff inbox --as reviewer` when the agent's name is `reviewer-agent`
        /// - cure: use a name from the hint; `git handoff protocol show` shows what each agent does
        UnknownAgent = "unknown_agent", PROTOCOL;

        /// - cause: the contract names a different sender than the acting agent
        /// - example: `git handoff send contract.xml --as fixer-agent` when the contract says `<from>prep-agent</from>`
        /// - cure: let its sender send it, or write your own: `git handoff new --issue ISSUE --to AGENT`
        NotTheSender = "not_the_sender", PROTOCOL;

        /// - cause: the issue's first contract is not one that opens an issue
        /// - example: the first contract of issue 123 goes from implementer-agent to reviewer-agent
        /// - cure: send the contract that the hint names first
        NotOpened = "not_opened", PROTOCOL;

        /// - cause: the contract's status says that work failed or is blocked, but its sender holds nothing that this contract would end
        /// - example: `<status>failure</status>` from implementer-agent, which has completed 123.2 already
        /// - cure: claim the work before you report how it ended; to take back work that you completed, report it to the orchestrator
        NothingFailed = "nothing_failed", PROTOCOL;

        /// - cause: the issue is completed, so nothing can be added to it
        /// - example: `git handoff send contract.xml` for an issue whose closing contract was sent
        /// - cure: `git handoff reopen ISSUE --reason WHY`, if work must continue
        IssueCompleted = "issue_completed", PROTOCOL;

        /// - cause: the issue was given up, so nothing can be added to it
        /// - example: `git handoff send contract.xml` for an issue that was ended by `git handoff cancel ISSUE --reason WHY`
        /// - cure: `git handoff reopen ISSUE --reason WHY`, if work must continue
        IssueCancelled = "issue_cancelled", PROTOCOL;

        /// - cause: the issue is paused, and this agent is not handed its work
        /// - example: `git handoff claim 123.2` after `git handoff pause 123 --reason WHY`, or once the issue was closed on GitHub
        /// - cure: go on with something else; an orchestrator, a person or the sender of the first handoff can run `git handoff resume ISSUE --reason WHY`
        IssuePaused = "issue_paused", PROTOCOL;

        /// - cause: all work, an agent's or a protocol's is paused
        /// - example: fixer-agent claims 123.4 after `git handoff pause --all`
        /// - cure: wait, or let an orchestrator or a person `git handoff resume --all`
        WorkPaused = "work_paused", PROTOCOL;

        /// - cause: the issue can't be given up while a handoff in it is open
        /// - example: an import gives up issue 123 while 123.2 is pending
        /// - cure: cancel what is open, or let it end: `git handoff status ISSUE`
        StillOpen = "still_open", PROTOCOL;

        /// - cause: the issue is open, so it can't be reopened
        /// - example: `git handoff reopen 123 --reason 'it is back'` when 123 is open
        /// - cure: `git handoff status ISSUE`
        NotCompleted = "not_completed", PROTOCOL;

        /// - cause: the sender was handed work but has not claimed it
        /// - example: prep-agent sends on in issue 123 without having claimed 123.1
        /// - cure: `git handoff claim ID`, then send
        NotClaimed = "not_claimed", PROTOCOL;

        /// - cause: the issue is open, or its last step is not old enough
        /// - example: `git handoff archive 123` while 123.4 is with fixer-agent
        /// - cure: finish or cancel the issue first; `git handoff status ISSUE` shows what it waits for
        NotArchivable = "not_archivable", PROTOCOL;

        /// - cause: the sender's handoff is failed or blocked
        /// - example: implementer-agent sends on while its handoff 123.2 is blocked
        /// - cure: `git handoff retry ID` or `git handoff answer ID ANSWER`, then claim
        NotWorking = "not_working", PROTOCOL;

        /// - cause: the sender was handed nothing in this issue
        /// - example: fixer-agent sends in issue 123 while 123.4 is with reviewer-agent
        /// - cure: the hint names the agent and worker that hold it
        NotHeld = "not_held", PROTOCOL;

        /// - cause: only another agent may cause this event
        /// - example: `git handoff claim 123.4 --as prep-agent` when 123.4 was handed to fixer-agent
        /// - cure: leave it to the agents that the hint names
        NotYours = "not_yours", PROTOCOL;

        /// - cause: the handoff's state does not accept the event
        /// - example: `git handoff answer 123.2 main` when 123.2 is pending, so there is no question to answer
        /// - cure: do one of the things that the hint lists
        IllegalTransition = "illegal_transition", PROTOCOL;

        /// - cause: the issue follows another protocol; `init`: the ledger already exists with another protocol
        /// - example: a contract of `delegation` for an issue that began with `issue-to-pr`
        /// - cure: check the contract against the issue's protocol; `git handoff protocol add NAME`
        OtherProtocol = "other_protocol", PROTOCOL;

        /// - cause: a request must be answered, not just completed
        /// - example: `git handoff complete 123.2` when 123.2 is a request from an agent that waits for a response
        /// - cure: `git handoff new`, as the hint says, then send the answer
        NeedsAnswer = "needs_answer", PROTOCOL;

        /// - cause: a part of a task is completed with a report on it, not by itself
        /// - example: `git handoff complete environment.3` when environment.3 is a part of task 021
        /// - cure: `git handoff new`, as the hint says, then send the report
        NeedsReport = "needs_report", PROTOCOL;

        /// - cause: the handoff awaits a decision about what follows from it, not just its completion
        /// - example: `git handoff complete 71.3` when 71.3 is work that its receiver has to evaluate
        /// - cure: `git handoff new`, as the hint says, then send the decision; `git handoff next ISSUE` says which one the protocol's rules suggest
        NeedsDecision = "needs_decision", PROTOCOL;

        /// - cause: the handoff's task was broken down, and its parts or the reports on them are still open
        /// - example: `git handoff fail environment.1` while environment.3, a part of its task, is worked on
        /// - cure: let the parts end: the handoff is completed with the last report; to give all of them up with it, `git handoff cancel ID --reason WHY`
        PartsRun = "parts_run", PROTOCOL;

        /// - cause: other handoffs must be completed first
        /// - example: `git handoff claim 123.4` before the task of 123.2 is done
        /// - cure: `git handoff show ID` for the handoff that it waits for
        Waits = "waits", PROTOCOL;

        /// - cause: what the contract says about tasks does not match their state
        /// - example: the contract hands over task 2.1 again, which is already completed
        /// - cure: `git handoff status ISSUE`, then fix the contract
        TasksRefused = "tasks_refused", PROTOCOL;

        /// - cause: the contract does not fit the findings of the issue's reviews: it answers one that nobody raised, leaves one without an answer, or approves the work while one is open or disputed
        /// - example: a fixer's contract with answers to F1 and F3, while F2 is open too
        /// - cure: `git handoff status ISSUE` shows the findings; `git handoff new` lists those to answer
        FindingsRefused = "findings_refused", PROTOCOL;

        /// - cause: the issue is a single request and is already answered: it can't be reopened
        /// - example: `git handoff reopen req-7` in a protocol in which an issue is one request with its answer
        /// - cure: send a new request with a new id
        OneRequest = "one_request", PROTOCOL;

        /// - cause: the receiver is already waiting for the sender in the same chain of requests
        /// - example: A asked B, B asked C, and C asks A
        /// - cure: answer with what is known, or ask another agent
        Loop = "loop", PROTOCOL;

        /// - cause: the request was retried as often as the protocol allows
        /// - example: `git handoff retry 123.2` after the third of three attempts failed
        /// - cure: send a new request, or cancel it
        RetriesSpent = "retries_spent", PROTOCOL;

        /// - cause: the decision does not fit the status of the contract that it is about
        /// - example: the work's status is `FAILED`, but the evaluation decides to continue with the next agent
        /// - cure: use a decision that the hint names
        DecisionRefused = "decision_refused", PROTOCOL;

        /// - cause: the contract names a different contract than the one its sender works on
        /// - example: an evaluation names handoff `h-3`, but its sender works on `h-4`
        /// - cure: name the contract in the hint
        NotAbout = "not_about", PROTOCOL;

        /// - cause: the protocol has no such error code
        /// - example: `git handoff fail 123.2 --code Oops` when the protocol lists its error codes
        /// - cure: use a code that the hint names; `git handoff protocol show` lists them
        UnknownFailureCode = "unknown_error_code", PROTOCOL;

        /// - cause: a protocol with that name is already in force, with different files
        /// - example: `git handoff protocol add ./our-way` a second time, after a file was changed
        /// - cure: `git handoff protocol update`
        ProtocolExists = "protocol_exists", PROTOCOL;

        /// - cause: a step must be signed, but is unsigned or signed with a key that does not belong to its author; each is a finding `signature.…`
        /// - example: the protocol lists keys, but the commit was signed with another one
        /// - cure: sign with a listed key: `git handoff protocol show`
        SignatureRefused = "signature_refused", PROTOCOL;

        /// - cause: open handoffs could not continue under the new definition
        /// - example: `git handoff protocol update ./our-way` with a definition that drops an agent with open work
        /// - cure: finish these handoffs, or keep what they need
        ProtocolOrphans = "protocol_orphans", PROTOCOL;

        /// - cause: the item depends on one that was not imported
        /// - example: 123.2 was refused, so 123.3, which depends on it, can't be imported
        /// - cure: fix the item that was refused before it, then import again
        OutOfOrder = "out_of_order", PROTOCOL;

        /// - cause: the same sender sends to the same receiver again too soon
        /// - example: an agent asks the same agent again after one minute, but the protocol requires five minutes
        /// - cure: wait as long as the hint says
        Cooldown = "cooldown", PROTOCOL;

        /// - cause: the contract cannot take the place of the one that failed: it has another type, sender, receiver or id, or the same bytes
        /// - example: `git handoff retry 123.2 --with corrected.xml`, but the file is for another agent
        /// - cure: correct the contract that failed; `git handoff retry ID` without `--with` gives it another attempt as it is
        CorrectionRefused = "correction_refused", PROTOCOL;

        /// - cause: the same sender, receiver and reason repeat too often
        /// - example: reviewer and fixer passed the same finding back and forth three times
        /// - cure: ask another agent or a person, or finish what you hold
        Cycle = "cycle", PROTOCOL;

        /// - cause: the protocol's limit on handoffs, rounds or time is reached
        /// - example: a sixth review round in a protocol that allows five
        /// - cure: finish what you hold, or let a person decide: `git handoff next ISSUE`
        LimitReached = "limit_reached", PROTOCOL;

        /// - cause: a budget of the protocol leaves nothing for another claim
        /// - example: `git handoff claim 9.4` after the claims of issue 9 cost 5.10 USD, with a budget of 5 USD per issue
        /// - cure: end the issue, or let a person raise the budget: `git handoff protocol set PROTOCOL limits.budgets.cost.NAME 10`; a day's budget is new at midnight (UTC)
        BudgetSpent = "budget_spent", PROTOCOL;

        /// - cause: the handoff was not claimed in its time, and so failed
        /// - example: `git handoff claim 9.1` a minute after it was sent, on a route that gives its receiver 30 seconds
        /// - cure: `git handoff next ISSUE` says who can give it another attempt
        NotAcknowledged = "not_acknowledged", PROTOCOL;

        /// - cause: no route lets the same sender send the agent such a contract
        /// - example: `git handoff reassign 123.2 --to closer-agent` when no route leads to closer-agent with such a contract
        /// - cure: name an agent from the hint
        NotAssignable = "not_assignable", PROTOCOL;

        /// - cause: the protocol does not keep refusals of this kind on record (only an import or a sync can request this)
        /// - example: an exported ledger with a refused cycle comes into one whose protocol has no `on_record`
        /// - cure: `git handoff protocol update` with a protocol that has `on_record`, or leave the step out
        NotOnRecord = "not_on_record", PROTOCOL;

        /// - cause: neither the lease nor the time to claim it has run out (only an import can request this)
        /// - example: someone edited an exported ledger to say that a lease ran out when it had not
        /// - cure: `git handoff show ID`
        NotOverdue = "not_overdue", PROTOCOL;

        /// - cause: a lease or the time to claim a handoff ran out, but this could not be recorded
        /// - example: the lease of 123.2 ran out, but the branch could not be written to record it
        /// - cure: run the command again, or `git handoff reap`
        Overdue = "overdue", PROTOCOL;

        /// - cause: the delay before the next attempt has not passed
        /// - example: `git handoff claim 123.2` ten seconds after a failure, when the protocol requires a minute between attempts
        /// - cure: try again at the time in the message
        TooEarly = "too_early", PROTOCOL;

        /// - cause: `init`: the ledger already exists with another evidence policy
        /// - example: `git handoff init --evidence enforce` in a repository whose ledger has `warn`
        /// - cure: set `evidence` in the protocol: `git handoff protocol set NAME evidence POLICY`
        OtherEvidence = "other_evidence", PROTOCOL;

        /// - cause: a hook on the remote refused the step; its output is in the findings
        /// - example: the server's pre-receive hook found that the step's contract is incomplete
        /// - cure: fix what the hook reports
        RemoteRefused = "remote_refused", PROTOCOL;

        /// - cause: `notify`: another process of this clone already sends the same notices to the same place
        /// - example: `git handoff notify --exec ./tell.sh`, twice at once
        /// - cure: leave it to the one that runs, or stop that first
        AlreadyNotified = "already_notified", CONFLICT;

        /// - cause: `exchange`, `export`: another process exchanges with the folder
        /// - example: `git handoff exchange shared` while one with `--watch` runs
        /// - cure: end the other one, or let it go on: one is enough for a folder
        FolderBusy = "folder_busy", CONFLICT;

        /// - cause: the handoff is already claimed by another worker
        /// - example: two agents named fixer-agent run `git handoff claim --next` at once, and this one was second
        /// - cure: `git handoff show ID`, or `git handoff claim --next`
        AlreadyClaimed = "already_claimed", CONFLICT;

        /// - cause: another worker of the agent holds the handoff: another working tree, process or session
        /// - example: two clones act as reviewer-agent; one claimed 123.4, and the other sends its review
        /// - cure: nothing was recorded, so keep your work; `git handoff show ID` says who holds it. Only if that worker is gone: `git handoff claim ID --take-over --reason WHY`
        HeldByWorker = "held_by_worker", CONFLICT;

        /// - cause: `claim --take-over`: the worker holds the handoff already
        /// - example: `git handoff claim 123.4 --take-over --reason 'it hangs'` in the working tree that claimed it
        /// - cure: go on with the work: `git handoff context ISSUE`
        OwnClaim = "own_claim", CONFLICT;

        /// - cause: the request is already answered
        /// - example: a second response to request 123.2
        /// - cure: `git handoff show ID`
        AlreadyAnswered = "already_answered", CONFLICT;

        /// - cause: the ledger has a different step in place of the imported one
        /// - example: `git handoff import backup` into a ledger whose 123.2 is a different handoff
        /// - cure: import into a new ledger, on a separate branch
        ImportConflict = "import_conflict", CONFLICT;

        /// - cause: a different contract already uses this contract's id
        /// - example: two contracts have the id `handoff-0042`, but different bytes
        /// - cure: use a new id; to correct a request that failed, `git handoff retry ID --with FILE`
        IdTaken = "id_taken", CONFLICT;

        /// - cause: the handoff moved on to another attempt while its context was being read
        /// - example: `git handoff restore 123.2` while someone retries 123.2
        /// - cure: `git handoff show ID`
        OtherAttempt = "other_attempt", CONFLICT;

        /// - cause: `restore`: the folder or the branch already exists
        /// - example: `git handoff restore 123.2 --worktree ../issue-123` when the folder exists
        /// - cure: use another name; existing files are never overwritten
        Exists = "exists", CONFLICT;

        /// - cause: `hooks`: someone changed a hook's file at the same time; it was left alone
        /// - example: an editor saves `.git/hooks/pre-commit` while `git handoff hooks install` runs
        /// - cure: run the same command again
        HookChanged = "hook_changed", CONFLICT;

        /// - cause: the comment or other input is older than the question or handoff that it would now apply to
        /// - example: a comment on GitHub would answer 123.2, but was written before 123.2 was blocked
        /// - cure: `git handoff show ID`, then repeat it if you still want it
        SaidBefore = "said_before", CONFLICT;

        /// - cause: the sender's lease ran out, its worker was replaced on record (`claim --take-over`), or another claim holds the handoff
        /// - example: an agent claimed for 45 minutes and sent after an hour; by then another agent had claimed 123.2
        /// - cure: nothing was recorded, so keep your work; then retry or claim as the hint says
        LeaseLost = "lease_lost", CONFLICT;

        /// - cause: `init`: a remote of this clone already has a ledger on this branch; a second one could never be merged with it
        /// - example: `git handoff init` in a new clone of a repository that already has a ledger
        /// - cure: `git handoff init --remote origin`
        LedgerThere = "ledger_there", CONFLICT;

        /// - cause: steps made offline were refused and set aside; a write that ran into this was not done
        /// - example: two offline clones claimed 123.4, and this one synced second
        /// - cure: `git handoff refused`, then run the command again if you still want it
        Rejected = "rejected", CONFLICT;

        /// - cause: steps made offline have new ids, and a write that may have meant the old ids was not done
        /// - example: an offline clone sent 124.1, but synced after another clone had opened 124
        /// - cure: see the ids in `data.renamed`, then run the command again with the right one
        Renamed = "renamed", CONFLICT;

        /// - cause: the step depends on one that was refused: the handoff itself, or its claim
        /// - example: `git handoff refused retry` of a contract whose claim was refused too
        /// - cure: retry that step first
        NotTaken = "not_taken", CONFLICT;

        /// - cause: the contract continued another handoff when it was made
        /// - example: `git handoff refused retry` of a contract that answered 123.2, while the agent now works on 123.4
        /// - cure: send it as a new contract
        OtherHandoff = "other_handoff", CONFLICT;

        /// - cause: `github issue`: the event names no issue
        /// - example: a pull request from branch `tidy-up` with an empty description
        /// - cure: write "Closes #12" in the pull request's description, or name its branch after the issue (`issue-12`)
        NoIssueNamed = "no_issue_named", NOT_FOUND;

        /// - cause: `explain`: no error, finding or exit code has this name or prefix
        /// - example: `git handoff explain filed.missing`
        /// - cure: use the code that the hint names; `git handoff explain` lists every code
        NoCode = "no_code", NOT_FOUND;

        /// - cause: `protocol show --type`: the protocol has no such contract type
        /// - example: `git handoff protocol show issue-to-pr --type review`
        /// - cure: use a type that the hint names
        NoType = "no_type", NOT_FOUND;

        /// - cause: the file does not exist
        /// - example: `git handoff check contract.xml` when the file is called `handoff.xml`
        /// - cure: name an existing file, or `-` to read a contract from standard input
        NoFile = "no_file", NOT_FOUND;

        /// - cause: the folder holds nothing that can be imported
        /// - example: `git handoff import src`
        /// - cure: name another folder; `git handoff import -h` lists the supported formats
        NothingToImport = "nothing_to_import", NOT_FOUND;

        /// - cause: the ledger has no such issue
        /// - example: `git handoff status 132` when the issue is 123
        /// - cure: `git handoff list`
        NoIssue = "no_issue", NOT_FOUND;

        /// - cause: the issue has no such handoff
        /// - example: `git handoff show 123.9` when the last one is 123.4
        /// - cure: `git handoff status ISSUE`
        NoHandoff = "no_handoff", NOT_FOUND;

        /// - cause: `restore`: there is no such failed attempt
        /// - example: `git handoff restore 123.2 --attempt 2` when only the first attempt failed
        /// - cure: use one that the hint names
        NoFailure = "no_failure", NOT_FOUND;

        /// - cause: `restore`: nothing was saved with that failure
        /// - example: `git handoff restore 123.2` when `fail` was called without `--snapshot` and `--attach`
        /// - cure: `git handoff show ID`
        NoContext = "no_context", NOT_FOUND;

        /// - cause: `restore`: no unfinished work was saved
        /// - example: `git handoff restore 123.2 --worktree ../issue-123` when only a log was attached
        /// - cure: `git handoff restore ID` shows what was saved
        NoSnapshot = "no_snapshot", NOT_FOUND;

        /// - cause: `restore`: the commit that the saved work is based on is not in this clone
        /// - example: the snapshot was made on another machine, on top of a commit that was never pushed
        /// - cure: fetch it, for example with `git fetch origin COMMIT`
        NoBase = "no_base", NOT_FOUND;

        /// - cause: no issue in the newest state ended before the given time, the named issues are archived already, or nothing says how old an issue must be
        /// - example: `git handoff archive --older 90d`, a second time on one day
        /// - cure: none is needed; a scheduled run takes exit 6 for success
        NothingToArchive = "nothing_to_archive", NOT_FOUND;

        /// - cause: nothing waits for the agent, or all of it waits for other handoffs
        /// - example: `git handoff claim --next --as fixer-agent` when no handoff waits for fixer-agent
        /// - cure: try again later; `git handoff wait --inbox` waits for work
        NothingToClaim = "nothing_to_claim", NOT_FOUND;

        /// - cause: there is no protocol or folder with this name
        /// - example: `git handoff protocol show delegations`
        /// - cure: use a name from the hint
        NoProtocol = "no_protocol", NOT_FOUND;

        /// - cause: `alerts`: none of the protocols in question defines alerts
        /// - example: `git handoff alerts` in a ledger whose protocol has no `alerts`
        /// - cure: add `alerts` to the protocol (`git handoff help protocols`); for a built-in one, `git handoff protocol update NAME`
        NoAlerts = "no_alerts", NOT_FOUND;

        /// - cause: `graph --tasks`: no tasks were handed over in the issue
        /// - example: `git handoff graph --tasks 123` for an issue of `issue-to-pr`
        /// - cure: `git handoff graph ISSUE` draws its handoffs
        NoTasks = "no_tasks", NOT_FOUND;

        /// - cause: the protocol has no such shared document, or it was never set
        /// - example: `git handoff document show tech-stack` before it was set
        /// - cure: use a name from the hint, or set the document
        NoDocument = "no_document", NOT_FOUND;

        /// - cause: the issue has no such task
        /// - example: `git handoff next 123 --task 12` when nobody handed over task 12
        /// - cure: `git handoff status ISSUE`
        NoTask = "no_task", NOT_FOUND;

        /// - cause: `watch`: there is no such commit
        /// - example: `git handoff watch --from abc1234` when the repository has no such commit
        /// - cure: use the `commit` of a line that it printed
        NoCommit = "no_commit", NOT_FOUND;

        /// - cause: `log`, `watch`, `export`, `import`: this clone does not have the full history
        /// - example: `git handoff log 123` in a clone of depth 1
        /// - cure: `git handoff fetch --full`
        Shallow = "shallow", NOT_FOUND;

        /// - cause: `next --apply`: nothing needs attention, or what does takes a contract or another step of an agent, not a decision
        /// - example: `git handoff next 123 --apply` while 123.4 is in progress, or after it was rejected
        /// - cure: run the command that the hint names; `git handoff next ISSUE` shows whose turn it is
        NothingToDecide = "nothing_to_decide", NOT_FOUND;

        /// - cause: there is no refused step with that name
        /// - example: `git handoff refused show 7.3-aaaaaaaaaa` after that step was dropped
        /// - cure: `git handoff refused` lists them
        NoRejected = "no_rejected", NOT_FOUND;

        /// - cause: `github comment`: the file that `--existing` names does not exist, is not a file, or is larger than 64 MiB
        /// - example: `git handoff github comment 123 --existing comments.json` before the comments were listed
        /// - cure: list the comments again
        NoComments = "no_comments", NOT_FOUND;

        /// - cause: the branch stayed locked for ten seconds
        /// - example: another git process holds `refs/heads/handoffs.lock`
        /// - cure: wait for the other git process; delete a stale lock file
        Locked = "locked", TIMED_OUT;

        /// - cause: the branch moved during every attempt
        /// - example: forty processes write in the same second, and this one lost every time
        /// - cure: run the same command again
        Contended = "contended", TIMED_OUT;

        /// - cause: `wait`: the time ran out; the data shows the current state
        /// - example: `git handoff wait 123.4 --timeout 30m` when 123.4 is still in progress after 30 minutes
        /// - cure: wait again
        TimedOut = "timed_out", TIMED_OUT;

        /// - cause: `wait`, as a tool of `mcp`: the call was cancelled, or its client disconnected
        /// - example: a harness gives up on a call after a minute, but `timeout` was an hour
        /// - cure: wait again
        Interrupted = "interrupted", TIMED_OUT;

        /// - cause: the step was recorded here, but not on the remote
        /// - example: `git handoff send contract.xml` while the remote can't be reached
        /// - cure: `git handoff sync` once the remote can be reached
        NotPublished = "not_published", NOT_PUBLISHED;

        /// - cause: this partial clone lacks a needed object
        /// - example: `git handoff show 123.4` in a partial clone that is offline
        /// - cure: the same command once the remote can be reached, or `git handoff fetch --full` for all objects
        LeftOut = "left_out", ENVIRONMENT;

        /// - cause: the folder that `-C` names can't be entered
        /// - example: `git handoff -C ../no-such-folder status`
        /// - cure: name another folder
        Directory = "directory", ENVIRONMENT;

        /// - cause: the step's date is more than a day after the time of its recording, or that time is more than a day ahead of the system's clock
        /// - example: GIT_AUTHOR_DATE is set to next year
        /// - cure: leave `GIT_AUTHOR_DATE` and `GIT_COMMITTER_DATE` unset
        Postdated = "postdated", USAGE;

        /// - cause: there is no repository here, it belongs to another user, or its format is not supported
        /// - example: `git handoff status` in a folder outside any repository
        /// - cure: read the hint
        Repository = "repository", ENVIRONMENT;

        /// - cause: the remote can't be reached, and nothing was written
        /// - example: `git handoff init --remote origin` without a network
        /// - cure: try again later
        RemoteUnreachable = "remote_unreachable", ENVIRONMENT;

        /// - cause: the remote does not let this user log in or write
        /// - example: the key that git uses may read from the remote, but not push to it
        /// - cure: make sure that `git push` works there
        RemoteDenied = "remote_denied", ENVIRONMENT;

        /// - cause: the remote's rules do not let this user push to the ledger's branch
        /// - example: a ruleset of the host lets nobody push to `handoffs`
        /// - cure: ask the remote's administrator
        RemoteProtected = "remote_protected", ENVIRONMENT;

        /// - cause: the branch does not exist, or was deleted
        /// - example: `git handoff status` before `git handoff init`, or in a new clone
        /// - cure: `git handoff init`, or `git handoff init --remote origin` to take over the one that `origin` has
        NoLedger = "no_ledger", ENVIRONMENT;

        /// - cause: the branch is not a ledger
        /// - example: `git handoff --branch main status`
        /// - cure: name the ledger's branch with `--branch`
        NotALedger = "not_a_ledger", ENVIRONMENT;

        /// - cause: the ledger's branch is checked out, and the next commit there would undo a step
        /// - example: `git switch handoffs` in a worktree, followed by `git handoff send`
        /// - cure: `git checkout --detach` there
        CheckedOut = "checked_out", ENVIRONMENT;

        /// - cause: the branch is a symbolic ref
        /// - example: `git symbolic-ref refs/heads/handoffs refs/heads/other`
        /// - cure: name the branch that it points to
        SymbolicBranch = "symbolic_branch", ENVIRONMENT;

        /// - cause: new objects are in quarantine: a push is being received, or `GIT_OBJECT_DIRECTORY` is set
        /// - example: a `pre-receive` hook that calls `git handoff send`
        /// - cure: write after the push
        Quarantine = "quarantine", ENVIRONMENT;

        /// - cause: git failed: for example no permission, or no space
        /// - example: the disk is full, or `.git/objects` belongs to another user
        /// - cure: fix that, then run the command again
        Git = "git", ENVIRONMENT;

        /// - cause: a worktree, or a file in it, can't be created
        /// - example: `git handoff restore 123.2 --worktree /ledger-123` when this user may not write there
        /// - cure: read the message; restore to another place
        Restore = "restore", ENVIRONMENT;

        /// - cause: the ledger has a remote, but the `git` command can't be started
        /// - example: a container without git, when the ledger has a remote
        /// - cure: put git on the `PATH`
        NoGit = "no_git", ENVIRONMENT;

        /// - cause: git knows no name or no e-mail address for you, and each step is a commit with your name as its committer
        /// - example: `git handoff init` in a container where `git config user.email` prints nothing
        /// - cure: set both, as for any commit: `git config user.name NAME` and `git config user.email ADDRESS`; then run the command again
        NoIdentity = "no_identity", ENVIRONMENT;

        /// - cause: `wait`, `watch`: the system does not let the program catch signals
        /// - example: `git handoff wait 123.4` in a sandbox that does not let programs catch signals
        /// - cure: read the message
        Signals = "signals", ENVIRONMENT;

        /// - cause: the commit could not be signed: git, ssh-keygen or gpg reported an error, or did not answer in time
        /// - example: handoff.sign is true, and the key needs a passphrase that nobody can type
        /// - cure: read the message; unlock the key in an agent (`ssh-add`, gpg's), or fix git's configuration
        SigningFailed = "signing_failed", ENVIRONMENT;

        /// - cause: `export`: the folder or a file in it can't be written
        /// - example: `git handoff export --format archive /backup` when the disk is mounted read-only
        /// - cure: fix that, remove what was written, and run the command again
        FolderUnwritable = "folder_unwritable", ENVIRONMENT;

        /// - cause: `export otlp --push`: the collector can't be reached, or did not answer in time
        /// - example: `git handoff export otlp --push http://localhost:4318` when nothing listens there
        /// - cure: make sure that it runs; see `--timeout`
        CollectorUnreachable = "collector_unreachable", ENVIRONMENT;

        /// - cause: `notify`: a notice was not delivered: the command failed, or the web address did not take it
        /// - example: `git handoff notify --once --webhook http://localhost:9` when nothing listens there
        /// - cure: fix what the message names and run it again; what was delivered is not sent twice
        NotDelivered = "not_delivered", ENVIRONMENT;

        /// - cause: `export otlp --push` or `notify --webhook`: the address begins with `https://`, but the program was built without https
        /// - example: `git handoff export otlp --push https://collector.example`, with a program from `scripts/install`
        /// - cure: use a released program, or build one with `cargo install --path . --features https`; `--output FILE` writes the same data to a file
        HttpsMissing = "https_missing", ENVIRONMENT;

        /// - cause: `export otlp --push`: the collector answered, but did not accept the data
        /// - example: the collector answers 404: the address lacks `/v1/traces`, or has it twice
        /// - cure: check the address and what the collector requires
        CollectorRefused = "collector_refused", ENVIRONMENT;

        /// - cause: `export otlp --push`: the collector rejected some spans and accepted the rest
        /// - example: the collector's limit of spans per minute is reached
        /// - cure: read its message
        CollectorRejected = "collector_rejected", ENVIRONMENT;

        /// - cause: the output can't be written; anything that was done stays done, and the message says so
        /// - example: `git handoff status > /full/disk/file`
        /// - cure: run the command again: a step that was taken is not taken twice
        Output = "output", ENVIRONMENT;

        /// - cause: `hooks`: an existing hook prevents it, or the hook folder is shared with other repositories; nothing was changed
        /// - example: `git handoff hooks install` when pre-commit is a Python script
        /// - cure: do what the findings say
        HooksRefused = "hooks_refused", ENVIRONMENT;

        /// - cause: `agents`: someone changed a file at the same time; nothing was changed
        /// - example: an editor saves `AGENTS.md` while `git handoff agents install codex` runs
        /// - cure: run the same command again
        AgentsChanged = "agents_changed", CONFLICT;

        /// - cause: `agents`: another `agents install` or `uninstall` did not finish within ten seconds; nothing was changed
        /// - example: one that is suspended in another terminal
        /// - cure: run the same command again when it has finished
        AgentsBusy = "agents_busy", CONFLICT;

        /// - cause: `agents`: an existing file prevents it; nothing was changed
        /// - example: `git handoff agents install claude-code` when `.claude/settings.json` contains comments
        /// - cure: do what the findings say
        AgentsRefused = "agents_refused", ENVIRONMENT;

        /// - cause: `agents`: a file can't be read or written
        /// - example: `AGENTS.md` belongs to another user
        /// - cure: fix that, then run the command again
        AgentsFile = "agents_file", ENVIRONMENT;

        /// - cause: `agents`: a bare repository has no files for a harness to read
        /// - example: `git handoff agents install codex` on a server
        /// - cure: run it in a clone or a worktree
        Bare = "bare", ENVIRONMENT;

        /// - cause: `hooks`: a hook's file can't be read or written
        /// - example: `.git/hooks` belongs to another user
        /// - cure: fix that, then run the command again
        HookFile = "hook_file", ENVIRONMENT;

        /// - cause: the scratch repository can't be created
        /// - example: `git handoff demo ../tour` when the folder already exists
        /// - cure: read the message, or name another folder
        Demo = "demo", ENVIRONMENT;

        /// - cause: `serve` can't listen on the port
        /// - example: `git handoff serve --port 80` as a user without permission
        /// - cure: leave `--port` out
        Port = "port", ENVIRONMENT;

        /// - cause: `mcp`: the server can't be started
        /// - example: the system allows this user no more threads
        /// - cure: end other processes, or raise the limit (`ulimit -u`), then start it again
        McpFailed = "mcp_failed", ENVIRONMENT;

        /// - cause: a tool call of `mcp` hit a bug in the program
        /// - example: an internal error that should never happen
        /// - cure: a step is recorded whole or not at all, see `git handoff log`; report what was printed to standard error
        Panicked = "panicked", ENVIRONMENT;

        /// - cause: the worker id of this working tree (`handoff/worker` in its Git directory) can't be read or written
        /// - example: `git handoff claim 123.4` in a clone on a read-only file system
        /// - cure: name the worker with `--worker ID`, GIT_HANDOFF_WORKER or `git config handoff.worker ID`
        WorkerFile = "worker_file", ENVIRONMENT;

        /// - cause: the remote is a shallow clone, whose ledger this clone can't continue from
        /// - example: `git handoff fetch` from a repository made with `git clone --depth=1`
        /// - cure: `git fetch --unshallow` in the remote, or use the repository that it was cloned from
        RemoteShallow = "remote_shallow", ENVIRONMENT;

        /// - cause: the remote names its objects by SHA-1 and this repository by SHA-256, or the other way round
        /// - example: `git handoff init --remote origin` in a repository made with `git init --object-format=sha256`, when origin has SHA-1
        /// - cure: use a remote of the same format, or move the issues with `git handoff export` and `git handoff import`
        RemoteFormat = "remote_format", ENVIRONMENT;

        /// - cause: the remote's branch no longer descends from where it was
        /// - example: someone force-pushed `handoffs`
        /// - cure: find out who rewrote it
        RemoteRewritten = "remote_rewritten", INTEGRITY;

        /// - cause: the repository's configuration sends a remote elsewhere than when the worker started
        /// - example: an agent of `work` set `url.*.insteadOf` or `remote.origin.url`
        /// - cure: set it back, or start the worker again if that is right
        RemoteRedirected = "remote_redirected", INTEGRITY;

        /// - cause: the remote no longer has the ledger's branch
        /// - example: someone deleted `handoffs` on the remote
        /// - cure: find out who removed it
        RemoteGone = "remote_gone", INTEGRITY;

        /// - cause: the remote's ledger and this one have no commit in common
        /// - example: two people ran `git handoff init` in two clones, and both pushed
        /// - cure: use another branch, or `export` and `import`
        Unrelated = "unrelated", INTEGRITY;

        /// - cause: the protocol in the ledger is invalid
        /// - example: someone committed a `protocol.json` with a syntax error to the ledger
        /// - cure: `git handoff verify`; compare with another clone
        ProtocolBroken = "protocol_broken", INTEGRITY;

        /// - cause: a schema in the ledger can't be used
        /// - example: someone committed an invalid schema to the ledger
        /// - cure: `git handoff verify`; compare with another clone
        SchemaBroken = "schema_broken", INTEGRITY;

        /// - cause: a skeleton in the ledger can't be read
        /// - example: someone committed a skeleton that is not JSON to the ledger
        /// - cure: `git handoff verify`; compare with another clone
        TemplateBroken = "template_broken", INTEGRITY;

        /// - cause: `verify` found faults, or a file or object is missing or damaged
        /// - example: an object of the ledger is missing after a disk failure
        /// - cure: write nothing; compare with another clone
        LedgerDamaged = "ledger_damaged", INTEGRITY;

        /// - cause: `watch`: the branch does not contain the commit to continue from; it was rewritten, or the commit is on another branch
        /// - example: `git handoff watch --from COMMIT` after the branch was rewritten
        /// - cure: compare with another clone; `git handoff watch --all`
        NotInHistory = "not_in_history", INTEGRITY;
    }
    }
}

impl ErrorCode {
    /// The exit codes that go with it, the usual one first.
    pub fn exits(self) -> &'static [u8] {
        Self::EXPLAINED[self as usize].exit
    }
}
