#!/usr/bin/env node
// What the published command line takes for a container engine. It builds and runs nothing: it answers what images are,
// and keeps the builds that are asked for.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { configurationOf, keepBuild } from './record.mjs';

/** For a registry to say what an image is, ms. */
const registryMs = 60_000;
/** An engine whose builds have no BuildKit: everything that it builds is in Dockerfiles and folders. */
const version = '20.10.24';
/** Options of a build that change nothing here, and whether a value follows them. */
const without = new Map([
  ['--load', false],
  ['--no-cache', false],
  ['--pull', false],
  ['--cache-from', true],
  ['--label', true],
]);

process.exitCode = answer(process.argv.slice(2));

function answer([command, ...words]) {
  if (command === '-v' || command === '--version') return say(`Docker version ${version}, build atoll`);
  if (command === 'version') return say(version);
  if (command === 'ps') return 0;
  if (command === 'pull' || command === 'tag') return 0;
  if (command === 'inspect' && words.includes('image')) return say(JSON.stringify([imageOf(words.at(-1))]));
  if (command === 'build') return keep(words);
  // Where BuildKit is asked for, there is none.
  if (command === 'buildx' && words[0] === 'version') return 1;
  process.stderr.write(`docker ${command ?? ''} is not there: a sandbox has no container engine\n`);
  return 1;
}

function say(text) {
  process.stdout.write(`${text}\n`);
  return 0;
}

function imageOf(name) {
  const { User = '', Env = [], Labels = {}, Entrypoint = null, Cmd = null } = configurationOf(name, fromRegistry);
  return { Id: name, Architecture: '', Os: 'linux', Config: { User, Env, Labels, Entrypoint, Cmd } };
}

/** An image that no registry tells of may still be one that the platform knows: it is taken as one without settings. */
function fromRegistry(name) {
  const { status, stdout, stderr } = spawnSync('skopeo', ['inspect', '--config', `docker://${name}`], {
    encoding: 'utf8',
    timeout: registryMs,
  });
  if (status === 0) return JSON.parse(stdout).config ?? {};
  process.stderr.write(`the settings of ${name} are not known here: ${stderr.trim().slice(0, 500)}\n`);
  return {};
}

function keep(words) {
  const build = { tag: '', file: '', context: resolve(words.at(-1) ?? '.'), target: '', args: {} };
  for (let at = 0; at < words.length - 1; at++) {
    const [option, joined] = words[at].startsWith('--') ? split(words[at]) : [words[at]];
    const value = () => joined ?? words[++at] ?? '';
    if (option === '-t' || option === '--tag') build.tag = value();
    else if (option === '-f' || option === '--file') build.file = value();
    else if (option === '--target') build.target = value();
    else if (option === '--build-arg') {
      const [name, text] = split(value());
      build.args[name] = text ?? process.env[name] ?? '';
    } else if (without.has(option)) {
      if (without.get(option)) value();
    } else {
      process.stderr.write(`build.options: ${option} is an option of a container engine, and a sandbox has none\n`);
      return 1;
    }
  }
  const { file, ...kept } = build;
  keepBuild({ ...kept, dockerfile: readFileSync(file || resolve(build.context, 'Dockerfile'), 'utf8') });
  return 0;
}

function split(text) {
  const equals = text.indexOf('=');
  return equals < 0 ? [text] : [text.slice(0, equals), text.slice(equals + 1)];
}
