import { commandOfProgram } from '../../base/process/own-program.ts';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { shippedBuildsFile } from '../../api/shipped/builds.ts';
import { apiFolders, apiKeyFile } from '../../api/installation/data-directory.ts';
import { checkPair, type Pair } from '../../api/installation/check.ts';
import { type InstallationFacts, writeFacts } from '../../api/installation/facts.ts';
import { placeOf } from '../../api/installation/place.ts';
import { AtollError } from '../../base/error.ts';
import { readIfThere, readOrMake, writeWhole } from '../../base/small-file.ts';
import { prepareStoreDirectory } from '../../blob/directory.ts';
import type { StorePlace } from '../../blob/open.ts';
import type { CertificateSource } from '../../supervisor/certificates/files.ts';
import type { PartGroups } from '../../supervisor/control-groups.ts';
import {
  type ApiAbout,
  type EdgeAbout,
  readApiAbout,
  readEdgeAbout,
  readGateIdentity,
} from '../../protocol/wire/part-about.ts';
import type { PartName } from '../../supervisor/part-process.ts';
import type { Part, PartOptions } from '../../supervisor/part.ts';
import { commandOf } from '../../supervisor/program.ts';
import type { RestartCounts } from '../../supervisor/restart-counts.ts';
import { readOidcFile } from '../settings/oidc-file.ts';
import { commitOf } from '../commit.ts';
import { shownSettings } from '../settings/config.ts';
import { examineApart } from './examine.ts';
import { keepPrograms, type Programs } from './programs.ts';
import type { Identity } from './identity.ts';
import type { ApiSettings } from '../parts/api.ts';
import type { EdgeSettings } from '../parts/edge.ts';
import type { GateSettings } from '../parts/gate.ts';
import type { NodeSettings } from '../parts/node.ts';
import { type InstallationPlace, socketsIn } from '../parts/sockets.ts';
import type { NodeIdentity } from '../../wire/tls/listen-tls.ts';
import { builtPrograms, repository } from '../repository.ts';
import type { Settings } from '../settings/settings.ts';

/** Environment variables that may concern the api's connections: proxies, authorities, PostgreSQL's own. */
const apiEnvironment = /^(https?_proxy|no_proxy|all_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|PG[A-Z]+|TZ)$/i;

/** Starts one part of the platform, which ends with it. */
export type BeginPart = <About>(
  own: Pick<PartOptions<About>, 'name' | 'command' | 'environment' | 'settings'> & Partial<PartOptions<About>>,
) => Part<About>;

/** What the start of every part takes. */
type Common = {
  settings: Settings;
  environment: Record<string, string>;
  identity: Identity;
  groups: PartGroups<PartName>;
};
/** What the edge needs from the parts that start before it. Without a certificate there is no TLS port. */
export type EdgeSurroundings = InstallationPlace & {
  certificate: CertificateSource | undefined;
  /** Sandboxes are on the machines of a cluster. */
  isControl: boolean;
};

/**
 * Starts the node, which runs as root. `onClaimed`: called once the data directory is this platform's and has its place
 * on the machine; the node continues its start when the result resolves. `isForGate`: in a cluster, where only this
 * machine's gate calls the node.
 */
export function beginNode(
  begin: BeginPart,
  { settings, environment, identity, groups }: Omit<Common, 'identity'> & { identity: Pick<Identity, 'nodeId'> },
  { isForGate, onClaimed }: { isForGate: boolean; onClaimed(place: InstallationPlace): unknown },
): Part<unknown> {
  let programs: Promise<Programs> | undefined;
  return begin({
    name: 'node',
    command: () => commandOf(commandOfProgram('node'), { rights: 'root', joinFiles: groups.joinFiles('node') }),
    environment,
    async settings(): Promise<NodeSettings> {
      // Those of this version: the node may be restarted when others exist.
      programs ??= keepPrograms(settings.dataDir, builtPrograms);
      return { settings, nodeId: identity.nodeId, environment, isForGate, programs: await programs };
    },
    async onAsk(what, value) {
      if (what !== 'others') throw new AtollError('unimplemented', `nobody may ask for ${what}`);
      await onClaimed(value as InstallationPlace);
      return undefined;
    },
  });
}

/**
 * Starts the api. `pair` is what the first start has found; later starts look again. Null: a replica of control has
 * none. `nodeServes`: the api loads and opens its state first, and continues when this resolves.
 */
