import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const servers = JSON.parse(readFileSync(join(import.meta.dirname, '../servers.json'), 'utf8'));

/** Beside no package of the gateway's: programs look for theirs in the folders above them. */
const installedIn = '/opt/mcp-servers';

/** Owner and name of a repository, of which neither leaves its folder. */
const repositoryPattern = /^github\/([A-Za-z0-9_-][A-Za-z0-9_.-]*)\/([A-Za-z0-9_-][A-Za-z0-9_.-]*)$/;

/** What is wrong with what was asked for, in one line. */
export class Refused extends Error {}

/**
 * How each server of a configuration is installed, and how it is run with its settings. Throws `Refused`, which names
 * the server, for one that is not offered and for settings that are missing, unknown or of the wrong kind.
 */
export function runsOf(configuration) {
  if (!isRecord(configuration) || Object.keys(configuration).length === 0)
    throw new Refused('the configuration must be an object with a member for each server');
  return Object.entries(configuration).map(([name, settings]) => {
    if (!isRecord(settings)) throw new Refused(`${name}: its settings must be an object`);
    return repositoryPattern.test(name) ? repositoryRun(name, settings) : offeredRun(name, settings);
  });
}

/** How a server of the list is installed. Throws `Refused` where none of that name is offered. */
export function installationOf(name) {
  const server = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (!server)
    throw new Refused(
      `${name}: this server is not offered here. Offered are ${Object.keys(servers).join(', ')}, ` +
        'and github/OWNER/REPOSITORY with the commands to install and run it',
    );
  const folder = join(installedIn, name);
  const isPython = server.pypi !== undefined;
  return { name, folder, ...(isPython ? { pypi: server.pypi } : { npm: server.npm }) };
}

function offeredRun(name, given) {
  const installation = installationOf(name);
  const { program, settings = {}, environment = {} } = servers[name];
  for (const setting of Object.keys(given))
    if (!Object.hasOwn(settings, setting)) throw new Refused(`${name}: ${setting} is no setting of this server`);
  const run = { args: [], env: { ...environment } };
  for (const [setting, target] of Object.entries(settings)) apply(run, `${name}.${setting}`, given[setting], target);
  const folder = installation.npm === undefined ? 'bin' : 'node_modules/.bin';
  return { ...installation, command: join(installation.folder, folder, program), cwd: '/home/user', ...run };
}

/** Puts the value of one setting where its server looks for it. */
function apply(run, place, value, { variable, each, one }) {
  if (variable !== undefined) {
    if (typeof value !== 'string' || value === '') throw new Refused(`${place} is needed, as a text`);
    run.env[variable] = value;
    return;
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(isPath))
    throw new Refused(`${place} is needed, as a list of absolute paths`);
  if (one !== undefined && value.length > 1) throw new Refused(`${place} may have one path`);
  run.args.push(...(one === undefined ? value : [one, ...value]));
}

function repositoryRun(name, given) {
  const { runCmd, installCmd, envs = {}, ...unknown } = given;
  const [first] = Object.keys(unknown);
  if (first !== undefined) throw new Refused(`${name}: ${first} is no setting of a server from a repository`);
  if (typeof runCmd !== 'string' || runCmd === '') throw new Refused(`${name}.runCmd is needed, as a text`);
  if (installCmd !== undefined && typeof installCmd !== 'string')
    throw new Refused(`${name}.installCmd must be a text`);
  if (!isRecord(envs) || !Object.values(envs).every(value => typeof value === 'string'))
    throw new Refused(`${name}.envs must be an object of texts`);
  const folder = join(installedIn, name);
  const command = { command: '/bin/bash', args: ['-lc', runCmd], env: envs, cwd: folder };
  return { name, folder, repository: `https://github.com/${name.slice('github/'.length)}`, installCmd, ...command };
}

const isPath = value => typeof value === 'string' && value.startsWith('/');
const isRecord = value => typeof value === 'object' && value !== null && !Array.isArray(value);
