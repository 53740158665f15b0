import { closeSync, existsSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { freeBytesOf } from '../base/disk-room.ts';
import { AtollError, messageOf } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import { userIdOf } from '../base/part-users.ts';
import { unlessAborted } from '../base/unless-aborted.ts';
import { findRunsc } from '../node/drivers/gvisor/find-runsc.ts';
import { makeRoomToStart } from '../node/space/ballast.ts';
import { type Part, type PartOptions, startPart } from '../supervisor/part.ts';
import { commandOf } from '../supervisor/program.ts';
import { RestartCounts } from '../supervisor/restart-counts.ts';
import { apiKeyFile } from './accounts.ts';
import { type Certificate, openCertificate } from './certificate.ts';
import { commitOf } from './commit.ts';
import { apiFolders, prepareDataDirectory } from './data-directory.ts';
import { readIdentity, readIfThere, readOrMake } from './identity.ts';
import { forgetInstance, noteInstance } from './instance.ts';
import { checkPair } from './installation/check.ts';
import { type InstallationNote, writeNote } from './installation/note.ts';
import { type ApiAbout, type EdgeAbout, type NodeAbout, socketsIn } from './parts/about.ts';
import type { ApiSettings, ApiUpdate } from './parts/api.ts';
import type { EdgeSettings, EdgeUpdate } from './parts/edge.ts';
import type { NodeSettings } from './parts/node.ts';
import { repository, runscDir } from './repository.ts';
import type { Settings } from './settings.ts';
import { shippedNotesFile } from './shipped-record.ts';

export type PlatformOptions = {
  settings: Settings;
  log: Log;
  /** For the tools that make the base template, and of the node's programs. */
  environment: Record<string, string>;
  /** Told while something slow is done. */
  onPhase: (phase: string) => void;
  /** Goes on with a database that is empty or older than the data directory. */
  acceptDatabase?: boolean;
  /** Ends a start that is under way. */
  signal: AbortSignal;
};

/** A platform that serves. Disposing ends it; its sandboxes run on. */
export type Platform = AsyncDisposable & {
  port: number;
  tlsPort: number | null;
  /** The certificate to trust where the TLS port has one of the installation's own authority. */
  authorityFile: string | null;
  apiKey: string;
  /** Templates that are being built in the background. */
  building: string[];
  /** Fails when the platform can't go on. */
  failed: Promise<never>;
};

/** Of the platform and what it starts, in nice(2)'s numbers: three times the weight of a process at 0. */
const platformNiceness = -5;
/** How many seconds a process's event loop may stand still. The node's work on disks and mounts takes the machine longer. */
const stallSeconds = { node: 30, api: 10, edge: 10 } as const;
/** Of the environment, what may be meant for the api's connections: proxies, authorities, PostgreSQL's own variables. */
const apiEnvironment = /^(https?_proxy|no_proxy|all_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|PG[A-Z]+|TZ)$/i;

/** Starts the node, the api and the edge, each a process with the rights that it needs, and watches them. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { settings, log, environment, signal } = options;
  const { dataDir } = settings;
  assertPortsFree(settings);
  assertDriversThere(settings);
  const failed = Promise.withResolvers<never>();
  // Whoever waits for it may come later than the failure.
  failed.promise.catch(() => {});
  await using started = new AsyncDisposableStack();
  // A start writes too, and on a full disk there is only what was kept back for that.
  if (existsSync(dataDir)) makeRoomToStart(dataDir, freeBytesOf(dataDir));
  // All processes inherit it.
  setPriority(platformNiceness);
  // Before anything is made or taken over: a start with the wrong database must leave no trace.
  const first = { pair: await checkPair(settings, { accept: options.acceptDatabase ?? false }) };
  const identity = readIdentity(dataDir);
  const restarts = new RestartCounts();
  const begin = <About>(own: Pick<PartOptions<About>, 'name' | 'command' | 'environment' | 'settings'> & Partial<PartOptions<About>>): Part<About> => {
    const part = startPart<About>({
      stallLooksMax: stallSeconds[own.name],
      log,
      onPhase: options.onPhase,
      onAsk: async what => {
        throw new AtollError('unimplemented', `nobody may ask for ${what}`);
      },
      onReady() {},
      onRestart(reason) {
        restarts.count(own.name, reason);
        api?.update({ restarts: restarts.family() } satisfies ApiUpdate);
      },
      onGivenUp: failed.reject,
      ...own,
    });
    started.defer(() => part.stop());
    return part;
  };
  let api: Part<ApiAbout> | undefined;

  const node = begin<NodeAbout>({
    name: 'node',
    command: commandOf(programOf('node'), 'root'),
    environment,
    settings: (): NodeSettings => ({ settings, nodeId: identity.nodeId, environment }),
  });
  const { installation, runDir } = await unlessAborted(node.ready, signal, 'The start was interrupted.');
  // Forgotten before the node has stopped, and noted once it has the directory.
  started.defer(() => forgetInstance(dataDir));
  noteInstance(dataDir);
  prepareDataDirectory(dataDir, userIdOf('api', installation));

  api = begin<ApiAbout>({
    name: 'api',
    command: commandOf(programOf('api'), 'to drop', apiFolders.map(name => ({ folder: join(dataDir, name), at: join(socketsIn(runDir).data, name) }))),
    environment: Object.fromEntries(Object.entries(environment).filter(([name]) => apiEnvironment.test(name) || name === 'PATH')),
    async settings(): Promise<ApiSettings> {
      const pair = first.pair ?? (await checkPair(settings, { accept: false }));
      delete (first as Partial<typeof first>).pair;
      const notes = { apiKey: readIfThere(apiKeyFile(dataDir)), shippedNotes: readIfThere(join(dataDir, shippedNotesFile)) };
      return { settings, identity, pair, installation, runDir, commit: commitOf(repository), ...notes, restarts: restarts.family() };
    },
    async onAsk(what, value) {
      if (what === 'installation note') writeNote(dataDir, value as InstallationNote);
      else if (what === 'shipped templates') writeWhole(join(dataDir, shippedNotesFile), String(value));
      else if (what === 'end') failed.reject(new AtollError('precondition', String(value)));
      else throw new AtollError('unimplemented', `nobody may ask for ${what}`);
    },
    onReady: ({ apiKey }) => keepApiKey(dataDir, apiKey),
  });
  const { apiKey, building } = await unlessAborted(api.ready, signal, 'The start was interrupted.');

  const certificate = openCertificate(settings, log);
  // Once they are known, the ports stay the same however often the process is started again.
  const ports = { port: settings.port, tlsPort: settings.tlsPort };
  const edge = begin<EdgeAbout>({
    name: 'edge',
    command: commandOf(programOf('edge'), 'to drop'),
    environment: {},
    settings: (): EdgeSettings => ({
      installation,
      runDir,
      logLevel: settings.logLevel,
      host: settings.host,
      port: ports.port,
      trustForwarded: settings.trustForwarded,
      tls: certificate && ports.tlsPort !== undefined ? { port: ports.tlsPort, certificate: certificate.source.current } : undefined,
    }),
    onReady(about) {
      ports.port = about.port;
      if (about.tlsPort !== null) ports.tlsPort = about.tlsPort;
    },
  });
  if (certificate) started.use(watchCertificate(certificate, edge));
  const { port, tlsPort } = await unlessAborted(edge.ready, signal, 'The start was interrupted.').catch((error: unknown) => {
    throw error instanceof AtollError && error.code !== 'internal' ? error : portError(settings, error);
  });
  const disposal = started.move();
  return { port, tlsPort, authorityFile: certificate?.authorityFile ?? null, apiKey, building, failed: failed.promise, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

const programOf = (part: 'node' | 'api' | 'edge') => join(import.meta.dir, { node: 'parts/node.ts', api: 'parts/api.ts', edge: 'parts/edge.ts' }[part]);

/** Kept in a file for root alone. One that was revoked is replaced. */
function keepApiKey(dataDir: string, apiKey: string): void {
  const file = apiKeyFile(dataDir);
  if (readOrMake(file, () => apiKey) !== apiKey) writeWhole(file, apiKey);
}

/** A small file for root alone; a crash leaves the old one or the new one. */
function writeWhole(path: string, text: string): void {
  const draft = `${path}.new`;
  const file = openSync(draft, 'w', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** How often changes of the certificate are looked for. */
const certificateCheckMs = 5_000;

/** Hands every new certificate to the edge, which may not read its files. */
function watchCertificate({ source }: Certificate, edge: Part<EdgeAbout>): Disposable {
  let known = source.current;
  const timer = setInterval(() => {
    source.refresh();
    if (source.current === known) return;
    known = source.current;
    edge.update({ certificate: known } satisfies EdgeUpdate);
  }, certificateCheckMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** What is to be isolated by gVisor must never run on anything less. */
function assertDriversThere({ driver, templateDrivers }: Settings): void {
  const runsc = findRunsc(runscDir);
  if (runsc.found || ![driver, ...(templateDrivers?.values() ?? [])].includes('gvisor')) return;
  throw new AtollError('unavailable', `ATOLL_DRIVER or ATOLL_TEMPLATE_DRIVERS asks for gVisor, which is not there: ${runsc.reason}.`);
}

/** Says so at once, and not after the base template was made for minutes. */
function assertPortsFree(settings: Settings): void {
  for (const port of [settings.port, settings.tlsPort ?? 0]) {
    try {
      Bun.listen({ hostname: settings.host, port, socket: { data() {} } }).stop(true);
    } catch (error) {
      throw portError(settings, error, port);
    }
  }
}

function portError({ host, port, tlsPort }: Settings, cause: unknown, refused?: number): AtollError {
  const which = refused === undefined ? `Port ${port}${tlsPort === undefined ? '' : ` or ${tlsPort}`}` : `Port ${refused}`;
  const variable = refused !== undefined && refused === tlsPort && refused !== port ? 'ATOLL_TLS_PORT' : 'ATOLL_PORT';
  return new AtollError('conflict', `${which} of ${host} can't be opened (${messageOf(cause)}). End what uses it, or set ${variable} to another one.`, { cause });
}
