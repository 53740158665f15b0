import { Resolver } from 'node:dns/promises';
import { silentLog } from '../base/telemetry/log.ts';
import { messageOf, systemCodeOf } from '../base/error.ts';
import { examineHost } from '../node/doctor/examine-host.ts';
import { placeRemedy } from '../node/doctor/probe.ts';
import { checkStore } from '../blob/check.ts';
import { prepareStoreDirectory } from '../blob/directory.ts';
import { openBlobStore } from '../blob/open.ts';
import type { HostFinding } from '../protocol/doctor.ts';
import { requireCertificate } from './platform/certificate.ts';
import { placeOf } from '../api/installation/place.ts';
import { checkPair } from '../api/installation/check.ts';
import { runningUrl } from './platform/instance.ts';
import { builtPrograms, criuDir, runscDir } from './repository.ts';
import type { Settings } from './settings/settings.ts';
import { storePlaceOf } from './settings/store-place.ts';

/** Longest wait for a name server, milliseconds; each is asked twice. */
const nameServerMs = 1_500;
/** A name that every name server on the internet can resolve. */
const askedName = 'debian.org';

/** Finds out what the host can do, and whether what the settings name works. Changes nothing. */
export async function examineAll(settings: Settings): Promise<HostFinding[]> {
  const url = runningUrl(settings.dataDir);
  // A running platform occupies the port that it was started with.
  const port = Number(URL.parse(url ?? '')?.port) || settings.port;
  const servesPort = url !== undefined;
  const host = await examineHost({ ...settings, port, criuDir, runscDir, ...builtPrograms, servesPort });
  return [...host, ...(await examineSettings(settings))];
}

/** Whether what the settings name works: the database, the store, the certificate, the name servers. */
export async function examineSettings(settings: Settings): Promise<HostFinding[]> {
  return [
    await databaseFinding(settings),
    ...(settings.store ? [await storeFinding(settings)] : []),
    certificateFinding(settings),
    await nameServerFinding(settings),
  ];
}

async function databaseFinding(settings: Settings): Promise<HostFinding> {
  const kind = settings.databaseUrl === undefined ? 'SQLite' : 'PostgreSQL';
  try {
    const pair = await checkPair(placeOf(settings), { accept: false });
    const whose = pair.kind === 'new' ? 'nothing in it yet' : 'of this data directory';
    return { name: 'database', needed: true, status: 'ok', detail: `${kind}, ${whose}` };
  } catch (error) {
    return {
      name: 'database',
      needed: true,
      status: 'missing',
      detail: messageOf(error),
      remedy: systemCodeOf(error) === 'ENOTDIR' ? placeRemedy : 'docs/safety.md says what each refusal means.',
    };
  }
}

/** Whether the cluster's store can be written and read, by trying. */
async function storeFinding(settings: Settings): Promise<HostFinding> {
  const finding = { name: 'store', needed: false } as const;
  try {
    const place = storePlaceOf(settings);
    if (!place) return { ...finding, status: 'ok', detail: 'none is set' };
    const shared = place.kind === 'directory' ? prepareStoreDirectory(place.path) : undefined;
    const store = openBlobStore(place, shared);
    await checkStore(store);
    return { ...finding, status: 'ok', detail: `${store.place}: written, read and removed` };
  } catch (error) {
    return {
      ...finding,
      status: 'limited',
      detail: messageOf(error),
      remedy: 'Correct ATOLL_STORE and what belongs to it; until then pauses stay on their machine alone.',
    };
  }
}

function certificateFinding(settings: Settings): HostFinding {
  const finding = { name: 'TLS certificate', needed: true } as const;
  if (settings.tlsPort === undefined) return { ...finding, status: 'ok', detail: 'no TLS port is set' };
  if (settings.tlsCertificate === undefined)
    return { ...finding, status: 'ok', detail: "signed by the installation's own authority" };
  try {
    requireCertificate(settings, silentLog);
    return { ...finding, status: 'ok', detail: settings.tlsCertificate };
  } catch (error) {
    return {
      ...finding,
      status: 'missing',
      detail: messageOf(error),
      remedy: 'Correct ATOLL_TLS_CERT and ATOLL_TLS_KEY: the chain and its key, in PEM.',
    };
  }
}

async function nameServerFinding({ nameservers }: Settings): Promise<HostFinding> {
  const answers = await Promise.all(nameservers.map(isAnswering));
  const silent = nameservers.filter((_, index) => !answers[index]);
  const finding = { name: 'name servers', needed: false } as const;
  if (silent.length === 0) return { ...finding, status: 'ok', detail: `${nameservers.join(', ')} answer` };
  return {
    ...finding,
    status: 'limited',
    detail:
      'no answer from ' +
      `${silent.join(', ')}${silent.length === nameservers.length ? ': sandboxes can look up no name' : ''}`,
    remedy: 'Set ATOLL_NAMESERVERS to resolvers that this machine reaches.',
  };
}

async function isAnswering(address: string): Promise<boolean> {
  const resolver = new Resolver({ timeout: nameServerMs, tries: 2 });
  resolver.setServers([address]);
  try {
    await resolver.resolve4(askedName);
    return true;
  } catch {
    return false; // no answer, or a refusal: neither resolves names
  }
}