export function beginApi(
  begin: BeginPart,
  { settings, environment, identity, groups }: Common,
  { installation, runDir }: InstallationPlace,
  also: {
    pair: Pair | null;
    restarts: RestartCounts;
    nodeServes: Promise<unknown>;
    fail(error: AtollError): void;
    /** Where the cluster keeps what outlives its machines; control only. */
    storePlace?: StorePlace | undefined;
    /** Nothing can be mounted, so the api's folders are among its sockets. */
    isConfined?: boolean;
  },
): Part<ApiAbout> {
  const { dataDir } = settings;
  let firstPair: Pair | null | undefined = also.pair;
  const examine = examineApart(environment);
  // Later changes of the file take effect at the next start.
  const shown = shownSettings(environment);
  const surroundings = {
    rights: 'to drop' as const,
    shown: also.isConfined
      ? []
      : [
          ...apiFolders.map(name => ({ folder: join(dataDir, name), at: join(socketsIn(runDir).data, name) })),
          ...storeFolder(runDir, also.storePlace),
        ],
    joinFiles: groups.joinFiles('api'),
  };
  return begin<ApiAbout>({
    name: 'api',
    command: () => commandOf(commandOfProgram('api'), surroundings),
    onEnd: () => groups.clear('api'),
    environment: Object.fromEntries(
      Object.entries(environment).filter(([name]) => apiEnvironment.test(name) || name === 'PATH'),
    ),
    async settings(): Promise<ApiSettings> {
      const pair = firstPair === undefined ? await checkPair(placeOf(settings), { accept: false }) : firstPair;
      if (firstPair) firstPair = undefined;
      return {
        settings,
        identity,
        pair,
        installation,
        runDir,
        commit: commitOf(repository),
        storePlace: also.storePlace,
        oidc: readOidcFile(settings),
        apiKey: readIfThere(apiKeyFile(dataDir)),
        shippedBuilds: readIfThere(join(dataDir, shippedBuildsFile)),
        restarts: also.restarts.metric(),
        shownSettings: shown,
      };
    },
    async onAsk(what, value) {
      if (what === 'doctor') return examine();
      if (what === 'installation facts') writeFacts(dataDir, value as InstallationFacts);
      else if (what === 'shipped templates') writeWhole(join(dataDir, shippedBuildsFile), String(value));
      else if (what === 'node') await also.nodeServes;
      else if (what === 'end') also.fail(new AtollError('precondition', String(value)));
      else throw new AtollError('unimplemented', `nobody may ask for ${what}`);
      return undefined;
    },
    readAbout: readApiAbout,
    onReady: ({ apiKey }) => keepApiKey(dataDir, apiKey),
  });
}

/** Makes a store that is a directory visible to the api, which can't enter the folder above it. */
function storeFolder(runDir: string, place: StorePlace | undefined): { folder: string; at: string }[] {
  if (place?.kind !== 'directory') return [];
  const at = socketsIn(runDir).store;
  mkdirSync(at, { recursive: true, mode: 0o700 });
  return [{ folder: prepareStoreDirectory(place.path), at }];
}

/**
 * Starts the edge. It loads while the others start, and opens its ports once what they lead to exists. Once known, its
 * ports stay the same however often it is restarted.
 */
export function beginEdge(
  begin: BeginPart,
  { settings, groups }: Common,
  served: Promise<EdgeSurroundings>,
): Part<EdgeAbout> {
  const ports = { port: settings.port, tlsPort: settings.tlsPort };
  return begin<EdgeAbout>({
    name: 'edge',
    command: () => commandOf(commandOfProgram('edge'), { rights: 'to drop', joinFiles: groups.joinFiles('edge') }),
    onEnd: () => groups.clear('edge'),
    environment: {},
    async settings(): Promise<EdgeSettings> {
      const { installation, runDir, certificate, isControl } = await served;
      return {
        installation,
        runDir,
        isControl,
        logLevel: settings.logLevel,
        host: settings.host,
        port: ports.port,
        trustForwarded: settings.trustForwarded,
        tls:
          certificate && ports.tlsPort !== undefined
            ? { port: ports.tlsPort, certificate: certificate.current }
            : undefined,
      };
    },
    readAbout: readEdgeAbout,
    onReady(about) {
      ports.port = about.port;
      if (about.tlsPort !== null) ports.tlsPort = about.tlsPort;
    },
  });
}

/** Starts the gate of a machine in a cluster. `keep` receives each new certificate of it. */
export function beginGate(
  begin: BeginPart,
  { groups }: Pick<Common, 'groups'>,
  settings: () => GateSettings,
  keep: (identity: NodeIdentity) => void,
): Part<unknown> {
  return begin({
    name: 'gate',
    command: () => commandOf(commandOfProgram('gate'), { rights: 'to drop', joinFiles: groups.joinFiles('gate') }),
    onEnd: () => groups.clear('gate'),
    environment: {},
    settings,
    async onAsk(what, value) {
      if (what !== 'certificate') throw new AtollError('unimplemented', `nobody may ask for ${what}`);
      keep(readGateIdentity(value));
    },
  });
}

/** Kept in a file that only root can read. A revoked key is replaced. */
function keepApiKey(dataDir: string, apiKey: string): void {
  const file = apiKeyFile(dataDir);
  if (readOrMake(file, () => apiKey) !== apiKey) writeWhole(file, apiKey);
}
