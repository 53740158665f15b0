#!/usr/bin/env node
// `devcontainer` in the template of that name. `build` has the published command line read devcontainer.json and say
// what it would have a container engine build; that is kept as a plan, which the build of the template carries out:
// a sandbox then is the dev container, and needs no engine inside.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { check, refuseEngines, Refused } from './check.mjs';
import { folders, imageUser, recorded } from './record.mjs';
import { runtimeFiles } from './runtime.mjs';

const published = join(folders.top, 'node_modules/@devcontainers/cli/devcontainer.js');
const engine = join(folders.top, 'cli/docker.mjs');
/** What a configuration may print, bytes. */
const outputBytesMax = 16 << 20;

try {
  main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  process.stderr.write(`devcontainer: ${error.message}\n`);
  process.exitCode = 1;
}

function main([command, ...words]) {
  if (command === 'build') return build(words);
  if (command === 'read-configuration') return void (process.exitCode = publishedCli([command, ...words]).status ?? 1);
  throw new Refused(
    `${command ?? ''} is not there: a template is built by "devcontainer build --workspace-folder FOLDER", ` +
      'and its sandboxes have "up" and "exec"',
  );
}

function build(words) {
  const at = words.indexOf('--workspace-folder');
  const folder = at < 0 ? undefined : words[at + 1];
  if (folder === undefined) throw new Refused('build needs --workspace-folder and the folder of the project');
  rmSync(folders.record, { recursive: true, force: true });
  for (const path of [folders.images, folders.temporary]) mkdirSync(path, { recursive: true });
  refuseEngines(configurationOf(words).configuration);
  const { configuration, mergedConfiguration, workspace } = configurationOf([
    '--include-merged-configuration',
    ...words,
  ]);
  const checked = check({ configuration, merged: mergedConfiguration, workspace, folder: resolve(folder) });
  initialize(configuration.initializeCommand, folder);
  const { status } = publishedCli(['build', ...words]);
  if (status !== 0) throw new Refused('what devcontainer.json asks for can’t be built; see above');
  const user = mergedConfiguration.remoteUser ?? mergedConfiguration.containerUser ?? '';
  for (const [name, content] of runtimeFiles({ merged: mergedConfiguration, ...checked, user, imageUser: imageUser() }))
    writeFileSync(join(folders.run, name), content, { mode: 0o755 });
  writeFileSync(folders.plan, JSON.stringify({ workspace: checked.source, builds: recorded() }));
}

function configurationOf(words) {
  const { status, stdout, stderr } = publishedCli(['read-configuration', ...words], 'pipe');
  if (status === 0) return JSON.parse(lastLine(stdout));
  // Its first line names the program.
  const reason = stderr.trim().split('\n').slice(1).join(' ');
  throw new Refused(`devcontainer.json can't be used: ${reason || 'there is none in the folder, or it is not JSON'}`);
}

/** Runs the published command line, which calls docker.mjs where it would call an engine. */
function publishedCli(words, output = 'inherit') {
  return spawnSync(process.execPath, [published, ...words, '--docker-path', engine], {
    stdio: ['ignore', output, output],
    encoding: 'utf8',
    maxBuffer: outputBytesMax,
    // Folders of features are a part of the plan: /tmp is no place for them.
    env: { ...process.env, TMPDIR: folders.temporary },
  });
}

/** `initializeCommand` runs where the project is before there is a container: in the build. */
function initialize(command, cwd) {
  const all = command && typeof command === 'object' && !Array.isArray(command) ? Object.values(command) : [command];
  for (const each of all.filter(Boolean)) {
    const [program, ...args] = Array.isArray(each) ? each : ['/bin/sh', '-c', each];
    const { status } = spawnSync(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) throw new Refused(`initializeCommand ended with ${status}`);
  }
}

function lastLine(text) {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
