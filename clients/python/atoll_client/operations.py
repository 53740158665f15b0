"""Every operation of the API. Made from its document by npm run client; changes here are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Optional, TypedDict, Union

from .caller import Bytes, Caller

if TYPE_CHECKING:
    from typing_extensions import NotRequired

class AdminTeam(TypedDict):
    teamID: str
    name: str
    slug: str
    limits: TeamLimits
    # Nothing is let in
    banned: bool
    # It may read and delete
    blocked: bool
    # What its pauses outlive where a request does not say
    pauseDurability: Literal["node", "cluster"]
    createdAt: str


class AdminUser(TypedDict):
    userID: str
    name: str
    email: Optional[str]
    # May do what the operator may, when signed in
    operator: bool
    createdAt: str


class AssignTemplateTagsRequest(TypedDict):
    # name[:tag]
    target: str
    tags: List[str]


class AssignedTemplateTags(TypedDict):
    tags: List[str]
    buildID: str


class AuditEntry(TypedDict):
    id: str
    timestamp: str
    # operationId of the request, or `cli.…` for a command on the machine
    operation: str
    # What was changed, as kind:ID; empty when there is nothing to name
    target: str
    actor: AuditEntryActor
    teamID: Optional[str]
    # Where the request came from
    address: str
    # How it was answered; 5xx may have changed something
    status: int
    before: Optional[Dict[str, Any]]
    after: Optional[Dict[str, Any]]


class AuditEntryActor(TypedDict):
    kind: Literal["apiKey", "user", "admin", "local", "none"]
    id: Optional[str]


class BuildLogEntry(TypedDict):
    timestamp: str
    level: Literal["debug", "info", "warn", "error"]
    message: str
    step: NotRequired[str]


class ClusterInvite(TypedDict):
    # For `atoll node --token`; good once, for an hour
    token: str
    expiresAt: str


class ClusterJoin(TypedDict):
    tokenID: str
    nodeID: str
    # `host:port` at which control reaches the machine
    address: str
    # PEM of a public key on the curve P-256
    publicKey: str
    # Of a machine that has joined before: nobody else may join under its ID
    known: NotRequired[ClusterJoinKnown]
    # What the machine is: one of another architecture, release or time is refused
    machine: NotRequired[ClusterJoinMachine]
    # HMAC-SHA-256, hexadecimal
    proof: str


class ClusterJoinKnown(TypedDict):
    # PEM of the certificate that it has
    certificate: str
    # Signature by the key of that certificate, base64
    proof: str


class ClusterJoinMachine(TypedDict):
    release: str
    # As its kernel names it, e.g. `x86_64`
    architecture: str
    # What its clock shows, milliseconds since 1970
    nowMs: float


class ClusterJoinPod(TypedDict):
    # Of the pod's service account, for the audience `atoll`
    token: str
    nodeID: str
    # `host:port` at which control reaches the machine
    address: str
    # PEM of a public key on the curve P-256
    publicKey: str
    # Of a machine that has joined before: nobody else may join under its ID
    known: NotRequired[ClusterJoinPodKnown]
    # What the machine is: one of another architecture, release or time is refused
    machine: NotRequired[ClusterJoinPodMachine]


class ClusterJoinPodKnown(TypedDict):
    # PEM of the certificate that it has
    certificate: str
    # Signature by the key of that certificate, base64
    proof: str


class ClusterJoinPodMachine(TypedDict):
    release: str
    # As its kernel names it, e.g. `x86_64`
    architecture: str
    # What its clock shows, milliseconds since 1970
    nowMs: float


class ClusterJoined(TypedDict):
    # PEM, for the key that was sent
    certificate: str
    # PEM of the cluster's authority
    authority: str
    # HMAC-SHA-256, hexadecimal, by which the machine knows who answers
    proof: str


class ClusterPodJoined(TypedDict):
    # PEM, for the key that was sent
    certificate: str
    # PEM of the cluster's authority
    authority: str


class ConnectSandbox(TypedDict):
    timeout: int
    # False: start a paused sandbox from its filesystem alone
    memory: NotRequired[bool]


class ConnectSandboxV2(TypedDict):
    timeout: NotRequired[int]
    # False: start a paused sandbox from its filesystem alone
    memory: NotRequired[bool]


class CreatedAccessToken(TypedDict):
    id: str
    name: str
    # Shown this once
    token: str
    mask: IdentifierMaskingDetails
    createdAt: str


class CreatedInvitation(TypedDict):
    invitationID: str
    # Behind the origin of the platform; shown this once
    path: str
    expiresAt: str


class CreatedTeamAPIKey(TypedDict):
    id: str
    name: str
    mask: IdentifierMaskingDetails
    createdAt: str
    createdBy: NotRequired[Optional[CreatedTeamAPIKeyCreatedBy]]
    lastUsed: NotRequired[Optional[str]]
    # Shown this once
    key: str


class CreatedTeamAPIKeyCreatedBy(TypedDict):
    id: str
    email: Optional[str]


class CreatedWebhook(TypedDict):
    id: str
    teamId: str
    name: str
    url: str
    enabled: bool
    events: List[str]
    # The last try of a delivery failed
    failing: bool
    createdAt: str
    updatedAt: str
    # Where none was given: the one that was made. Shown this once
    signatureSecret: NotRequired[str]


class DeleteTemplateTagsRequest(TypedDict):
    name: str
    tags: List[str]


class DiskMetrics(TypedDict):
    mountPoint: str
    device: str
    filesystemType: str
    usedBytes: int
    totalBytes: int


class DrainedKept(TypedDict):
    # Paused ones that are not in the store
    sandboxes: int
    # Those without a copy in the store
    volumes: int


class DrainedSandbox(TypedDict):
    sandboxID: str
    teamID: str
    templateID: str
    # Why it can't go in this way; absent where it can
    reason: NotRequired[str]


class DrainedVolume(TypedDict):
    volumeID: str
    teamID: str
    name: str
    # Why it can't be moved; absent where it can
    reason: NotRequired[str]


class EgressProxy(TypedDict):
    # host:port of a SOCKS5 proxy
    address: str
    username: NotRequired[str]
    # Never returned
    password: NotRequired[str]
    tls: NotRequired[EgressProxyTls]


class EgressProxyTls(TypedDict):
    # True is refused: the proxy is spoken to without TLS
    enabled: NotRequired[Literal[False]]
    # Without effect while TLS is not enabled
    serverName: NotRequired[str]
    # Without effect while TLS is not enabled
    caCert: NotRequired[str]


class ApiError(TypedDict):
    # Always the HTTP status
    code: int
    message: str
    # Machine-readable detail
    error_code: NotRequired[str]


class Examination(TypedDict):
    examinedAt: str
    findings: List[HostFinding]


class FromImageRegistryValue1(TypedDict):
    type: Literal["registry"]
    username: str
    password: str


class FromImageRegistryValue2(TypedDict):
    type: Literal["aws"]
    awsAccessKeyId: str
    awsSecretAccessKey: str
    awsRegion: str


class FromImageRegistryValue3(TypedDict):
    type: Literal["gcp"]
    serviceAccountJson: str


class HostFinding(TypedDict):
    # Short and stable: programs select by it
    name: str
    status: Literal["ok", "limited", "missing"]
    # What was seen
    detail: str
    # No sandbox can run without it
    needed: bool
    # What to do, where something is to be done
    remedy: NotRequired[str]


class IdentifierMaskingDetails(TypedDict):
    prefix: str
    # Without the prefix
    valueLength: int
    maskedValuePrefix: str
    maskedValueSuffix: str


class InstallationOverview(TypedDict):
    # When the process that answers started; it knows nothing from before
    since: str
    # Creates and forks of sandboxes in the last hour
    creates: InstallationOverviewCreates
    # What keeps the standing truths: its last round
    reconcilers: List[InstallationOverviewReconcilersItem]
    disks: List[InstallationOverviewDisksItem]


class InstallationOverviewCreates(TypedDict):
    succeeded: int
    # Through no fault of the caller's
    failed: int
    p50Seconds: Optional[float]
    p99Seconds: Optional[float]
    # Why those that failed did, the most frequent first
    causes: List[InstallationOverviewCreatesCausesItem]


class InstallationOverviewCreatesCausesItem(TypedDict):
    # `error_code`, or the code
    cause: str
    count: int


class InstallationOverviewReconcilersItem(TypedDict):
    name: str
    lastRunAt: str
    lastResult: Literal["ok", "failed"]
    runs: int
    failures: int
    lastFailedAt: Optional[str]


class InstallationOverviewDisksItem(TypedDict):
    nodeID: str
    mountPoint: str
    # Bytes
    usedBytes: int
    # Bytes
    totalBytes: int
    fullAt: Optional[str]


class Invitation(TypedDict):
    invitationID: str
    role: Literal["viewer", "developer", "admin"]
    # For whom it is, in the words of who made it
    note: str
    createdAt: str
    expiresAt: str


class InvitedAccount(TypedDict):
    invitation: str
    name: str
    email: str
    password: str


class JoinTeam(TypedDict):
    invitation: str


class LifecycleEvent(TypedDict):
    version: Literal["v2"]
    # The same in every delivery of the event
    id: str
    type: Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]
    timestamp: str
    eventData: Optional[Dict[str, Any]]
    event_data: Optional[Dict[str, Any]]
    event_category: Literal["lifecycle"]
    event_label: str
    sandboxId: NotRequired[str]
    sandbox_id: NotRequired[str]
    sandboxExecutionId: NotRequired[str]
    sandbox_execution_id: NotRequired[str]
    sandboxTemplateId: NotRequired[str]
    sandbox_template_id: NotRequired[str]
    sandboxBuildId: NotRequired[str]
    sandbox_build_id: NotRequired[str]
    sandboxTeamId: NotRequired[str]
    sandbox_team_id: NotRequired[str]
    teamId: str
    subject: LifecycleEventSubject


class LifecycleEventSubject(TypedDict):
    kind: Literal["sandbox", "build", "volume"]
    id: str


class ListedSandbox(TypedDict):
    templateID: str
    sandboxID: str
    # Deprecated
    clientID: str
    # Version of the in-sandbox agent
    envdVersion: str
    alias: NotRequired[str]
    # The node that runs it, or keeps what is paused
    nodeID: str
    startedAt: str
    # Running: when it expires. Paused: when it was paused
    endAt: str
    cpuCount: int
    memoryMB: int
    diskSizeMB: int
    state: Literal["running", "paused"]
    # What is being done with it at this moment; absent while nothing is. Atoll only
    transition: NotRequired[Literal["pausing", "resuming", "snapshotting", "moving"]]
    metadata: NotRequired[Dict[str, str]]
    volumeMounts: List[VolumeMount]
    # Of a paused sandbox: whether its memory was kept with its files, or its files alone
    pauseMode: NotRequired[Literal["full", "filesystem"]]
    # Of a paused sandbox, true: its agent did not answer when its memory was kept. It is resumed with memory: false, without that memory; else 409, sandbox_snapshot_guest_agent_unresponsive
    envdUnresponsiveAtPause: NotRequired[bool]
    # Of a paused sandbox: node: it is on its machine alone; cluster: it outlives that. Atoll only
    durability: NotRequired[Literal["node", "cluster"]]


class ListedSession(TypedDict):
    sessionID: str
    # The one that asks
    current: bool
    createdAt: str
    lastUsedAt: str
    address: str
    userAgent: str


class MaxTeamMetric(TypedDict):
    # The same as timestampUnix
    timestamp: str
    # Seconds
    timestampUnix: int
    value: float


class Member(TypedDict):
    userID: str
    name: str
    email: Optional[str]
    role: Literal["viewer", "developer", "admin"]
    since: str


class MemberChange(TypedDict):
    role: Literal["viewer", "developer", "admin"]


class NetworkQuestion(TypedDict):
    # An address, or the name of a host
    host: str
    allow_internet_access: NotRequired[bool]
    # Addresses, CIDR blocks and domain names that may be reached in spite of denyOut
    allowOut: NotRequired[List[str]]
    # Addresses and CIDR blocks that may not be reached
    denyOut: NotRequired[List[str]]


class NetworkRule(TypedDict):
    transform: NotRequired[NetworkRuleTransform]


class NetworkRuleTransform(TypedDict):
    # Headers set on requests to the domain
    headers: NotRequired[Dict[str, str]]


class NetworkVerdict(TypedDict):
    verdict: Literal["passes", "denied", "depends"]
    # The rule that decides, as logs name it
    rule: str


class NewAccessToken(TypedDict):
    name: str


class NewAccount(TypedDict):
    name: str
    email: str
    password: str


class NewInvitation(TypedDict):
    role: Literal["viewer", "developer", "admin"]
    note: NotRequired[str]


class NewPassword(TypedDict):
    password: str


class NewSandbox(TypedDict):
    # Template ID, name or name:tag
    templateID: str
    timeout: NotRequired[int]
    # When the time is over: pause instead of kill
    autoPause: NotRequired[bool]
    # False: an automatic pause keeps the filesystem alone
    autoPauseMemory: NotRequired[bool]
    # What an automatic pause is to outlive. With cluster, one that can not be stored stays on its machine
    autoPauseDurability: NotRequired[Literal["node", "cluster"]]
    autoResume: NotRequired[NewSandboxAutoResume]
    # Require the access token inside the sandbox
    secure: NotRequired[bool]
    allow_internet_access: NotRequired[bool]
    network: NotRequired[SandboxNetworkConfig]
    # What lists show and can look for: up to 256 pairs, and 256 KiB as JSON
    metadata: NotRequired[Dict[str, str]]
    # Environment of every process in the sandbox
    envVars: NotRequired[Dict[str, str]]
    # Recorded only; up to 64 KiB
    mcp: NotRequired[Dict[str, Any]]
    iam: NotRequired[NewSandboxIam]
    volumeMounts: NotRequired[List[VolumeMount]]


class NewSandboxAutoResume(TypedDict):
    enabled: NotRequired[bool]


class NewSandboxIam(TypedDict):
    tokens: NotRequired[Dict[str, NewSandboxIamTokensValue]]


class NewSandboxIamTokensValue(TypedDict):
    audience: str
    tokenType: str


class NewSandboxV2(TypedDict):
    # Template ID, name or name:tag
    templateID: str
    timeout: NotRequired[int]
    # When the time is over: pause instead of kill
    autoPause: NotRequired[bool]
    # False: an automatic pause keeps the filesystem alone
    autoPauseMemory: NotRequired[bool]
    # What an automatic pause is to outlive. With cluster, one that can not be stored stays on its machine
    autoPauseDurability: NotRequired[Literal["node", "cluster"]]
    autoResume: NotRequired[NewSandboxV2AutoResume]
    # Require the access token inside the sandbox
    secure: NotRequired[bool]
    allow_internet_access: NotRequired[bool]
    network: NotRequired[SandboxNetworkConfig]
    # What lists show and can look for: up to 256 pairs, and 256 KiB as JSON
    metadata: NotRequired[Dict[str, str]]
    # Environment of every process in the sandbox
    envVars: NotRequired[Dict[str, str]]
    # Recorded only; up to 64 KiB
    mcp: NotRequired[Dict[str, Any]]
    iam: NotRequired[NewSandboxV2Iam]
    volumeMounts: NotRequired[List[VolumeMount]]


class NewSandboxV2AutoResume(TypedDict):
    enabled: NotRequired[bool]


class NewSandboxV2Iam(TypedDict):
    tokens: NotRequired[Dict[str, NewSandboxV2IamTokensValue]]


class NewSandboxV2IamTokensValue(TypedDict):
    audience: str
    tokenType: str


class NewSecret(TypedDict):
    # 1 to 128 of letters, digits, "-" and "_"; lower-cased; not sec_…
    name: str
    # Never returned
    value: str
    metadata: NotRequired[Dict[str, str]]


class NewSecretVersion(TypedDict):
    # Never returned
    value: str
    metadata: NotRequired[Dict[str, str]]


class NewSignInLink(TypedDict):
    # Whom it signs in; default: the operator
    userID: NotRequired[str]


class NewSnapshot(TypedDict):
    # [namespace/]name[:tag]; a name that the team has gets a further build
    name: NotRequired[str]
    # False: keep the files alone; sandboxes made from it boot from them
    memory: NotRequired[bool]


class NewTeam(TypedDict):
    name: str
    # Namespace of the team's templates; never changes
    slug: str
    limits: NotRequired[TeamLimits]


class NewTeamAPIKey(TypedDict):
    name: str


class NewUser(TypedDict):
    name: str
    email: NotRequired[str]


class NewVolume(TypedDict):
    name: str


class NewWebhook(TypedDict):
    name: str
    # http: or https:, without user and password
    url: str
    # Which events are delivered
    events: List[Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]]
    enabled: NotRequired[bool]
    # What deliveries are signed with. Never returned
    signatureSecret: NotRequired[str]


class Node(TypedDict):
    id: str
    serviceInstanceID: str
    clusterID: str
    status: Literal["ready", "draining", "connecting", "unhealthy", "standby"]
    statusChangedAt: str
    sandboxCount: int
    # Creates and forks, since the platform started
    createSuccesses: int
    # Creates and forks that failed through no fault of the caller's, since the platform started
    createFails: int
    version: str
    commit: str
    machineInfo: NodeMachineInfo
    metrics: NodeMetrics
    # Whether pauses keep memory, by its default driver. Absent while it does not answer. Atoll only
    keepsMemory: NotRequired[NodeKeepsMemory]
    # Its pool of started sandboxes. Absent where it keeps none. Atoll only
    pool: NotRequired[NodePool]
    # What its operator says of it (`ATOLL_NODE_LABELS`). Atoll only
    labels: NotRequired[Dict[str, str]]
    sandboxStartingCount: int


class NodeMachineInfo(TypedDict):
    cpuFamily: str
    cpuModel: str
    cpuModelName: str
    cpuArchitecture: str


class NodeKeepsMemory(TypedDict):
    kept: bool
    # Why it is not
    reason: NotRequired[str]


class NodePool(TypedDict):
    # Started ones that it keeps
    size: int
    # Those that wait now
    ready: int
    # Creates that found one, since the node started
    hits: int
    # Creates that found none
    misses: int


class NodeDetail(TypedDict):
    id: str
    serviceInstanceID: str
    clusterID: str
    status: Literal["ready", "draining", "connecting", "unhealthy", "standby"]
    statusChangedAt: str
    sandboxCount: int
    # Creates and forks, since the platform started
    createSuccesses: int
    # Creates and forks that failed through no fault of the caller's, since the platform started
    createFails: int
    version: str
    commit: str
    machineInfo: NodeDetailMachineInfo
    metrics: NodeMetrics
    # Whether pauses keep memory, by its default driver. Absent while it does not answer. Atoll only
    keepsMemory: NotRequired[NodeDetailKeepsMemory]
    # Its pool of started sandboxes. Absent where it keeps none. Atoll only
    pool: NotRequired[NodeDetailPool]
    # What its operator says of it (`ATOLL_NODE_LABELS`). Atoll only
    labels: NotRequired[Dict[str, str]]


class NodeDetailMachineInfo(TypedDict):
    cpuFamily: str
    cpuModel: str
    cpuModelName: str
    cpuArchitecture: str


class NodeDetailKeepsMemory(TypedDict):
    kept: bool
    # Why it is not
    reason: NotRequired[str]


class NodeDetailPool(TypedDict):
    # Started ones that it keeps
    size: int
    # Those that wait now
    ready: int
    # Creates that found one, since the node started
    hits: int
    # Creates that found none
    misses: int


class NodeDrain(TypedDict):
    nodeID: str
    mode: Literal["none", "wait", "pause", "move"]
    # Those that use the machine, the ones that can not go first
    sandboxes: List[DrainedSandbox]
    # Of a drain by moves: those that are on the machine, the ones that can not go first
    volumes: List[DrainedVolume]
    kept: DrainedKept


class NodeDrainStart(TypedDict):
    mode: Literal["wait", "pause", "move"]


class NodeForgotten(TypedDict):
    nodeID: str
    # What only the machine had
    lost: NodeForgottenLost
    # Paused sandboxes that are in the store: they go on elsewhere
    stored: int


class NodeForgottenLost(TypedDict):
    # Running and paused ones
    sandboxes: int
    # Those without a copy in the store
    volumes: int


class NodeMetric(TypedDict):
    # The same as timestampUnix
    timestamp: str
    # Seconds
    timestampUnix: int
    # Over all CPUs
    cpuPercent: float
    # Bytes
    memoryUsedBytes: int
    # Bytes
    memoryTotalBytes: int
    disks: List[NodeMetricDisksItem]


class NodeMetricDisksItem(TypedDict):
    mountPoint: str
    # Bytes
    usedBytes: int
    # Bytes
    totalBytes: int


class NodeMetrics(TypedDict):
    # CPUs promised to sandboxes
    allocatedCPU: int
    cpuCount: int
    cpuPercent: int
    # Memory promised to sandboxes
    allocatedMemoryBytes: int
    memoryUsedBytes: int
    memoryTotalBytes: int
    hugePagesTotal: int
    hugePagesUsed: int
    hugePagesReserved: int
    hugePageSizeBytes: int
    disks: List[DiskMetrics]


class NodeStatusChange(TypedDict):
    status: Literal["ready", "draining", "connecting", "unhealthy", "standby"]
    clusterID: NotRequired[str]


class OrphanSandbox(TypedDict):
    sandboxID: str
    nodeID: str
    # Absent where the node can't read its record; then it can be removed and not adopted
    templateID: NotRequired[str]
    setAsideAt: str
    reason: str


class OrphanVolume(TypedDict):
    volumeID: str
    nodeID: str
    createdAt: str


class Orphans(TypedDict):
    sandboxes: List[OrphanSandbox]
    volumes: List[OrphanVolume]
    # The nodes that did not answer, and may keep more; absent where all have
    unansweredNodeIDs: NotRequired[List[str]]


class ProviderSignIn(TypedDict):
    # SHA-256, hex, of a secret that the page keeps
    binding: str


class ProviderUrl(TypedDict):
    url: str


class RestoredVolume(TypedDict):
    volumeID: str
    name: str
    # What was written to it later is lost
    copiedAt: str
    # How old the copy was
    ageSeconds: int


class Sandbox(TypedDict):
    templateID: str
    sandboxID: str
    # Deprecated
    clientID: str
    # Version of the in-sandbox agent
    envdVersion: str
    alias: NotRequired[str]
    envdAccessToken: NotRequired[Optional[str]]
    trafficAccessToken: NotRequired[Optional[str]]
    domain: NotRequired[Optional[str]]


class SandboxAdoption(TypedDict):
    # Who has it from now on
    teamID: str


class SandboxDetail(TypedDict):
    templateID: str
    sandboxID: str
    # Deprecated
    clientID: str
    # Version of the in-sandbox agent
    envdVersion: str
    alias: NotRequired[str]
    # The node that runs it, or keeps what is paused
    nodeID: str
    startedAt: str
    # Running: when it expires. Paused: when it was paused
    endAt: str
    cpuCount: int
    memoryMB: int
    diskSizeMB: int
    state: Literal["running", "paused"]
    # What is being done with it at this moment; absent while nothing is. Atoll only
    transition: NotRequired[Literal["pausing", "resuming", "snapshotting", "moving"]]
    metadata: NotRequired[Dict[str, str]]
    volumeMounts: List[VolumeMount]
    # Of a paused sandbox: whether its memory was kept with its files, or its files alone
    pauseMode: NotRequired[Literal["full", "filesystem"]]
    # Of a paused sandbox, true: its agent did not answer when its memory was kept. It is resumed with memory: false, without that memory; else 409, sandbox_snapshot_guest_agent_unresponsive
    envdUnresponsiveAtPause: NotRequired[bool]
    # Of a paused sandbox: node: it is on its machine alone; cluster: it outlives that. Atoll only
    durability: NotRequired[Literal["node", "cluster"]]
    envdAccessToken: NotRequired[str]
    allowInternetAccess: NotRequired[Optional[bool]]
    domain: NotRequired[Optional[str]]
    network: NotRequired[SandboxNetworkConfig]
    lifecycle: SandboxDetailLifecycle


class SandboxDetailLifecycle(TypedDict):
    autoResume: bool
    onTimeout: Literal["kill", "pause"]
    # Of the pause when the time is over. Atoll only
    durability: NotRequired[Literal["node", "cluster"]]


class SandboxFork(TypedDict):
    timeout: NotRequired[int]
    count: NotRequired[int]


class SandboxForkResult(TypedDict):
    sandbox: NotRequired[Sandbox]
    error: NotRequired[ApiError]


class SandboxLog(TypedDict):
    timestamp: str
    # A JSON object with level, logger, message and the fields of the entry
    line: str


class SandboxLogEntry(TypedDict):
    timestamp: str
    message: str
    level: Literal["debug", "info", "warn", "error"]
    # What the entry is about (logger), and its parts
    fields: Dict[str, str]


class SandboxLogs(TypedDict):
    logs: List[SandboxLog]
    logEntries: List[SandboxLogEntry]
    # A machine that has some of it is out of reach now: there may be more
    partial: NotRequired[bool]


class SandboxLogsV2Response(TypedDict):
    logs: List[SandboxLogEntry]
    # A machine that has some of it is out of reach now: there may be more
    partial: NotRequired[bool]


class SandboxMetric(TypedDict):
    # The same as timestampUnix
    timestamp: str
    # Seconds
    timestampUnix: int
    cpuCount: int
    # Over all CPUs of the sandbox
    cpuUsedPct: float
    # Bytes, without memCache
    memUsed: int
    # Bytes
    memTotal: int
    # Bytes of files that are kept in memory while there is room
    memCache: int
    # Bytes
    diskUsed: int
    # Bytes
    diskTotal: int


class SandboxNetworkConfig(TypedDict):
    # False: every port but the agent's needs the traffic token. Default true
    allowPublicTraffic: NotRequired[bool]
    # Addresses, CIDR blocks and domain names that may be reached in spite of denyOut
    allowOut: NotRequired[List[str]]
    # Addresses and CIDR blocks that may not be reached
    denyOut: NotRequired[List[str]]
    egressProxy: NotRequired[EgressProxy]
    # Others than those of the installation are refused
    dnsServers: NotRequired[List[str]]
    # Host that services in the sandbox see; ${PORT} is the requested port
    maskRequestHost: NotRequired[str]
    # Header rules by domain
    rules: NotRequired[Dict[str, List[NetworkRule]]]
    # Ports whose service in the sandbox speaks TLS
    httpsPorts: NotRequired[List[int]]


class SandboxNetworkUpdate(TypedDict):
    # Addresses, CIDR blocks and domain names that may be reached in spite of denyOut
    allowOut: NotRequired[List[str]]
    # Addresses and CIDR blocks that may not be reached
    denyOut: NotRequired[List[str]]
    egressProxy: NotRequired[EgressProxy]
    # Others than those of the installation are refused
    dnsServers: NotRequired[List[str]]
    # Header rules by domain
    rules: NotRequired[Dict[str, List[NetworkRule]]]
    allow_internet_access: NotRequired[bool]


class SandboxPause(TypedDict):
    # False: keep the files alone; a resume boots from them
    memory: NotRequired[bool]
    # cluster: answer when it outlives its machine, too. Absent: as the team has it. Atoll only
    durability: NotRequired[Literal["node", "cluster"]]
    # True: 503, and it runs on, where the agent inside does not answer within a few seconds; so it is with memory: false in any case. Else such a pause is marked: envdUnresponsiveAtPause
    requireHealthyGuest: NotRequired[bool]


class SandboxRefresh(TypedDict):
    duration: NotRequired[int]


class SandboxResume(TypedDict):
    timeout: NotRequired[int]
    # When the time is over: pause instead of kill
    autoPause: NotRequired[bool]
    # False: boot from the files alone
    memory: NotRequired[bool]


class SandboxTimeout(TypedDict):
    timeout: int


class SandboxTraffic(TypedDict):
    # What the sandbox has sent by itself
    bytesOut: int
    # What it has received
    bytesIn: int
    # Packets and connections that its network policy refused
    denied: int


class SandboxesWithMetrics(TypedDict):
    # The latest metric of each sandbox that has one, by ID
    sandboxes: Dict[str, SandboxMetric]
    # The machine of some of them is out of reach now: those are left out
    partial: NotRequired[bool]


class Secret(TypedDict):
    secretID: str
    name: str
    currentVersion: int
    metadata: Dict[str, str]
    createdAt: str
    updatedAt: str


class Session(TypedDict):
    sessionID: str
    user: Optional[SessionUser]
    # May do what the operator may
    operator: bool
    # An operator acts for any team
    teams: List[SessionTeam]
    # However much it is used
    expiresAt: str


class SessionUser(TypedDict):
    id: str
    name: str
    email: Optional[str]
    hasPassword: bool


class SessionProof(TypedDict):
    # Of a sign-in link
    code: NotRequired[str]
    # Of a user
    accessToken: NotRequired[str]
    password: NotRequired[str]


class SessionTeam(TypedDict):
    teamID: str
    name: str
    slug: str
    role: Literal["viewer", "developer", "admin"]


class ShownSetting(TypedDict):
    # The variable
    name: str
    value: Optional[str]
    source: Literal["environment", "settings file", "default"]


class ShownSettings(TypedDict):
    # The settings file
    file: str
    settings: List[ShownSetting]


class SignIn(TypedDict):
    # Of a sign-in link
    code: NotRequired[str]
    # Of a user
    accessToken: NotRequired[str]
    email: NotRequired[str]
    password: NotRequired[str]
    provider: NotRequired[SignInProvider]


class SignInProvider(TypedDict):
    name: Optional[str]


class SignInLink(TypedDict):
    # Behind the origin of the platform
    path: str
    expiresAt: str


class SnapshotInfo(TypedDict):
    # What a create takes as templateID: namespace/name:tag, or templateID:tag
    snapshotID: str
    names: List[str]


class StuckSandbox(TypedDict):
    sandboxID: str
    teamID: str
    nodeID: str
    state: Literal["starting", "running", "pausing", "paused", "resuming", "snapshotting", "moving", "killing"]
    # Seen in this state since then; it may have been so before
    since: str


class Team(TypedDict):
    teamID: str
    name: str
    # A key made for this answer
    apiKey: str
    isDefault: bool


class TeamAPIKey(TypedDict):
    id: str
    name: str
    mask: IdentifierMaskingDetails
    createdAt: str
    createdBy: NotRequired[Optional[TeamAPIKeyCreatedBy]]
    lastUsed: NotRequired[Optional[str]]


class TeamAPIKeyCreatedBy(TypedDict):
    id: str
    email: Optional[str]


class TeamChange(TypedDict):
    name: NotRequired[str]
    limits: NotRequired[TeamLimitsChange]
    banned: NotRequired[bool]
    blocked: NotRequired[bool]
    # What its pauses outlive where a request does not say
    pauseDurability: NotRequired[Literal["node", "cluster"]]


class TeamLimits(TypedDict):
    # Sandboxes at once
    concurrentSandboxes: NotRequired[int]
    # Template builds at once
    concurrentBuilds: NotRequired[int]
    # Sandboxes, running and paused
    sandboxes: NotRequired[int]
    # Templates, snapshots apart
    templates: NotRequired[int]
    # Builds of templates that are kept; the oldest that failed make room
    builds: NotRequired[int]
    # Snapshots that are kept
    snapshots: NotRequired[int]
    # Longest life of one run of a sandbox
    lifetimeHours: NotRequired[int]
    # CPUs of a sandbox
    cpuCount: NotRequired[int]
    # Memory of a sandbox
    memoryMiB: NotRequired[int]
    # Disk of a sandbox
    diskMiB: NotRequired[int]
    # Requests to the API, 16 KiB of a body counting as one more; 0: no limit
    requestsPerSecond: NotRequired[int]
    # Volumes; 0: none
    volumes: NotRequired[int]
    # Size of each new volume
    volumeMiB: NotRequired[int]


class TeamLimitsChange(TypedDict):
    concurrentSandboxes: NotRequired[Optional[int]]
    concurrentBuilds: NotRequired[Optional[int]]
    sandboxes: NotRequired[Optional[int]]
    templates: NotRequired[Optional[int]]
    builds: NotRequired[Optional[int]]
    snapshots: NotRequired[Optional[int]]
    lifetimeHours: NotRequired[Optional[int]]
    cpuCount: NotRequired[Optional[int]]
    memoryMiB: NotRequired[Optional[int]]
    diskMiB: NotRequired[Optional[int]]
    requestsPerSecond: NotRequired[Optional[int]]
    volumes: NotRequired[Optional[int]]
    volumeMiB: NotRequired[Optional[int]]


class TeamMetric(TypedDict):
    # The same as timestampUnix
    timestamp: str
    # Seconds
    timestampUnix: int
    # The most that ran at a time
    concurrentSandboxes: int
    # Sandboxes created a second
    sandboxStartRate: float
    # For how long sandboxes ran, counted once a minute
    sandboxSeconds: int


class TeamUse(TypedDict):
    limits: TeamUseLimits
    taken: TeamUseTaken


class TeamUseLimits(TypedDict):
    # Sandboxes at once
    concurrentSandboxes: int
    # Template builds at once
    concurrentBuilds: int
    # Sandboxes, running and paused
    sandboxes: int
    # Templates, snapshots apart
    templates: int
    # Builds of templates that are kept; the oldest that failed make room
    builds: int
    # Snapshots that are kept
    snapshots: int
    # Longest life of one run of a sandbox
    lifetimeHours: int
    # CPUs of a sandbox
    cpuCount: int
    # Memory of a sandbox
    memoryMiB: int
    # Disk of a sandbox
    diskMiB: int
    # Requests to the API, 16 KiB of a body counting as one more; 0: no limit
    requestsPerSecond: int
    # Volumes; 0: none
    volumes: int
    # Size of each new volume
    volumeMiB: int


class TeamUseTaken(TypedDict):
    concurrentSandboxes: int
    concurrentBuilds: int
    sandboxes: int
    templates: int
    builds: int
    snapshots: int
    volumes: int


class Template(TypedDict):
    templateID: str
    # The newest ready build; the zero UUID when there is none
    buildID: str
    cpuCount: int
    memoryMB: int
    diskSizeMB: int
    public: bool
    # Deprecated
    aliases: List[str]
    # namespace/alias, or the bare alias when it has no namespace
    names: List[str]
    createdAt: str
    updatedAt: str
    lastSpawnedAt: Optional[str]
    spawnCount: int
    createdBy: Optional[TemplateCreatedBy]
    buildCount: int
    envdVersion: str
    buildStatus: Literal["waiting", "building", "ready", "error"]


class TemplateCreatedBy(TypedDict):
    id: str
    email: Optional[str]


class TemplateAlias(TypedDict):
    templateID: str
    public: bool


class TemplateBuild(TypedDict):
    buildID: str
    status: Literal["waiting", "building", "ready", "error"]
    createdAt: str
    updatedAt: str
    finishedAt: NotRequired[str]
    cpuCount: int
    memoryMB: int
    diskSizeMB: NotRequired[int]
    envdVersion: NotRequired[str]


class TemplateBuildFileUpload(TypedDict):
    # The files are here already
    present: bool
    # Where to PUT the archive
    url: NotRequired[str]
    headers: NotRequired[Dict[str, str]]


class TemplateBuildInfo(TypedDict):
    templateID: str
    buildID: str
    status: Literal["waiting", "building", "ready", "error"]
    # Deprecated, empty
    logs: List[str]
    logEntries: List[BuildLogEntry]
    reason: NotRequired[TemplateBuildInfoReason]


class TemplateBuildInfoReason(TypedDict):
    message: str
    # `base`, `finalize` or the number of a step, from 1
    step: NotRequired[str]
    logEntries: NotRequired[List[BuildLogEntry]]


class TemplateBuildLogsResponse(TypedDict):
    logs: List[BuildLogEntry]


class TemplateBuildRequest(TypedDict):
    dockerfile: str
    # Name of the template
    alias: NotRequired[str]
    # Deprecated; must be the team of the credential
    teamID: NotRequired[str]
    # Run after the build; sandboxes start with it running
    startCmd: NotRequired[str]
    # Succeeds once what the start command runs is ready. Without one the build waits 20 s where there is a start command
    readyCmd: NotRequired[str]
    # 1 or even. Default 2
    cpuCount: NotRequired[int]
    # Even. Default 1024
    memoryMB: NotRequired[int]


class TemplateBuildRequestV2(TypedDict):
    # Name of the template
    alias: str
    # Deprecated; must be the team of the credential
    teamID: NotRequired[str]
    # 1 or even. Default 2
    cpuCount: NotRequired[int]
    # Even. Default 1024
    memoryMB: NotRequired[int]


class TemplateBuildRequestV3(TypedDict):
    # Name of the template, with `:tag` where another than `default` is meant
    name: NotRequired[str]
    # Deprecated: the same as name
    alias: NotRequired[str]
    tags: NotRequired[List[str]]
    # Deprecated; must be the team of the credential
    teamID: NotRequired[str]
    # 1 or even. Default 2
    cpuCount: NotRequired[int]
    # Even. Default 1024
    memoryMB: NotRequired[int]
    # Free disk that sandboxes have at least, up to what the team may use
    minFreeDiskMb: NotRequired[int]


class TemplateBuildStartV2(TypedDict):
    fromImage: NotRequired[str]
    fromTemplate: NotRequired[str]
    fromImageRegistry: NotRequired[FromImageRegistry]
    force: NotRequired[bool]
    steps: NotRequired[List[TemplateStep]]
    startCmd: NotRequired[str]
    # Succeeds once what the start command runs is ready. Without one the build waits 20 s where there is a start command
    readyCmd: NotRequired[str]


class TemplateContent(TypedDict):
    # The newest build that is ready
    buildID: str
    user: str
    # Absent: the home directory of the user
    workdir: NotRequired[str]
    startCommand: NotRequired[str]
    readyCommand: NotRequired[str]
    layers: List[TemplateContentLayersItem]


class TemplateContentLayersItem(TypedDict):
    digest: str
    # Absent where no machine that has it answers
    sizeBytes: NotRequired[int]
    # Other templates that have it, of the team and those that every team may use
    sharedBy: List[TemplateContentLayersItemSharedByItem]


class TemplateContentLayersItemSharedByItem(TypedDict):
    templateID: str
    # Deprecated
    aliases: List[str]
    # namespace/alias, or the bare alias when it has no namespace
    names: List[str]


class TemplateRequestResponseV3(TypedDict):
    templateID: str
    buildID: str
    public: bool
    names: List[str]
    tags: List[str]
    # Deprecated
    aliases: List[str]


class TemplateStep(TypedDict):
    # RUN, COPY, ENV, USER or WORKDIR
    type: str
    args: NotRequired[List[str]]
    # Of the uploaded files of a COPY
    filesHash: NotRequired[str]
    # Run this step and all after it, cached or not
    force: NotRequired[bool]


class TemplateTag(TypedDict):
    tag: str
    buildID: str
    createdAt: str


class TemplateTagAssignment(TypedDict):
    # The same for the same tag and build
    assignmentId: str
    buildId: str
    assignedAt: str
    buildCreatedAt: str
    buildFinishedAt: Optional[str]


class TemplateTagAssignmentsResponse(TypedDict):
    # The newest first
    data: List[TemplateTagAssignment]
    nextCursor: Optional[str]


class TemplateTagExistsResponse(TypedDict):
    exists: bool
    normalizedTag: str


class TemplateTagGroup(TypedDict):
    tag: str
    # The newest first
    assignments: List[TemplateTagAssignment]
    # The tag has more assignments
    hasMore: bool


class TemplateTagGroupsResponse(TypedDict):
    tags: List[TemplateTagGroup]
    nextCursor: Optional[str]


class TemplateTagsCountResponse(TypedDict):
    total: int


class TemplateUpdateRequest(TypedDict):
    public: NotRequired[bool]


class TemplateUpdateResponse(TypedDict):
    names: List[str]


class TemplateUse(TypedDict):
    templateID: str
    # Those that it has now; none where it is gone
    names: List[str]
    # Counted once a minute
    sandboxSeconds: int


class TemplateWithBuilds(TypedDict):
    templateID: str
    public: bool
    # Deprecated
    aliases: List[str]
    # namespace/alias, or the bare alias when it has no namespace
    names: List[str]
    createdAt: str
    updatedAt: str
    lastSpawnedAt: Optional[str]
    spawnCount: int
    builds: List[TemplateBuild]


class UpdateTeamAPIKey(TypedDict):
    name: str


class UserChange(TypedDict):
    operator: bool


class Volume(TypedDict):
    volumeID: str
    name: str
    # What it can hold, MiB. Atoll only
    sizeMB: int
    # Sandboxes, running or paused, that have it. Atoll only
    sandboxCount: int
    # When its newest copy in the store of a cluster was begun; absent where there is none
    copiedAt: NotRequired[str]


class VolumeAndToken(TypedDict):
    volumeID: str
    name: str
    # For the content of this volume alone
    token: str
    # Where the content is, if elsewhere
    domain: NotRequired[str]
    # When its newest copy in the store of a cluster was begun; absent where there is none
    copiedAt: NotRequired[str]


class VolumeEntryChange(TypedDict):
    uid: NotRequired[int]
    gid: NotRequired[int]
    # Permission bits
    mode: NotRequired[int]


class VolumeEntryStat(TypedDict):
    name: str
    type: Literal["unknown", "file", "directory", "symlink"]
    path: str
    size: int
    # Permission bits
    mode: int
    uid: int
    gid: int
    atime: str
    mtime: str
    ctime: str
    # Of a symlink
    target: NotRequired[str]


class VolumeMount(TypedDict):
    # Volume name
    name: str
    # Mount path in the sandbox
    path: str


class VolumesUse(TypedDict):
    # By the ID of the volume
    volumes: Dict[str, VolumesUseVolumesValue]
    # The machine of some of them is out of reach now: those are left out
    partial: NotRequired[bool]


class VolumesUseVolumesValue(TypedDict):
    # What it takes on its machine, file system included
    usedBytes: int


class Webhook(TypedDict):
    id: str
    teamId: str
    name: str
    url: str
    enabled: bool
    events: List[str]
    # The last try of a delivery failed
    failing: bool
    createdAt: str
    updatedAt: str


class WebhookDelivery(TypedDict):
    eventId: str
    type: Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]
    # kind:ID of what the event is about
    subject: str
    state: Literal["pending", "delivered", "dead"]
    attempts: int
    lastStatus: Optional[int]
    lastError: Optional[str]
    nextAttemptAt: Optional[str]
    finishedAt: Optional[str]


class WebhookUpdate(TypedDict):
    name: NotRequired[str]
    # http: or https:, without user and password
    url: NotRequired[str]
    # Which events are delivered
    events: NotRequired[List[Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]]]
    enabled: NotRequired[bool]
    # What deliveries are signed with. Never returned
    signatureSecret: NotRequired[str]


class AdminCancelTeamBuildsAnswer(TypedDict):
    cancelledCount: int
    failedCount: int


class AdminKillTeamSandboxesAnswer(TypedDict):
    killedCount: int
    failedCount: int


class GetHealthAnswer(TypedDict):
    status: Literal["ok"]


FromImageRegistry = Union[FromImageRegistryValue1, FromImageRegistryValue2, FromImageRegistryValue3]


class Operations(Caller):
    """Every operation of the API as a method."""

    def admin_add_member(
        self,
        team_id: str,
        user_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Add a user to a team"""
        return self.ask_nothing(
            "adminAddMember",
            "PUT",
            "/admin/teams/{teamID}/members/{userID}",
            path_values={"teamID": team_id, "userID": user_id},
            timeout=timeout,
            token=token,
        )

    def admin_adopt_sandbox(
        self,
        sandbox_id: str,
        *,
        body: SandboxAdoption,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Adopt an orphaned sandbox for a team, as a paused one"""
        return self.ask_nothing(
            "adminAdoptSandbox",
            "POST",
            "/admin/orphans/sandboxes/{sandboxID}/adopt",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_adopt_volume(
        self,
        volume_id: str,
        team_id: str,
        *,
        body: NewVolume,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Adopt an orphaned volume for a team"""
        return self.ask_nothing(
            "adminAdoptVolume",
            "POST",
            "/admin/orphans/volumes/{volumeID}/adopt/{teamID}",
            path_values={"volumeID": volume_id, "teamID": team_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_begin_drain(
        self,
        node_id: str,
        *,
        body: NodeDrainStart,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> NodeDrain:
        """Begin to empty a machine; setting its status to ready ends that"""
        return self.ask_json(
            "adminBeginDrain",
            "POST",
            "/admin/nodes/{nodeID}/drain",
            path_values={"nodeID": node_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_cancel_team_builds(
        self,
        team_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AdminCancelTeamBuildsAnswer:
        """Cancel all builds of a team that wait or run"""
        return self.ask_json(
            "adminCancelTeamBuilds",
            "POST",
            "/admin/teams/{teamID}/builds/cancel",
            path_values={"teamID": team_id},
            timeout=timeout,
            token=token,
        )

    def admin_create_access_token(
        self,
        user_id: str,
        *,
        body: NewAccessToken,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedAccessToken:
        """Create an access token for a user"""
        return self.ask_json(
            "adminCreateAccessToken",
            "POST",
            "/admin/users/{userID}/access-tokens",
            path_values={"userID": user_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_create_api_key(
        self,
        team_id: str,
        *,
        body: NewTeamAPIKey,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedTeamAPIKey:
        """Create an API key for a team"""
        return self.ask_json(
            "adminCreateApiKey",
            "POST",
            "/admin/teams/{teamID}/api-keys",
            path_values={"teamID": team_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_create_sign_in_link(
        self,
        *,
        body: Optional[NewSignInLink] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SignInLink:
        """Create a link that signs in at the dashboard once, as the operator or a user"""
        return self.ask_json(
            "adminCreateSignInLink",
            "POST",
            "/admin/sign-in-links",
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_create_team(
        self,
        *,
        body: NewTeam,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AdminTeam:
        """Create a team"""
        return self.ask_json(
            "adminCreateTeam",
            "POST",
            "/admin/teams",
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_create_user(
        self,
        *,
        body: NewUser,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AdminUser:
        """Create a user"""
        return self.ask_json(
            "adminCreateUser",
            "POST",
            "/admin/users",
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_delete_api_key(
        self,
        team_id: str,
        api_key_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete an API key of a team"""
        return self.ask_nothing(
            "adminDeleteApiKey",
            "DELETE",
            "/admin/teams/{teamID}/api-keys/{apiKeyID}",
            path_values={"teamID": team_id, "apiKeyID": api_key_id},
            timeout=timeout,
            token=token,
        )

    def admin_discard_sandbox(
        self,
        sandbox_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete an orphaned sandbox with all its data"""
        return self.ask_nothing(
            "adminDiscardSandbox",
            "DELETE",
            "/admin/orphans/sandboxes/{sandboxID}",
            path_values={"sandboxID": sandbox_id},
            timeout=timeout,
            token=token,
        )

    def admin_discard_volume(
        self,
        volume_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete an orphaned volume with its content"""
        return self.ask_nothing(
            "adminDiscardVolume",
            "DELETE",
            "/admin/orphans/volumes/{volumeID}",
            path_values={"volumeID": volume_id},
            timeout=timeout,
            token=token,
        )

    def admin_examine(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Examination:
        """Examine the machine that answers, as `atoll doctor` does; takes some seconds and changes nothing"""
        return self.ask_json(
            "adminExamine",
            "GET",
            "/admin/doctor",
            timeout=timeout,
            token=token,
        )

    def admin_forget_node(
        self,
        node_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> NodeForgotten:
        """Forget a machine for good: what only it had is lost"""
        return self.ask_json(
            "adminForgetNode",
            "DELETE",
            "/admin/nodes/{nodeID}",
            path_values={"nodeID": node_id},
            timeout=timeout,
            token=token,
        )

    def admin_forget_unknown(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Allow the deletion of layers and memory that the database does not know, after an older one was accepted"""
        return self.ask_nothing(
            "adminForgetUnknown",
            "POST",
            "/admin/orphans/forget-unknown",
            timeout=timeout,
            token=token,
        )

    def admin_get_audit(
        self,
        *,
        team_id: Optional[str] = None,
        operation: Optional[str] = None,
        target: Optional[str] = None,
        actor: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[AuditEntry]:
        """List audit log entries, newest first, page by page"""
        return self.ask_json(
            "adminGetAudit",
            "GET",
            "/admin/audit",
            query={"teamID": team_id, "operation": operation, "target": target, "actor": actor, "limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def admin_get_running_counts(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Dict[str, int]:
        """Count the running sandboxes of each team; teams without any are left out"""
        return self.ask_json(
            "adminGetRunningCounts",
            "GET",
            "/admin/sandboxes/running-counts",
            timeout=timeout,
            token=token,
        )

    def admin_invite_node(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> ClusterInvite:
        """Invite a machine to the cluster"""
        return self.ask_json(
            "adminInviteNode",
            "POST",
            "/admin/cluster/invites",
            timeout=timeout,
            token=token,
        )

    def admin_kill_team_sandboxes(
        self,
        team_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AdminKillTeamSandboxesAnswer:
        """Kill all sandboxes of a team"""
        return self.ask_json(
            "adminKillTeamSandboxes",
            "POST",
            "/admin/teams/{teamID}/sandboxes/kill",
            path_values={"teamID": team_id},
            timeout=timeout,
            token=token,
        )

    def admin_list_orphans(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Orphans:
        """List orphans: sandboxes and volumes that the database does not know"""
        return self.ask_json(
            "adminListOrphans",
            "GET",
            "/admin/orphans",
            timeout=timeout,
            token=token,
        )

    def admin_list_settings(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> ShownSettings:
        """List the settings that the process which answers was started with, and where each comes from"""
        return self.ask_json(
            "adminListSettings",
            "GET",
            "/admin/settings",
            timeout=timeout,
            token=token,
        )

    def admin_list_stuck_sandboxes(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[StuckSandbox]:
        """List sandboxes of all teams that have been between two states for over 60 seconds"""
        return self.ask_json(
            "adminListStuckSandboxes",
            "GET",
            "/admin/sandboxes/stuck",
            timeout=timeout,
            token=token,
        )

    def admin_list_teams(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[AdminTeam]:
        """List all teams"""
        return self.ask_json(
            "adminListTeams",
            "GET",
            "/admin/teams",
            timeout=timeout,
            token=token,
        )

    def admin_list_users(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[AdminUser]:
        """List all users"""
        return self.ask_json(
            "adminListUsers",
            "GET",
            "/admin/users",
            timeout=timeout,
            token=token,
        )

    def admin_read_drain(
        self,
        node_id: str,
        *,
        mode: Optional[Literal["wait", "pause", "move"]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> NodeDrain:
        """Read what keeps a machine from being empty, and what of it can not be paused or moved"""
        return self.ask_json(
            "adminReadDrain",
            "GET",
            "/admin/nodes/{nodeID}/drain",
            path_values={"nodeID": node_id},
            query={"mode": mode},
            timeout=timeout,
            token=token,
        )

    def admin_read_overview(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> InstallationOverview:
        """Get how creates, reconcilers and disks do, as the process that answers has seen it since it started"""
        return self.ask_json(
            "adminReadOverview",
            "GET",
            "/admin/overview",
            timeout=timeout,
            token=token,
        )

    def admin_remove_member(
        self,
        team_id: str,
        user_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Remove a user from a team"""
        return self.ask_nothing(
            "adminRemoveMember",
            "DELETE",
            "/admin/teams/{teamID}/members/{userID}",
            path_values={"teamID": team_id, "userID": user_id},
            timeout=timeout,
            token=token,
        )

    def admin_update_team(
        self,
        team_id: str,
        *,
        body: TeamChange,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AdminTeam:
        """Update a team: its name, limits and what its pauses outlive; ban or block it"""
        return self.ask_json(
            "adminUpdateTeam",
            "PATCH",
            "/admin/teams/{teamID}",
            path_values={"teamID": team_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def admin_update_user(
        self,
        user_id: str,
        *,
        body: UserChange,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Make a user an operator, or none any more; it counts from the next request on"""
        return self.ask_nothing(
            "adminUpdateUser",
            "PATCH",
            "/admin/users/{userID}",
            path_values={"userID": user_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def assign_template_tags(
        self,
        *,
        body: AssignTemplateTagsRequest,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> AssignedTemplateTags:
        """Assign tags to the build that a template reference selects"""
        return self.ask_json(
            "assignTemplateTags",
            "POST",
            "/templates/tags",
            body=body,
            timeout=timeout,
            token=token,
        )

    def begin_sign_in_at_provider(
        self,
        *,
        body: ProviderSignIn,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> ProviderUrl:
        """Begin to sign in at the identity provider"""
        return self.ask_json(
            "beginSignInAtProvider",
            "POST",
            "/session/provider",
            body=body,
            timeout=timeout,
            token=token,
        )

    def cancel_template_build(
        self,
        template_id: str,
        build_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Cancel a build that waits or runs"""
        return self.ask_nothing(
            "cancelTemplateBuild",
            "POST",
            "/templates/{templateID}/builds/{buildID}/cancel",
            path_values={"templateID": template_id, "buildID": build_id},
            timeout=timeout,
            token=token,
        )

    def change_password(
        self,
        *,
        body: NewPassword,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Set the own password; every session of the account ends and a new one begins"""
        return self.ask_json(
            "changePassword",
            "PUT",
            "/session/password",
            body=body,
            timeout=timeout,
            token=token,
        )

    def connect_sandbox(
        self,
        sandbox_id: str,
        *,
        body: ConnectSandbox,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Sandbox:
        """Connect to a sandbox; resume it if it is paused"""
        return self.ask_json(
            "connectSandbox",
            "POST",
            "/sandboxes/{sandboxID}/connect",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def connect_sandbox_v2(
        self,
        sandbox_id: str,
        *,
        body: Optional[ConnectSandboxV2] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Sandbox:
        """Connect to a sandbox; resume it if it is paused"""
        return self.ask_json(
            "connectSandboxV2",
            "POST",
            "/v2/sandboxes/{sandboxID}/connect",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def count_template_tags(
        self,
        template_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateTagsCountResponse:
        """Count the tags of a template that select a ready build"""
        return self.ask_json(
            "countTemplateTags",
            "GET",
            "/templates/{templateID}/tags/count",
            path_values={"templateID": template_id},
            timeout=timeout,
            token=token,
        )

    def create_access_token(
        self,
        *,
        body: NewAccessToken,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedAccessToken:
        """Create an access token for the user"""
        return self.ask_json(
            "createAccessToken",
            "POST",
            "/access-tokens",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_api_key(
        self,
        *,
        body: NewTeamAPIKey,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedTeamAPIKey:
        """Create an API key for the team"""
        return self.ask_json(
            "createApiKey",
            "POST",
            "/api-keys",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_invitation(
        self,
        *,
        body: NewInvitation,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedInvitation:
        """Create a link by which somebody joins the team, once and within 72 hours"""
        return self.ask_json(
            "createInvitation",
            "POST",
            "/invitations",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_invited_account(
        self,
        *,
        body: InvitedAccount,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Create an account by an invitation, join its team and sign in"""
        return self.ask_json(
            "createInvitedAccount",
            "POST",
            "/session/invited",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_operator_account(
        self,
        *,
        body: NewAccount,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Create an account with a password for the operator who signed in by a link; the session becomes one of it"""
        return self.ask_json(
            "createOperatorAccount",
            "POST",
            "/session/account",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_sandbox(
        self,
        *,
        body: NewSandbox,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Sandbox:
        """Create a sandbox, secured only when asked for"""
        return self.ask_json(
            "createSandbox",
            "POST",
            "/sandboxes",
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_sandbox_v2(
        self,
        *,
        body: NewSandboxV2,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Sandbox:
        """Create a sandbox, always secured"""
        return self.ask_json(
            "createSandboxV2",
            "POST",
            "/v2/sandboxes",
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_secret(
        self,
        *,
        body: NewSecret,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Secret:
        """Create a secret"""
        return self.ask_json(
            "createSecret",
            "POST",
            "/secrets",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_snapshot(
        self,
        sandbox_id: str,
        *,
        body: Optional[NewSnapshot] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SnapshotInfo:
        """Create a snapshot of a running sandbox"""
        return self.ask_json(
            "createSnapshot",
            "POST",
            "/sandboxes/{sandboxID}/snapshots",
            path_values={"sandboxID": sandbox_id},
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_template(
        self,
        *,
        body: TemplateBuildRequest,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Template:
        """Register a build of a Dockerfile for a new template (deprecated)"""
        return self.ask_json(
            "createTemplate",
            "POST",
            "/templates",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_template_v2(
        self,
        *,
        body: TemplateBuildRequestV2,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Template:
        """Register a build (deprecated)"""
        return self.ask_json(
            "createTemplateV2",
            "POST",
            "/v2/templates",
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_template_v3(
        self,
        *,
        body: TemplateBuildRequestV3,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateRequestResponseV3:
        """Register a build; it waits until it is started"""
        return self.ask_json(
            "createTemplateV3",
            "POST",
            "/v3/templates",
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_volume(
        self,
        *,
        body: NewVolume,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeAndToken:
        """Create an empty volume"""
        return self.ask_json(
            "createVolume",
            "POST",
            "/volumes",
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def create_volume_directory(
        self,
        volume_id: str,
        *,
        path: str,
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        mode: Optional[int] = None,
        force: Optional[bool] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeEntryStat:
        """Create a directory"""
        return self.ask_json(
            "createVolumeDirectory",
            "POST",
            "/volumecontent/{volumeID}/dir",
            path_values={"volumeID": volume_id},
            query={"path": path, "uid": uid, "gid": gid, "mode": mode, "force": force},
            timeout=timeout,
            token=token,
        )

    def create_webhook(
        self,
        *,
        body: NewWebhook,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> CreatedWebhook:
        """Create a webhook"""
        return self.ask_json(
            "createWebhook",
            "POST",
            "/events/webhooks",
            body=body,
            timeout=timeout,
            token=token,
        )

    def delete_access_token(
        self,
        access_token_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete an access token; it is refused from the next request on"""
        return self.ask_nothing(
            "deleteAccessToken",
            "DELETE",
            "/access-tokens/{accessTokenID}",
            path_values={"accessTokenID": access_token_id},
            timeout=timeout,
            token=token,
        )

    def delete_api_key(
        self,
        api_key_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete an API key; it is refused from the next request on"""
        return self.ask_nothing(
            "deleteApiKey",
            "DELETE",
            "/api-keys/{apiKeyID}",
            path_values={"apiKeyID": api_key_id},
            timeout=timeout,
            token=token,
        )

    def delete_invitation(
        self,
        invitation_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Take an invitation back"""
        return self.ask_nothing(
            "deleteInvitation",
            "DELETE",
            "/invitations/{invitationID}",
            path_values={"invitationID": invitation_id},
            timeout=timeout,
            token=token,
        )

    def delete_member(
        self,
        user_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Remove a member from the team, from the next request on"""
        return self.ask_nothing(
            "deleteMember",
            "DELETE",
            "/members/{userID}",
            path_values={"userID": user_id},
            timeout=timeout,
            token=token,
        )

    def delete_sandbox(
        self,
        sandbox_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Kill a sandbox, running or paused"""
        return self.ask_nothing(
            "deleteSandbox",
            "DELETE",
            "/sandboxes/{sandboxID}",
            path_values={"sandboxID": sandbox_id},
            timeout=timeout,
            token=token,
        )

    def delete_secret(
        self,
        secret_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete a secret"""
        return self.ask_nothing(
            "deleteSecret",
            "DELETE",
            "/secrets/{secretID}",
            path_values={"secretID": secret_id},
            timeout=timeout,
            token=token,
        )

    def delete_template(
        self,
        template_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete a template with its builds"""
        return self.ask_nothing(
            "deleteTemplate",
            "DELETE",
            "/templates/{templateID}",
            path_values={"templateID": template_id},
            timeout=timeout,
            token=token,
        )

    def delete_template_tags(
        self,
        *,
        body: DeleteTemplateTagsRequest,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete tags of a template"""
        return self.ask_nothing(
            "deleteTemplateTags",
            "DELETE",
            "/templates/tags",
            body=body,
            timeout=timeout,
            token=token,
        )

    def delete_volume(
        self,
        volume_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete a volume that no sandbox has, with its content"""
        return self.ask_nothing(
            "deleteVolume",
            "DELETE",
            "/volumes/{volumeID}",
            path_values={"volumeID": volume_id},
            timeout=timeout,
            token=token,
        )

    def delete_volume_path(
        self,
        volume_id: str,
        *,
        path: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete a path with everything below it"""
        return self.ask_nothing(
            "deleteVolumePath",
            "DELETE",
            "/volumecontent/{volumeID}/path",
            path_values={"volumeID": volume_id},
            query={"path": path},
            timeout=timeout,
            token=token,
        )

    def delete_webhook(
        self,
        webhook_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Delete a webhook and its pending deliveries"""
        return self.ask_nothing(
            "deleteWebhook",
            "DELETE",
            "/events/webhooks/{webhookID}",
            path_values={"webhookID": webhook_id},
            timeout=timeout,
            token=token,
        )

    def fork_sandbox(
        self,
        sandbox_id: str,
        *,
        body: Optional[SandboxFork] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[SandboxForkResult]:
        """Fork a running sandbox"""
        return self.ask_json(
            "forkSandbox",
            "POST",
            "/sandboxes/{sandboxID}/fork",
            path_values={"sandboxID": sandbox_id},
            headers={"idempotency-key": idempotency_key},
            body=body,
            timeout=timeout,
            token=token,
        )

    def get_audit(
        self,
        *,
        operation: Optional[str] = None,
        target: Optional[str] = None,
        actor: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[AuditEntry]:
        """List who changed what of the team, newest first, page by page"""
        return self.ask_json(
            "getAudit",
            "GET",
            "/audit",
            query={"operation": operation, "target": target, "actor": actor, "limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def get_health(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> GetHealthAnswer:
        """Check whether the platform takes requests; if not, the message names the part that does not answer"""
        return self.ask_json(
            "getHealth",
            "GET",
            "/health",
            timeout=timeout,
            token=token,
        )

    def get_identity_configuration(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Get what verifiers of identity tokens need to know (OpenID Connect Discovery 1.0)"""
        return self.ask_json(
            "getIdentityConfiguration",
            "GET",
            "/.well-known/openid-configuration",
            timeout=timeout,
            token=token,
        )

    def get_identity_keys(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Get the public keys that verify identity tokens (RFC 7517): of last month, this one and the next"""
        return self.ask_json(
            "getIdentityKeys",
            "GET",
            "/.well-known/jwks.json",
            timeout=timeout,
            token=token,
        )

    def get_limits(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TeamUse:
        """Get the limits of the team and how much of them is taken now"""
        return self.ask_json(
            "getLimits",
            "GET",
            "/limits",
            timeout=timeout,
            token=token,
        )

    def get_metrics(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> str:
        """Get the metrics of the platform, for Prometheus"""
        return self.ask_text(
            "getMetrics",
            "GET",
            "/metrics",
            timeout=timeout,
            token=token,
        )

    def get_network_verdict(
        self,
        *,
        body: NetworkQuestion,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> NetworkVerdict:
        """Say whether a destination would pass a network policy, and by which rule; nothing is changed"""
        return self.ask_json(
            "getNetworkVerdict",
            "POST",
            "/network/verdict",
            body=body,
            timeout=timeout,
            token=token,
        )

    def get_node(
        self,
        node_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> NodeDetail:
        """Get a node"""
        return self.ask_json(
            "getNode",
            "GET",
            "/nodes/{nodeID}",
            path_values={"nodeID": node_id},
            timeout=timeout,
            token=token,
        )

    def get_node_metrics(
        self,
        node_id: str,
        *,
        start: Optional[int] = None,
        end: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[NodeMetric]:
        """Get what a node used in the last day, a sample a minute, as the process that answers has seen it"""
        return self.ask_json(
            "getNodeMetrics",
            "GET",
            "/nodes/{nodeID}/metrics",
            path_values={"nodeID": node_id},
            query={"start": start, "end": end},
            timeout=timeout,
            token=token,
        )

    def get_open_api(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Get this document"""
        return self.ask_json(
            "getOpenApi",
            "GET",
            "/openapi.json",
            timeout=timeout,
            token=token,
        )

    def get_sandbox(
        self,
        sandbox_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SandboxDetail:
        """Get a sandbox, running or paused"""
        return self.ask_json(
            "getSandbox",
            "GET",
            "/sandboxes/{sandboxID}",
            path_values={"sandboxID": sandbox_id},
            timeout=timeout,
            token=token,
        )

    def get_sandbox_logs(
        self,
        sandbox_id: str,
        *,
        start: Optional[int] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SandboxLogs:
        """Get the logs of a sandbox, oldest first (deprecated)"""
        return self.ask_json(
            "getSandboxLogs",
            "GET",
            "/sandboxes/{sandboxID}/logs",
            path_values={"sandboxID": sandbox_id},
            query={"start": start, "limit": limit},
            timeout=timeout,
            token=token,
        )

    def get_sandbox_logs_v2(
        self,
        sandbox_id: str,
        *,
        cursor: Optional[int] = None,
        limit: Optional[int] = None,
        direction: Optional[Literal["forward", "backward"]] = None,
        level: Optional[Literal["debug", "info", "warn", "error"]] = None,
        logger: Optional[Literal["sandbox", "process", "filesystem", "network", "agent"]] = None,
        search: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SandboxLogsV2Response:
        """Get a page of the logs of a sandbox, newest first by default"""
        return self.ask_json(
            "getSandboxLogsV2",
            "GET",
            "/v2/sandboxes/{sandboxID}/logs",
            path_values={"sandboxID": sandbox_id},
            query={"cursor": cursor, "limit": limit, "direction": direction, "level": level, "logger": logger, "search": search},
            timeout=timeout,
            token=token,
        )

    def get_sandbox_metrics(
        self,
        sandbox_id: str,
        *,
        start: Optional[int] = None,
        end: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[SandboxMetric]:
        """Get the metrics of a sandbox, oldest first; empty for an unknown one"""
        return self.ask_json(
            "getSandboxMetrics",
            "GET",
            "/sandboxes/{sandboxID}/metrics",
            path_values={"sandboxID": sandbox_id},
            query={"start": start, "end": end},
            timeout=timeout,
            token=token,
        )

    def get_sandbox_traffic(
        self,
        sandbox_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SandboxTraffic:
        """Get the network traffic of a running sandbox since it was created or resumed"""
        return self.ask_json(
            "getSandboxTraffic",
            "GET",
            "/sandboxes/{sandboxID}/traffic",
            path_values={"sandboxID": sandbox_id},
            timeout=timeout,
            token=token,
        )

    def get_sandboxes_metrics(
        self,
        *,
        sandbox_ids: List[str],
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SandboxesWithMetrics:
        """Get the latest metrics of several sandboxes"""
        return self.ask_json(
            "getSandboxesMetrics",
            "GET",
            "/sandboxes/metrics",
            query={"sandbox_ids": sandbox_ids},
            timeout=timeout,
            token=token,
        )

    def get_secret(
        self,
        secret_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Secret:
        """Get a secret without its value"""
        return self.ask_json(
            "getSecret",
            "GET",
            "/secrets/{secretID}",
            path_values={"secretID": secret_id},
            timeout=timeout,
            token=token,
        )

    def get_session(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Get the session: who is signed in"""
        return self.ask_json(
            "getSession",
            "GET",
            "/session",
            timeout=timeout,
            token=token,
        )

    def get_sign_in_provider(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> SignInProvider:
        """Get the identity provider at which people can sign in"""
        return self.ask_json(
            "getSignInProvider",
            "GET",
            "/session/provider",
            timeout=timeout,
            token=token,
        )

    def get_team_metrics(
        self,
        team_id: str,
        *,
        start: Optional[int] = None,
        end: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[TeamMetric]:
        """Get the metrics of a team, of the last 7 days by default"""
        return self.ask_json(
            "getTeamMetrics",
            "GET",
            "/teams/{teamID}/metrics",
            path_values={"teamID": team_id},
            query={"start": start, "end": end},
            timeout=timeout,
            token=token,
        )

    def get_team_metrics_max(
        self,
        team_id: str,
        *,
        metric: Literal["concurrent_sandboxes", "sandbox_start_rate"],
        start: Optional[int] = None,
        end: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> MaxTeamMetric:
        """Get the maximum of a metric of a team"""
        return self.ask_json(
            "getTeamMetricsMax",
            "GET",
            "/teams/{teamID}/metrics/max",
            path_values={"teamID": team_id},
            query={"metric": metric, "start": start, "end": end},
            timeout=timeout,
            token=token,
        )

    def get_team_template_use(
        self,
        team_id: str,
        *,
        start: Optional[int] = None,
        end: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[TemplateUse]:
        """Get for how long sandboxes of each template ran, in the last 7 days by default"""
        return self.ask_json(
            "getTeamTemplateUse",
            "GET",
            "/teams/{teamID}/metrics/templates",
            path_values={"teamID": team_id},
            query={"start": start, "end": end},
            timeout=timeout,
            token=token,
        )

    def get_template(
        self,
        template_id: str,
        *,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateWithBuilds:
        """Get a template of the team with a page of its builds, newest first"""
        return self.ask_json(
            "getTemplate",
            "GET",
            "/templates/{templateID}",
            path_values={"templateID": template_id},
            query={"limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def get_template_alias(
        self,
        alias: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateAlias:
        """Check whether a template name is taken: 200 by this team, 403 by another, 404 not at all"""
        return self.ask_json(
            "getTemplateAlias",
            "GET",
            "/templates/aliases/{alias}",
            path_values={"alias": alias},
            timeout=timeout,
            token=token,
        )

    def get_template_build_logs(
        self,
        template_id: str,
        build_id: str,
        *,
        cursor: Optional[int] = None,
        limit: Optional[int] = None,
        direction: Optional[Literal["forward", "backward"]] = None,
        level: Optional[Literal["debug", "info", "warn", "error"]] = None,
        source: Optional[Literal["temporary", "persistent"]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateBuildLogsResponse:
        """Get a page of the log of a build"""
        return self.ask_json(
            "getTemplateBuildLogs",
            "GET",
            "/templates/{templateID}/builds/{buildID}/logs",
            path_values={"templateID": template_id, "buildID": build_id},
            query={"cursor": cursor, "limit": limit, "direction": direction, "level": level, "source": source},
            timeout=timeout,
            token=token,
        )

    def get_template_build_status(
        self,
        template_id: str,
        build_id: str,
        *,
        logs_offset: Optional[int] = None,
        limit: Optional[int] = None,
        level: Optional[Literal["debug", "info", "warn", "error"]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateBuildInfo:
        """Get the status of a build and the next lines of its log"""
        return self.ask_json(
            "getTemplateBuildStatus",
            "GET",
            "/templates/{templateID}/builds/{buildID}/status",
            path_values={"templateID": template_id, "buildID": build_id},
            query={"logsOffset": logs_offset, "limit": limit, "level": level},
            timeout=timeout,
            token=token,
        )

    def get_template_content(
        self,
        template_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateContent:
        """Get how sandboxes of a template of the team begin, and its layers with who shares them"""
        return self.ask_json(
            "getTemplateContent",
            "GET",
            "/templates/{templateID}/content",
            path_values={"templateID": template_id},
            timeout=timeout,
            token=token,
        )

    def get_template_file_upload(
        self,
        template_id: str,
        hash: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateBuildFileUpload:
        """Get the upload URL for the files of a COPY, and whether they are there already"""
        return self.ask_json(
            "getTemplateFileUpload",
            "GET",
            "/templates/{templateID}/files/{hash}",
            path_values={"templateID": template_id, "hash": hash},
            timeout=timeout,
            token=token,
        )

    def get_volume(
        self,
        volume_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeAndToken:
        """Get a volume, with a new token for its content"""
        return self.ask_json(
            "getVolume",
            "GET",
            "/volumes/{volumeID}",
            path_values={"volumeID": volume_id},
            timeout=timeout,
            token=token,
        )

    def get_volume_file(
        self,
        volume_id: str,
        *,
        path: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> bytes:
        """Read a file"""
        return self.ask_bytes(
            "getVolumeFile",
            "GET",
            "/volumecontent/{volumeID}/file",
            path_values={"volumeID": volume_id},
            query={"path": path},
            timeout=timeout,
            token=token,
        )

    def get_volume_path(
        self,
        volume_id: str,
        *,
        path: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeEntryStat:
        """Get the metadata of a path in a volume; a symlink is not followed"""
        return self.ask_json(
            "getVolumePath",
            "GET",
            "/volumecontent/{volumeID}/path",
            path_values={"volumeID": volume_id},
            query={"path": path},
            timeout=timeout,
            token=token,
        )

    def get_volumes_use(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumesUse:
        """Get how much room each volume of the team takes"""
        return self.ask_json(
            "getVolumesUse",
            "GET",
            "/volumes/use",
            timeout=timeout,
            token=token,
        )

    def get_webhook(
        self,
        webhook_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Webhook:
        """Get a webhook"""
        return self.ask_json(
            "getWebhook",
            "GET",
            "/events/webhooks/{webhookID}",
            path_values={"webhookID": webhook_id},
            timeout=timeout,
            token=token,
        )

    def join_cluster(
        self,
        *,
        body: ClusterJoin,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> ClusterJoined:
        """Join the cluster as a machine, by an invitation"""
        return self.ask_json(
            "joinCluster",
            "POST",
            "/cluster/join",
            body=body,
            timeout=timeout,
            token=token,
        )

    def join_cluster_as_pod(
        self,
        *,
        body: ClusterJoinPod,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> ClusterPodJoined:
        """Join the cluster as the machine of a pod, by the service account of that pod"""
        return self.ask_json(
            "joinClusterAsPod",
            "POST",
            "/cluster/join-pod",
            body=body,
            timeout=timeout,
            token=token,
        )

    def join_team(
        self,
        *,
        body: JoinTeam,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Join a team by an invitation, as whoever is signed in"""
        return self.ask_json(
            "joinTeam",
            "POST",
            "/session/teams",
            body=body,
            timeout=timeout,
            token=token,
        )

    def list_api_keys(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[TeamAPIKey]:
        """List the API keys of the team, masked"""
        return self.ask_json(
            "listApiKeys",
            "GET",
            "/api-keys",
            timeout=timeout,
            token=token,
        )

    def list_default_templates(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Template]:
        """List the installation's own templates, which every team may use"""
        return self.ask_json(
            "listDefaultTemplates",
            "GET",
            "/default-templates",
            timeout=timeout,
            token=token,
        )

    def list_events(
        self,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        order_asc: Optional[bool] = None,
        types: Optional[List[Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]]] = None,
        kind: Optional[Literal["sandbox", "build", "volume"]] = None,
        subject_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[LifecycleEvent]:
        """List lifecycle events of the team, newest first"""
        return self.ask_json(
            "listEvents",
            "GET",
            "/events",
            query={"offset": offset, "limit": limit, "orderAsc": order_asc, "types": types, "kind": kind, "subjectID": subject_id},
            timeout=timeout,
            token=token,
        )

    def list_invitations(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Invitation]:
        """List the invitations into the team that nobody has taken, newest first"""
        return self.ask_json(
            "listInvitations",
            "GET",
            "/invitations",
            timeout=timeout,
            token=token,
        )

    def list_members(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Member]:
        """List the members of the team, the oldest first"""
        return self.ask_json(
            "listMembers",
            "GET",
            "/members",
            timeout=timeout,
            token=token,
        )

    def list_nodes(
        self,
        *,
        cluster_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Node]:
        """List nodes"""
        return self.ask_json(
            "listNodes",
            "GET",
            "/nodes",
            query={"clusterID": cluster_id},
            timeout=timeout,
            token=token,
        )

    def list_sandbox_events(
        self,
        sandbox_id: str,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        order_asc: Optional[bool] = None,
        types: Optional[List[Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[LifecycleEvent]:
        """List events of a sandbox, newest first; empty where the team has none with this ID"""
        return self.ask_json(
            "listSandboxEvents",
            "GET",
            "/events/sandboxes/{sandboxID}",
            path_values={"sandboxID": sandbox_id},
            query={"offset": offset, "limit": limit, "orderAsc": order_asc, "types": types},
            timeout=timeout,
            token=token,
        )

    def list_sandboxes(
        self,
        *,
        metadata: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[ListedSandbox]:
        """List running sandboxes, newest first (deprecated)"""
        return self.ask_json(
            "listSandboxes",
            "GET",
            "/sandboxes",
            query={"metadata": metadata},
            timeout=timeout,
            token=token,
        )

    def list_sandboxes_v2(
        self,
        *,
        metadata: Optional[str] = None,
        state: Optional[List[Literal["running", "paused"]]] = None,
        order: Optional[Literal["asc", "desc"]] = None,
        started_after: Optional[str] = None,
        template: Optional[str] = None,
        node_id: Optional[str] = None,
        text: Optional[str] = None,
        next_token: Optional[str] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[ListedSandbox]:
        """List sandboxes, page by page"""
        return self.ask_json(
            "listSandboxesV2",
            "GET",
            "/v2/sandboxes",
            query={"metadata": metadata, "state": state, "order": order, "startedAfter": started_after, "template": template, "nodeID": node_id, "text": text, "nextToken": next_token, "limit": limit},
            timeout=timeout,
            token=token,
        )

    def list_secrets(
        self,
        *,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Secret]:
        """List secrets of the team without their values, newest first, page by page"""
        return self.ask_json(
            "listSecrets",
            "GET",
            "/secrets",
            query={"limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def list_sessions(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[ListedSession]:
        """List own sessions, newest first"""
        return self.ask_json(
            "listSessions",
            "GET",
            "/sessions",
            timeout=timeout,
            token=token,
        )

    def list_snapshots(
        self,
        *,
        sandbox_id: Optional[str] = None,
        name: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[SnapshotInfo]:
        """List snapshots of the team, newest first, page by page"""
        return self.ask_json(
            "listSnapshots",
            "GET",
            "/snapshots",
            query={"sandboxID": sandbox_id, "name": name, "limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def list_team_sandbox_events(
        self,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        order_asc: Optional[bool] = None,
        types: Optional[List[Literal["sandbox.lifecycle.created", "sandbox.lifecycle.updated", "sandbox.lifecycle.paused", "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed", "sandbox.lifecycle.forked", "sandbox.lifecycle.disk_failed", "sandbox.lifecycle.killed", "build.lifecycle.created", "build.lifecycle.started", "build.lifecycle.ready", "build.lifecycle.failed", "volume.lifecycle.created", "volume.lifecycle.deleted"]]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[LifecycleEvent]:
        """List sandbox events of the team, newest first"""
        return self.ask_json(
            "listTeamSandboxEvents",
            "GET",
            "/events/sandboxes",
            query={"offset": offset, "limit": limit, "orderAsc": order_asc, "types": types},
            timeout=timeout,
            token=token,
        )

    def list_teams(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Team]:
        """List the teams of a user, each with a new API key"""
        return self.ask_json(
            "listTeams",
            "GET",
            "/teams",
            timeout=timeout,
            token=token,
        )

    def list_template_tag_assignments(
        self,
        template_id: str,
        tag: str,
        *,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateTagAssignmentsResponse:
        """List the ready builds that a tag was given to, newest first, page by page"""
        return self.ask_json(
            "listTemplateTagAssignments",
            "GET",
            "/templates/{templateID}/tags/{tag}/assignments",
            path_values={"templateID": template_id, "tag": tag},
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            token=token,
        )

    def list_template_tag_groups(
        self,
        template_id: str,
        *,
        assignment_limit: Optional[int] = None,
        tags_limit: Optional[int] = None,
        tags_cursor: Optional[str] = None,
        search: Optional[str] = None,
        sort: Optional[Literal["latest_asc", "latest_desc", "name_asc", "name_desc"]] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateTagGroupsResponse:
        """List the tags of a template with the builds that they were given to, page by page"""
        return self.ask_json(
            "listTemplateTagGroups",
            "GET",
            "/templates/{templateID}/tags/groups",
            path_values={"templateID": template_id},
            query={"assignmentLimit": assignment_limit, "tagsLimit": tags_limit, "tagsCursor": tags_cursor, "search": search, "sort": sort},
            timeout=timeout,
            token=token,
        )

    def list_template_tags(
        self,
        template_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[TemplateTag]:
        """List the tags of a template and their builds"""
        return self.ask_json(
            "listTemplateTags",
            "GET",
            "/templates/{templateID}/tags",
            path_values={"templateID": template_id},
            timeout=timeout,
            token=token,
        )

    def list_templates(
        self,
        *,
        team_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Template]:
        """List all templates of the team, newest first (deprecated)"""
        return self.ask_json(
            "listTemplates",
            "GET",
            "/templates",
            query={"teamID": team_id},
            timeout=timeout,
            token=token,
        )

    def list_templates_v2(
        self,
        *,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        next_token: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Template]:
        """List templates of the team, newest first, page by page"""
        return self.ask_json(
            "listTemplatesV2",
            "GET",
            "/v2/templates",
            query={"teamID": team_id, "limit": limit, "nextToken": next_token},
            timeout=timeout,
            token=token,
        )

    def list_volume_directory(
        self,
        volume_id: str,
        *,
        path: str,
        depth: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[VolumeEntryStat]:
        """List a directory, each directory followed by its children, by name"""
        return self.ask_json(
            "listVolumeDirectory",
            "GET",
            "/volumecontent/{volumeID}/dir",
            path_values={"volumeID": volume_id},
            query={"path": path, "depth": depth},
            timeout=timeout,
            token=token,
        )

    def list_volumes(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Volume]:
        """List volumes of the team, oldest first"""
        return self.ask_json(
            "listVolumes",
            "GET",
            "/volumes",
            timeout=timeout,
            token=token,
        )

    def list_webhook_deliveries(
        self,
        webhook_id: str,
        *,
        state: Optional[Literal["pending", "delivered", "dead"]] = None,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[WebhookDelivery]:
        """List the deliveries of a webhook, newest first"""
        return self.ask_json(
            "listWebhookDeliveries",
            "GET",
            "/events/webhooks/{webhookID}/deliveries",
            path_values={"webhookID": webhook_id},
            query={"state": state, "offset": offset, "limit": limit},
            timeout=timeout,
            token=token,
        )

    def list_webhooks(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> List[Webhook]:
        """List the webhooks of the team"""
        return self.ask_json(
            "listWebhooks",
            "GET",
            "/events/webhooks",
            timeout=timeout,
            token=token,
        )

    def pause_sandbox(
        self,
        sandbox_id: str,
        *,
        body: Optional[SandboxPause] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Pause a sandbox"""
        return self.ask_nothing(
            "pauseSandbox",
            "POST",
            "/sandboxes/{sandboxID}/pause",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def prove_session(
        self,
        *,
        body: SessionProof,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Prove again whose the session is, by password, access token or a new link: for ten minutes it may do everything"""
        return self.ask_nothing(
            "proveSession",
            "PUT",
            "/session/proof",
            body=body,
            timeout=timeout,
            token=token,
        )

    def put_template_files(
        self,
        team_id: str,
        hash: str,
        *,
        body: Bytes,
        expires: int,
        signature: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Upload an archive (tar, plain or gzip) to a URL that the platform gave"""
        return self.ask_nothing(
            "putTemplateFiles",
            "PUT",
            "/template-files/{teamID}/{hash}",
            path_values={"teamID": team_id, "hash": hash},
            query={"expires": expires, "signature": signature},
            body=body,
            timeout=timeout,
            token=token,
        )

    def put_volume_file(
        self,
        volume_id: str,
        *,
        body: Bytes,
        path: str,
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        mode: Optional[int] = None,
        force: Optional[bool] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeEntryStat:
        """Write a file from the body; it appears whole or not at all"""
        return self.ask_json(
            "putVolumeFile",
            "PUT",
            "/volumecontent/{volumeID}/file",
            path_values={"volumeID": volume_id},
            query={"path": path, "uid": uid, "gid": gid, "mode": mode, "force": force},
            body=body,
            timeout=timeout,
            token=token,
        )

    def rebuild_template(
        self,
        template_id: str,
        *,
        body: TemplateBuildRequest,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Template:
        """Rebuild a template from a Dockerfile"""
        return self.ask_json(
            "rebuildTemplate",
            "POST",
            "/templates/{templateID}",
            path_values={"templateID": template_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def redeliver_webhook_event(
        self,
        webhook_id: str,
        event_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Redeliver an event"""
        return self.ask_nothing(
            "redeliverWebhookEvent",
            "POST",
            "/events/webhooks/{webhookID}/deliveries/{eventID}/redeliver",
            path_values={"webhookID": webhook_id, "eventID": event_id},
            timeout=timeout,
            token=token,
        )

    def refresh_sandbox(
        self,
        sandbox_id: str,
        *,
        body: Optional[SandboxRefresh] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Extend the timeout of a sandbox"""
        return self.ask_nothing(
            "refreshSandbox",
            "POST",
            "/sandboxes/{sandboxID}/refreshes",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def rename_api_key(
        self,
        api_key_id: str,
        *,
        body: UpdateTeamAPIKey,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Rename an API key"""
        return self.ask_nothing(
            "renameApiKey",
            "PATCH",
            "/api-keys/{apiKeyID}",
            path_values={"apiKeyID": api_key_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def restore_volume(
        self,
        volume_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> RestoredVolume:
        """Make a volume whose machine is lost of its newest copy again, on another machine"""
        return self.ask_json(
            "restoreVolume",
            "POST",
            "/volumes/{volumeID}/restore",
            path_values={"volumeID": volume_id},
            timeout=timeout,
            token=token,
        )

    def resume_sandbox(
        self,
        sandbox_id: str,
        *,
        body: Optional[SandboxResume] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Sandbox:
        """Resume a paused sandbox; connect does this too (deprecated)"""
        return self.ask_json(
            "resumeSandbox",
            "POST",
            "/sandboxes/{sandboxID}/resume",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def revoke_session(
        self,
        session_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """End an own session, or any as the operator; it is refused from the next request on"""
        return self.ask_nothing(
            "revokeSession",
            "DELETE",
            "/sessions/{sessionID}",
            path_values={"sessionID": session_id},
            timeout=timeout,
            token=token,
        )

    def set_sandbox_timeout(
        self,
        sandbox_id: str,
        *,
        body: SandboxTimeout,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Set the timeout of a sandbox"""
        return self.ask_nothing(
            "setSandboxTimeout",
            "POST",
            "/sandboxes/{sandboxID}/timeout",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def sign_in(
        self,
        *,
        body: SignIn,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Session:
        """Sign in: begin a session of a browser at the dashboard"""
        return self.ask_json(
            "signIn",
            "POST",
            "/session",
            body=body,
            timeout=timeout,
            token=token,
        )

    def sign_out(
        self,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Sign out: end the session"""
        return self.ask_nothing(
            "signOut",
            "DELETE",
            "/session",
            timeout=timeout,
            token=token,
        )

    def start_template_build(
        self,
        template_id: str,
        build_id: str,
        *,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Start a build that was registered with a Dockerfile (deprecated)"""
        return self.ask_nothing(
            "startTemplateBuild",
            "POST",
            "/templates/{templateID}/builds/{buildID}",
            path_values={"templateID": template_id, "buildID": build_id},
            timeout=timeout,
            token=token,
        )

    def start_template_build_v2(
        self,
        template_id: str,
        build_id: str,
        *,
        body: TemplateBuildStartV2,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Start a registered build with its steps"""
        return self.ask_nothing(
            "startTemplateBuildV2",
            "POST",
            "/v2/templates/{templateID}/builds/{buildID}",
            path_values={"templateID": template_id, "buildID": build_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def stream_events(
        self,
        *,
        after: Optional[int] = None,
        seconds: Optional[int] = None,
        transitions: Optional[bool] = None,
        last_event_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Iterator[LifecycleEvent]:
        """Stream lifecycle events of the team as they happen"""
        return self.follow(
            "streamEvents",
            "GET",
            "/events/stream",
            query={"after": after, "seconds": seconds, "transitions": transitions},
            headers={"last-event-id": last_event_id},
            timeout=timeout,
            token=token,
        )

    def stream_sandbox_logs(
        self,
        sandbox_id: str,
        *,
        after: Optional[int] = None,
        seconds: Optional[int] = None,
        tail: Optional[int] = None,
        level: Optional[Literal["debug", "info", "warn", "error"]] = None,
        logger: Optional[Literal["sandbox", "process", "filesystem", "network", "agent"]] = None,
        search: Optional[str] = None,
        last_event_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Iterator[SandboxLogEntry]:
        """Stream the log of a sandbox as it grows"""
        return self.follow(
            "streamSandboxLogs",
            "GET",
            "/sandboxes/{sandboxID}/logs/stream",
            path_values={"sandboxID": sandbox_id},
            query={"after": after, "seconds": seconds, "tail": tail, "level": level, "logger": logger, "search": search},
            headers={"last-event-id": last_event_id},
            timeout=timeout,
            token=token,
        )

    def stream_template_build_logs(
        self,
        template_id: str,
        build_id: str,
        *,
        after: Optional[int] = None,
        seconds: Optional[int] = None,
        level: Optional[Literal["debug", "info", "warn", "error"]] = None,
        last_event_id: Optional[str] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Iterator[BuildLogEntry]:
        """Stream the log of a build as it grows"""
        return self.follow(
            "streamTemplateBuildLogs",
            "GET",
            "/templates/{templateID}/builds/{buildID}/logs/stream",
            path_values={"templateID": template_id, "buildID": build_id},
            query={"after": after, "seconds": seconds, "level": level},
            headers={"last-event-id": last_event_id},
            timeout=timeout,
            token=token,
        )

    def template_tag_exists(
        self,
        template_id: str,
        *,
        tag: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateTagExistsResponse:
        """Say whether a tag of a template selects a ready build"""
        return self.ask_json(
            "templateTagExists",
            "GET",
            "/templates/{templateID}/tags/exists",
            path_values={"templateID": template_id},
            query={"tag": tag},
            timeout=timeout,
            token=token,
        )

    def update_member(
        self,
        user_id: str,
        *,
        body: MemberChange,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Give a member of the team a role; it counts from the next request on"""
        return self.ask_nothing(
            "updateMember",
            "PATCH",
            "/members/{userID}",
            path_values={"userID": user_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_node(
        self,
        node_id: str,
        *,
        body: NodeStatusChange,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Set the status of a node: take it out of placement, or back in"""
        return self.ask_nothing(
            "updateNode",
            "POST",
            "/nodes/{nodeID}",
            path_values={"nodeID": node_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_sandbox_network(
        self,
        sandbox_id: str,
        *,
        body: SandboxNetworkUpdate,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        """Replace the outgoing network rules of a running sandbox; members that are left out are cleared"""
        return self.ask_nothing(
            "updateSandboxNetwork",
            "PUT",
            "/sandboxes/{sandboxID}/network",
            path_values={"sandboxID": sandbox_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_secret(
        self,
        secret_id: str,
        *,
        body: NewSecretVersion,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Secret:
        """Update a secret with a new version"""
        return self.ask_json(
            "updateSecret",
            "POST",
            "/secrets/{secretID}",
            path_values={"secretID": secret_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_template(
        self,
        template_id: str,
        *,
        body: Optional[TemplateUpdateRequest] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateUpdateResponse:
        """Update a template: publish it with its names without namespace, or make it private (deprecated)"""
        return self.ask_json(
            "updateTemplate",
            "PATCH",
            "/templates/{templateID}",
            path_values={"templateID": template_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_template_v2(
        self,
        template_id: str,
        *,
        body: Optional[TemplateUpdateRequest] = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> TemplateUpdateResponse:
        """Update a template: publish it, or make it private"""
        return self.ask_json(
            "updateTemplateV2",
            "PATCH",
            "/v2/templates/{templateID}",
            path_values={"templateID": template_id},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_volume_path(
        self,
        volume_id: str,
        *,
        body: VolumeEntryChange,
        path: str,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> VolumeEntryStat:
        """Change owner and permissions of a path; a symlink is followed inside the volume"""
        return self.ask_json(
            "updateVolumePath",
            "PATCH",
            "/volumecontent/{volumeID}/path",
            path_values={"volumeID": volume_id},
            query={"path": path},
            body=body,
            timeout=timeout,
            token=token,
        )

    def update_webhook(
        self,
        webhook_id: str,
        *,
        body: WebhookUpdate,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Webhook:
        """Update a webhook"""
        return self.ask_json(
            "updateWebhook",
            "PATCH",
            "/events/webhooks/{webhookID}",
            path_values={"webhookID": webhook_id},
            body=body,
            timeout=timeout,
            token=token,
        )
