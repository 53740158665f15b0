import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiFolders } from '../../api/installation/data-directory.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import { commandOf } from '../../supervisor/program.ts';
import { makeSocketFolder, socketsIn } from './sockets.ts';

// A compromised api can do with its folder whatever its user may, and root returns to the folder: at each start of the
// node, which gives the folder to the api, and at each start of the api, which mounts its folders there while it is
// still root.

const users = { api: userIdOf('api', 15), edge: userIdOf('edge', 15) };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-sockets-'));
  chmodSync(folder, 0o711);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a shell as the api. */
const asApi = (script: string, ...args: string[]) =>
  Bun.spawnSync(
    ['setpriv', `--reuid=${users.api}`, `--regid=${users.api}`, '--clear-groups', 'sh', '-c', script, 'sh', ...args],
    { cwd: '/' },
  );

test('what root gives to the api and mounts for it is where it is, whatever the api puts in its place', () => {
  const [runDir, victim, shown] = ['run', 'victim', 'shown'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(runDir, { mode: 0o711 });
  mkdirSync(victim);
  for (const name of apiFolders) mkdirSync(join(victim, name));
  mkdirSync(shown);
  writeFileSync(join(shown, 'file'), '');
  makeSocketFolder(runDir, users);
  const { data, folder: own } = socketsIn(runDir);
  // It may do so only with what it owns.
  expect(asApi('touch "$1/socket"', own).exitCode).toBe(0);
  for (const path of [data, ...apiFolders.map(name => join(data, name))])
    expect(asApi('mv "$1" "$1.away" && ln -s "$2" "$1"', path, victim).exitCode).not.toBe(0);

  makeSocketFolder(runDir, users);
  for (const path of [victim, ...apiFolders.map(name => join(victim, name))]) expect(statSync(path).uid).toBe(0);
  const at = join(data, apiFolders[0]);
  const look = ['sh', '-c', 'ls "$1" "$2"', 'sh', at, join(victim, apiFolders[0])];
  const { stdout } = Bun.spawnSync(commandOf(look, { rights: 'root', shown: [{ folder: shown, at }] }));
  expect(stdout.toString()).toBe(`${at}:\nfile\n\n${join(victim, apiFolders[0])}:\n`);
  expect(existsSync(`${data}.away`)).toBe(false);
});

test('the api keeps its files in its folders where nothing can be mounted, and the edge sees none of them', () => {
  makeSocketFolder(folder, users);
  const { data } = socketsIn(folder);
  for (const name of apiFolders) {
    expect(asApi('echo kept > "$1/file" && cat "$1/file"', join(data, name)).stdout.toString()).toBe('kept\n');
    expect(statSync(join(data, name)).mode & 0o077).toBe(0);
  }
});
