import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { asksControl } from '../api/installation/data-directory.ts';
import { AtollError } from '../base/error.ts';
import type { Connection, SavedLogin } from '../cli/connection/connection.ts';
import { readIfThere } from '../base/small-file.ts';
import { runningUrl } from './platform/instance.ts';
import type { Settings } from './settings/settings.ts';
import { parseJson } from '../base/json-text.ts';
import { advice } from '../base/process/set-up.ts';

type Environment = Record<string, string>;

const folderOf = ({ HOME = homedir(), XDG_CONFIG_HOME = join(HOME, '.config') }: Environment) =>
  join(XDG_CONFIG_HOME, 'atoll');
const fileOf = (environment: Environment) => join(folderOf(environment), 'login.json');

/** This user's key for SSH into sandboxes. */
export const sshKeyFile = (environment: Environment) => join(folderOf(environment), 'ssh', 'id_ed25519');

/**
 * What `atoll login` has saved for this user; undefined if there is no login. Fails with `invalid` if the file is
 * broken.
 */
export function savedConnection(environment: Environment): Connection | undefined {
  const file = fileOf(environment);
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  const { url, apiKey, domain } = (parseJson(text) ?? {}) as Record<string, unknown>;
  if (typeof url === 'string' && URL.canParse(url) && typeof apiKey === 'string' && typeof domain === 'string')
    return { url, apiKey, domain };
  throw new AtollError('invalid', `${file} is broken; \`atoll login\` writes it anew.`);
}

/** Where this user's logins are kept: a file that nobody else may read. */
export function savedLogin(environment: Environment): SavedLogin {
  const file = fileOf(environment);
  return {
    save(connection) {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      rmSync(file, { force: true });
      writeFileSync(file, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
      return file;
    },
    forget() {
      const isThere = readIfThere(file) !== undefined;
      rmSync(file, { force: true });
      return isThere;
    },
  };
}

/** The installation that runs on this machine, with the key of its first team. Fails with `unavailable`. */
export function localConnection({ dataDir, domain }: Settings): Connection {
  const url = runningUrl(dataDir);
  const apiKey = readIfThere(join(dataDir, 'api-key'));
  if (url === undefined || apiKey === undefined)
    throw new AtollError(
      'unavailable',
      asksControl(dataDir) ??
        `No platform runs on ${dataDir}: ${advice.start}, set ATOLL_DATA_DIR, or \`atoll login\` to another one.`,
    );
  const { port } = new URL(url);
  return { url, apiKey: apiKey.trim(), domain: port === '' ? domain : `${domain}:${port}` };
}
