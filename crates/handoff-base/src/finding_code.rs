//! The code of every finding: a stable word for programs.
//!
//! `src/failure/codes.md` explains each of them; a test compares the two.

use std::fmt::{self, Display, Formatter};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

macro_rules! finding_codes {
    ($($name:ident = $word:literal;)+) => {
        /// The code of a finding, ordered by its word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
        #[schemars(with = "String")]
        pub enum FindingCode {
            $(#[doc = concat!("`", $word, "`")] $name,)+
        }

        impl FindingCode {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The dotted, lower-case word, as `code` of a finding has it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

finding_codes! {
    AgentName = "agent.name";
    AgentUnknown = "agent.unknown";
    AgentsBlock = "agents.block";
    AgentsConfig = "agents.config";
    AgentsConsent = "agents.consent";
    AgentsDisabled = "agents.disabled";
    AgentsEntry = "agents.entry";
    AgentsHarness = "agents.harness";
    AgentsIgnored = "agents.ignored";
    AgentsLeftover = "agents.leftover";
    AgentsLink = "agents.link";
    AgentsMarker = "agents.marker";
    AgentsNoAgent = "agents.no_agent";
    AgentsNoLedger = "agents.no_ledger";
    AgentsProgram = "agents.program";
    AgentsReadOnly = "agents.read_only";
    AgentsServer = "agents.server";
    AgentsSkill = "agents.skill";
    AgentsVersion = "agents.version";
    AnswerMissing = "answer.missing";
    AnswerType = "answer.type";
    AnswerUnknown = "answer.unknown";
    ArtifactChanged = "artifact.changed";
    ArtifactDestination = "artifact.destination";
    ArtifactMissing = "artifact.missing";
    ArtifactSchema = "artifact.schema";
    ArtifactType = "artifact.type";
    BranchDeleted = "branch.deleted";
    BranchNotHeld = "branch.not_held";
    BranchRefused = "branch.refused";
    BranchSymbolic = "branch.symbolic";
    BranchUnknown = "branch.unknown";
    CommitAuthor = "commit.author";
    CommitHeader = "commit.header";
    CommitMessage = "commit.message";
    CommitTree = "commit.tree";
    ContractAltered = "contract.altered";
    ContractFormat = "contract.format";
    ContractInconsistent = "contract.inconsistent";
    ContractNotInForce = "contract.not_in_force";
    ContractRoot = "contract.root";
    ContractShared = "contract.shared";
    ContractType = "contract.type";
    EnvelopeIssue = "envelope.issue";
    ErrorUnknown = "error.unknown";
    EvidenceArtifacts = "evidence.artifacts";
    EvidenceBranch = "evidence.branch";
    EvidenceCommits = "evidence.commits";
    EvidenceCommitsAdded = "evidence.commits_added";
    EvidenceCoverage = "evidence.coverage";
    EvidenceFilesChanged = "evidence.files_changed";
    EvidenceForged = "evidence.forged";
    EvidenceMerge = "evidence.merge";
    EvidencePaths = "evidence.paths";
    EvidenceTests = "evidence.tests";
    EvidenceTestsAdded = "evidence.tests_added";
    FailureAltered = "failure.altered";
    FieldFormat = "field.format";
    FieldInvalid = "field.invalid";
    FieldLength = "field.length";
    FieldMissing = "field.missing";
    FieldPattern = "field.pattern";
    FieldRange = "field.range";
    FieldRepeated = "field.repeated";
    FieldType = "field.type";
    FieldUndecided = "field.undecided";
    FieldUnfilled = "field.unfilled";
    FieldUnknown = "field.unknown";
    FieldValue = "field.value";
    FileAltered = "file.altered";
    FileMissing = "file.missing";
    FileStray = "file.stray";
    FileUnreadable = "file.unreadable";
    FindingOpen = "finding.open";
    FindingUnknown = "finding.unknown";
    FindingsMore = "findings.more";
    GateDataIntegrity = "gate.data_integrity";
    GateNoOrphanedTasks = "gate.no_orphaned_tasks";
    GatePolicy = "gate.policy";
    GateRequiredFields = "gate.required_fields";
    GateStateConsistency = "gate.state_consistency";
    GateValidTransition = "gate.valid_transition";
    HistoryBroken = "history.broken";
    HistoryMerge = "history.merge";
    HistoryRewritten = "history.rewritten";
    HookDisabled = "hook.disabled";
    HookEarlyExit = "hook.early_exit";
    HookElsewhere = "hook.elsewhere";
    HookIgnored = "hook.ignored";
    HookManaged = "hook.managed";
    HookMissing = "hook.missing";
    HookNever = "hook.never";
    HookNoProgram = "hook.no_program";
    HookNoexec = "hook.noexec";
    HookNotAFile = "hook.not_a_file";
    HookNotExecutable = "hook.not_executable";
    HookNotShell = "hook.not_shell";
    HookOldGit = "hook.old_git";
    HookOutdated = "hook.outdated";
    HookReadOnly = "hook.read_only";
    HookSecondBlock = "hook.second_block";
    HookSymlink = "hook.symlink";
    HookUnclosedBlock = "hook.unclosed_block";
    HookUnopenedBlock = "hook.unopened_block";
    ImportContract = "import.contract";
    ImportEntries = "import.entries";
    ImportFile = "import.file";
    ImportHeader = "import.header";
    ImportLine = "import.line";
    ImportRequest = "import.request";
    ImportSha256 = "import.sha256";
    ImportState = "import.state";
    InputEmpty = "input.empty";
    InputNotAFile = "input.not_a_file";
    InputNotFound = "input.not_found";
    InputNotUtf8 = "input.not_utf8";
    InputTooLarge = "input.too_large";
    InputUnknownFormat = "input.unknown_format";
    InputUnreadable = "input.unreadable";
    IssueAltered = "issue.altered";
    JsonDuplicateKey = "json.duplicate_key";
    JsonNotAnObject = "json.not_an_object";
    JsonNumberRange = "json.number_range";
    JsonSyntax = "json.syntax";
    JsonTooDeep = "json.too_deep";
    MarkdownCodeBlock = "markdown.code_block";
    MarkdownDuplicateKey = "markdown.duplicate_key";
    MarkdownEmpty = "markdown.empty";
    MarkdownMixed = "markdown.mixed";
    MarkdownParties = "markdown.parties";
    MarkdownSecondTitle = "markdown.second_title";
    MarkdownTextAfterEnd = "markdown.text_after_end";
    MarkdownTextBeforeSection = "markdown.text_before_section";
    MarkdownTitle = "markdown.title";
    MarkdownUnclosed = "markdown.unclosed";
    ObjectLeftOut = "object.left_out";
    ObjectUnreadable = "object.unreadable";
    OpenMissing = "open.missing";
    OpenStale = "open.stale";
    ProtocolAction = "protocol.action";
    ProtocolAlert = "protocol.alert";
    ProtocolAmbiguous = "protocol.ambiguous";
    ProtocolAnswer = "protocol.answer";
    ProtocolClaims = "protocol.claims";
    ProtocolConsistency = "protocol.consistency";
    ProtocolDecision = "protocol.decision";
    ProtocolDuplicate = "protocol.duplicate";
    ProtocolErrorCode = "protocol.error_code";
    ProtocolExample = "protocol.example";
    ProtocolFact = "protocol.fact";
    ProtocolField = "protocol.field";
    ProtocolFieldType = "protocol.field_type";
    ProtocolFindings = "protocol.findings";
    ProtocolFormat = "protocol.format";
    ProtocolGithub = "protocol.github";
    ProtocolLimit = "protocol.limit";
    ProtocolLoops = "protocol.loops";
    ProtocolMissingFile = "protocol.missing_file";
    ProtocolNote = "protocol.note";
    ProtocolOrphan = "protocol.orphan";
    ProtocolPath = "protocol.path";
    ProtocolPaths = "protocol.paths";
    ProtocolPointer = "protocol.pointer";
    ProtocolRequirement = "protocol.requirement";
    ProtocolRetry = "protocol.retry";
    ProtocolRoot = "protocol.root";
    ProtocolRoute = "protocol.route";
    ProtocolSchema = "protocol.schema";
    ProtocolSigners = "protocol.signers";
    ProtocolSyntax = "protocol.syntax";
    ProtocolTasks = "protocol.tasks";
    ProtocolTemplate = "protocol.template";
    ProtocolTime = "protocol.time";
    ProtocolTitle = "protocol.title";
    ProtocolTrace = "protocol.trace";
    ProtocolTrail = "protocol.trail";
    ProtocolUnknownAgent = "protocol.unknown_agent";
    ProtocolUnknownField = "protocol.unknown_field";
    ProtocolUnknownRule = "protocol.unknown_rule";
    ProtocolUnknownStatus = "protocol.unknown_status";
    ProtocolUnknownType = "protocol.unknown_type";
    ProtocolUnreachableAgent = "protocol.unreachable_agent";
    ProtocolUnreachableState = "protocol.unreachable_state";
    ProtocolUnusedType = "protocol.unused_type";
    ProtocolVersion = "protocol.version";
    ProtocolWeaker = "protocol.weaker";
    ProtocolWhen = "protocol.when";
    RecordAltered = "record.altered";
    RemoteHook = "remote.hook";
    RouteForbidden = "route.forbidden";
    RouteUnknown = "route.unknown";
    SchemaUnknown = "schema.unknown";
    SecretFound = "secret.found";
    SignatureBad = "signature.bad";
    SignatureMissing = "signature.missing";
    SignatureNotValid = "signature.not_valid";
    SignatureOtherAgent = "signature.other_agent";
    SignatureUnknown = "signature.unknown";
    SignatureUnverified = "signature.unverified";
    SignersAuthority = "signers.authority";
    SignersDate = "signers.date";
    SignersKey = "signers.key";
    SignersNoKey = "signers.no_key";
    SignersNoPerson = "signers.no_person";
    SignersOption = "signers.option";
    SignersPattern = "signers.pattern";
    SignersSyntax = "signers.syntax";
    SignersUnjudged = "signers.unjudged";
    StatusClaimed = "status.claimed";
    StatusClosing = "status.closing";
    StatusUnfinished = "status.unfinished";
    StepBackdated = "step.backdated";
    StepIllegal = "step.illegal";
    StepMany = "step.many";
    StepNone = "step.none";
    StepPostdated = "step.postdated";
    StepRepeated = "step.repeated";
    TaskCount = "task.count";
    TaskCycle = "task.cycle";
    TaskDuplicate = "task.duplicate";
    TaskGroup = "task.group";
    TaskName = "task.name";
    TaskOrder = "task.order";
    TaskOrphan = "task.orphan";
    TaskState = "task.state";
    TaskUnknownDependency = "task.unknown_dependency";
    TextControlCharacter = "text.control_character";
    XmlDoctype = "xml.doctype";
    XmlEncoding = "xml.encoding";
    XmlNamespace = "xml.namespace";
    XmlSyntax = "xml.syntax";
    XmlTooDeep = "xml.too_deep";
    XmlTooManyAttributes = "xml.too_many_attributes";
    XmlUnexpectedElement = "xml.unexpected_element";
    XmlUnexpectedText = "xml.unexpected_text";
    XmlVersion = "xml.version";
}

impl FindingCode {
    /// Whether it says that a gate failed, which only sums up other findings.
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

    /// Whether it says that nothing may go from this sender to this receiver.
    pub fn is_route(self) -> bool {
        matches!(self, Self::RouteForbidden | Self::RouteUnknown)
    }
}

impl Display for FindingCode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
