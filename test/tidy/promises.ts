/**
 * Which test shows which sentence of the documents (see `promise-sentences.ts`): `[part of the sentence, test file,
 * part of the test's name or text]`, or, for a sentence that promises nothing that a test could show, `[part, null,
 * why]`.
 */
type Proof = readonly [part: string, test: string, name: string] | readonly [part: string, test: null, why: string];

const definition = 'says what a word, a setting or a column stands for';
const advice = 'tells the reader what to do';

export const proofs: Readonly<Record<string, readonly Proof[]>> = {
  'README.md': [
    ['nothing phones home', 'test/parts/rights.test.ts', 'nothing phones home'],
    ['A range of user IDs that nothing else', 'test/e2e/installations.test.ts', 'two installations on one machine'],
    [
      'it never does half of it',
      'test/api/http/bad-input.test.ts',
      'a create that is refused says why and leaves nothing',
    ],
  ],
  'docs/cluster.md': [
    ['Nothing takes the place of a lost volume', 'test/cluster/store.test.ts', 'when its machine is destroyed'],
    ['One machine alone', null, 'tells the reader what the page is for'],
    ['On one machine alone these keys', null, 'says what a setting does not do'],
    ['The token is never sent', 'src/base/crypto/join-proof.test.ts', 'a proof needs the token'],
    ['gets a certificate for a week', 'test/api/cluster/machines.test.ts', 'an invitation lets one machine in'],
    [
      'the edge may connect into sandboxes, and nothing else',
      'test/wire/tls.test.ts',
      'each process of control may call',
    ],
    ['The gate is a process of its own user', null, 'says what the process is'],
    ['A node that was cut off for less', 'test/cluster/machines.test.ts', 'cut off for less than control waits'],
    [
      'is listed with the reason and nothing is changed',
      'src/cli/operator/cluster-upgrade.test.ts',
      'can not be moved',
    ],
    [
      'never one that was left behind',
      'test/cluster-long/database-failover.test.ts',
      'a primary that comes back after another',
    ],
    [
      'nothing is concluded of what the database lacks',
      'test/cluster-long/database-failover.test.ts',
      'an asynchronous standby',
    ],
    [
      'nothing that was answered is missing',
      'test/cluster-long/database-failover.test.ts',
      'with a synchronous standby',
    ],
    [
      'never deleted but by an operator',
      'test/cluster-long/database-failover.test.ts',
      'an asynchronous standby lacks',
    ],
    ['that nothing on it needs leave it', 'test/builds/collect.test.ts', 'of layers that the store has too'],
    ['is for one that never comes back', 'test/api/cluster/machines.test.ts', 'an invitation lets one machine in'],
  ],
  'SECURITY.md': [
    ['Root on the host is trusted', null, 'says what is not protected'],
    [
      "The edge's user owns nothing",
      'test/parts/rights.test.ts',
      'the api and the edge hold no file of the data directory',
    ],
    ['whoever takes over the edge', 'test/parts/rights.test.ts', 'each socket is for the one process that calls it'],
    ['root mounts nothing in a folder of the api', 'src/bin/parts/sockets.test.ts', 'what root gives to the api'],
    [
      'nothing falls back to less',
      'test/api/build/permission.test.ts',
      'no name that a team takes leads out of gVisor',
    ],
    ['lead into gVisor and never out of it', 'src/api/template/rules/driver.test.ts', 'an ID alone out of it'],
    [
      'so a full disk is `ENOSPC` inside',
      'test/conformance/sandbox.test.ts',
      'limits on disk, memory and processors hold',
    ],
    ['works on descriptors, never on paths', 'test/volumes/content.test.ts', 'a link that changes all the time'],
    [
      'Each sandbox has a link to the host and nothing else',
      'test/conformance/isolation.test.ts',
      'private networks and metadata services',
    ],
    [
      'A host that forwarded nothing',
      'test/egress/addresses.test.ts',
      'the host forwards for sandboxes and for nobody else',
    ],
    [
      "They see nothing of the host but their job's files",
      'test/attacks/support/build-rights.ts',
      'a builder that was taken over tries',
    ],
    [
      'it learns nothing of other sandboxes',
      'src/protocol/process-message.test.ts',
      'members of another kind than the protocol has',
    ],
    ['never into the sandbox', 'test/egress/headers.test.ts', 'the values go to the named host alone'],
    [
      'never for addresses of the machine',
      'test/api/event/webhooks.test.ts',
      'no request goes to an address of the machine',
    ],
    ["at most 76 of the host's", 'test/attacks/shares-network.test.ts', 'neighbours: one sandbox adds few'],
    [
      'sandboxes of the other proxies notice nothing',
      'test/attacks/shares-network.test.ts',
      'egress CPU: while one sandbox sends all it can',
    ],
  ],
  'docs/backup.md': [
    ['nothing is stopped or locked', 'test/backup/backup.test.ts', 'a backup of a platform in use'],
    ['never replaces another', 'test/backup/backup.test.ts', 'what is damaged, or in the way, is refused'],
    ['leaves nothing behind', 'test/backup/dump.test.ts', 'nothing stays of them'],
    ['is interrupted (Ctrl-C, SIGTERM) leaves nothing', 'test/backup/places.test.ts', 'that are interrupted say so'],
    ['start it where it can reach nothing', null, advice],
    [
      'which migrations it does not know',
      'test/api/database/upgrade.test.ts',
      'is refused with its name, and left as it is',
    ],
  ],
  'docs/code-interpreter.md': [
    [
      'finds what V8 needs changed',
      'test/code-interpreter/published-package.node.ts',
      'text of JavaScript cells that looks like code stays text',
    ],
  ],
  'docs/configuration.md': [
    ['With `gvisor` nothing starts', 'src/node/drivers/gvisor/find-runsc.test.ts', 'why it has found none'],
    ['each holds about 8 MiB', 'src/bin/settings/settings.test.ts', 'every wrong and every unknown variable is named'],
    ['starts every sandbox from nothing', null, definition],
    [
      'frees the memory at the pause',
      'src/bin/settings/settings.test.ts',
      'every wrong and every unknown variable is named',
    ],
    ['One sandbox has 8 MiB at most', 'src/node/logs/log-store.test.ts', 'one sandbox has so much, all have so much'],
    [
      'who sees these two at another place',
      'test/parts/rights.test.ts',
      'nobody but root reads or writes anything in the data directory',
    ],
    ['Never share it', null, advice],
    ['Reads `/metrics` and nothing else', 'test/api/operator-metrics.test.ts', 'metrics are for the operator alone'],
    // A cell of a table: the last row, for its word is in others too.
    ['nothing', null, definition],
  ],
  'docs/dashboard.md': [
    ['values of secrets go in and never come out', 'test/api/secrets.test.ts', 'its value is never told'],
    [
      'It never gets into a sandbox',
      'test/dashboard/dashboard.node.ts',
      'gets nothing of the session and changes nothing',
    ],
    ['does nothing by itself in a browser', 'test/dashboard/dashboard.node.ts', 'the link of'],
    ['never as a document of this origin', 'test/dashboard/dashboard.node.ts', 'files are uploaded, edited and listed'],
  ],
  'docs/drivers.md': [
    ['nothing is installed', 'src/node/drivers/gvisor/find-runsc.test.ts', 'what set-up has found is found'],
    [
      'gVisor is told to keep nothing back',
      'test/conformance/pause-files.test.ts',
      'a sandbox paused with its files alone has them',
    ],
    ['and never who it is', 'test/tidy/banned.test.ts', 'driver names'],
  ],
  'docs/edge.md': [
    ['nothing listens on the port', 'test/edge/routing.test.ts', 'answers about sandboxes and ports are the contract'],
    ['so the edge', 'test/edge/routing.test.ts', 'the platform’s own trouble is never 502'],
    ['never for the agent', 'test/edge/forwarding.test.ts', 'the Host is masked, but never for the agent'],
    ['its bytes must never pass for the answer', 'test/edge/smuggling.test.ts', 'bytes after a response reach nobody'],
    ['Cleartext HTTP/2', 'test/edge/smuggling.test.ts', 'cleartext HTTP/2 is not offered'],
    ['nothing else', 'test/edge/http2-services.test.ts', 'another service on the port is asked in what it speaks'],
    [
      'never after a request or response with trailers',
      'test/edge/forwarding.test.ts',
      'a connection serves no other request after a response with trailers',
    ],
    [
      'A stream that was cut never looks complete',
      'test/edge/aborts.test.ts',
      'a stream whose upstream goes away is reset, not ended',
    ],
    ['nothing in front of the same nginx', null, definition],
  ],
  'docs/events.md': [
    ['at most 100', 'test/api/event/events.test.ts', 'the whole life of a sandbox is told'],
    ['A sandbox that never started has none', 'test/api/event/events.test.ts', 'a start that failed says nothing'],
    ['at most 20 webhooks', 'test/api/event/webhooks.test.ts', 'a team has a number of them'],
  ],
  'docs/inside.md': [
    ['at most a second old', 'test/lifecycle/node-memory.test.ts', 'its own numbers are right after a pause too'],
  ],
  'docs/logs.md': [
    [
      'paging loses and repeats nothing',
      'src/node/logs/log-store.test.ts',
      'entries come in order, each with a time of its own',
    ],
    ['A log never holds', 'test/cli/logs.node.ts', 'its secrets are not'],
  ],
  'docs/metrics.md': [
    [
      'at most twice as many',
      'src/node/metrics/sample-file.test.ts',
      'at least so many are kept, and at most twice as many',
    ],
    ['which is good for nothing else', 'test/api/operator-metrics.test.ts', 'metrics are for the operator alone'],
    ['Always 1', null, definition],
    ['was started from nothing', null, definition],
    [
      'at most 1,000 series',
      'src/base/telemetry/meter.test.ts',
      'a label that takes any value does not fill the memory',
    ],
  ],
  'docs/network.md': [
    [
      'can prove to others that it is a sandbox',
      'test/api/account/identity-tokens.test.ts',
      'a standard library verifies',
    ],
    [
      'The token never enters the sandbox',
      'test/api/account/identity-tokens.test.ts',
      'requests leave with a token of the sandbox',
    ],
    ['nothing goes past it', 'test/egress/socks.test.ts', 'no other traffic goes past it'],
    ['nothing inside can change them', 'test/conformance/isolation.test.ts', 'do more with sudo than root can'],
    [
      'IPv6 where the host has it, and nothing else',
      'test/attacks/network-v6.test.ts',
      'the host has no neighbour on a link but those that it put there',
    ],
    ['nothing is changed', 'src/node/network/forwarding.test.ts', 'links of sandboxes are none'],
    [
      "never a secret's value",
      'test/api/sandbox/egress-secrets.test.ts',
      'a secret in a header rule gets to the node alone',
    ],
  ],
  'docs/operating.md': [
    [
      'enough except for four things',
      'test/code-interpreter/published-package.node.ts',
      'every method that makes a URL works in the environment that a start prints',
    ],
    ['the capabilities that nothing needs', 'test/setup/unit-file.test.ts', 'systemd'],
    [
      'changes nothing, and ends with exit code 1',
      'test/setup/bad-input.test.ts',
      'refused in one sentence, and nothing is changed',
    ],
  ],
  'docs/pause.md': [
    ['a restart takes nothing from it', 'test/lifecycle/node-memory.test.ts', 'memory that is still to come outlives'],
    ['the kernel never tells it of', 'test/snapshot/guard-criu.test.ts', 'a CRIU that waits for a process'],
    ['Nothing is installed', null, definition],
    ['Nothing of it is in the images', 'src/node/snapshot/mounts.test.ts', 'masked files, masked directories'],
    ['that was stopped by a signal never ends', null, 'is about the kernel'],
    ['as if nothing had been', 'test/snapshot/crash.test.ts', 'a platform that is killed in the middle of a pause'],
  ],
  'docs/platform-api.md': [
    ['nothing is cached', 'test/api/account/authentication.test.ts', 'a key that was deleted by another process'],
    [
      'A refused request (4xx) changed nothing',
      'test/api/http/bad-input.test.ts',
      'bad timeouts are 400 and change nothing',
    ],
    ['is refused, never ignored', 'test/api/http/client-fields.test.ts', 'what has no effect is refused by name'],
    [
      'right ones are never held up',
      'test/api/account/authentication.test.ts',
      'right ones are let in, also from its address',
    ],
    ['then 504 and nothing is left', 'test/api/sandbox/workflows.test.ts', 'a create that fails at any step'],
    ['and nothing was changed', 'test/api/sandbox/reconcilers.test.ts', 'every request is refused and changes nothing'],
    [
      'When the database never answers',
      'test/cluster-long/database-away.test.ts',
      'a commit whose answer was lost is asked about',
    ],
    [
      'nothing of it happens later by itself',
      'test/cluster-long/database-away.test.ts',
      'nothing that was refused happens when it is back',
    ],
    [
      'A kill is never left in doubt',
      'test/cluster-long/database-away.test.ts',
      'It is true when it is said, whatever the database has written down',
    ],
    ['1,000 at most; then the log', 'test/api/event/audit.test.ts', 'every change is told with who'],
    ['secrets are never in it', 'test/api/event/audit.test.ts', 'every change is told with who'],
    ['reveals nothing of them', 'src/base/crypto/encryption.test.ts', 'it opens nowhere else, with no other key'],
  ],
  'docs/safety.md': [
    [
      'Nothing that it does not know is deleted',
      'test/safety/orphans.test.ts',
      'sandboxes that the store does not know are stopped, kept',
    ],
    [
      "If a node can't read something",
      'test/safety/orphans.test.ts',
      'a start that runs out of descriptors ends no sandbox',
    ],
    ['nothing is frozen, nothing is lost', 'test/safety/full-disk.test.ts', 'tenants can’t fill the disk'],
  ],
  'docs/seccomp.md': [
    [
      'that sandboxes otherwise never reach',
      'src/node/seccomp/filter.test.ts',
      'clone passes without namespace flags only',
    ],
  ],
  'docs/templates.md': [
    ['are replaced, nothing else', 'src/node/builds/steps/env.test.ts', 'all else is taken as it is'],
    ['for at most ten minutes', 'test/builds/steps.test.ts', 'the start command must come up'],
    ['never half known', 'src/node/builds/cache/step-cache.test.ts', 'an entry that a crash left half written'],
    ['take at most `ATOLL_BUILD_CACHE_GIB`', 'test/builds/collect.test.ts', 'over its bound, the cache forgets'],
    [
      'the internet, nothing, or the domains',
      'test/egress/addresses.test.ts',
      'steps of builds reach what the operator lets',
    ],
    ['what is cached counts nothing', 'test/builds/bounds.test.ts', 'what is cached costs nothing'],
    ['Layers are never unpacked on the node', 'test/attacks/support/build-archives.ts', 'a layer of an image'],
  ],
  'docs/volumes.md': [
    ['its tokens open nothing any more', 'test/api/volumes.test.ts', 'a token says what it is for'],
    ["A banned team's tokens", 'test/api/volumes.test.ts', 'a token says what it is for'],
    ['gains nothing', 'test/volumes/content.test.ts', 'a link that changes all the time'],
    ['never opened (400)', 'test/volumes/content.test.ts', 'no pipe makes anybody wait'],
    ['leaves nothing', 'test/volumes/content.test.ts', 'an upload that is given up leaves what was there'],
    [
      'nothing of it stays on the machine either',
      'test/volumes/content.test.ts',
      'what an api that was killed was uploading',
    ],
    ['Nothing else on the machine has its content', 'test/volumes/content.test.ts', 'afterwards nothing of it is left'],
  ],
};
