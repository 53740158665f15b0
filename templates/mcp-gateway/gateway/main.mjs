#!/usr/bin/env node
// `mcp-gateway --config JSON` starts the gateway with the servers of a configuration, and ends when it serves; the
// token that its clients need is GATEWAY_ACCESS_TOKEN. `mcp-gateway pull NAME…` installs servers beforehand.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { installationOf, Refused, runsOf } from './catalogue.mjs';
import { asUser, install } from './install.mjs';

const tokenFolder = '/etc/mcp-gateway';
const logFile = '/var/log/mcp-gateway.log';

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  process.stderr.write(`mcp-gateway: ${error.message}\n`);
  process.exitCode = 1;
}

async function main([command, ...words]) {
  if (command === 'pull' && words.length > 0) return pull(words);
  if (command === '--config' && words.length === 1) return start(words[0]);
  throw new Refused('use: mcp-gateway --config JSON, or mcp-gateway pull NAME…');
}

async function pull(names) {
  const installations = names.map(installationOf);
  for (const installation of installations) await install(installation);
}

async function start(configuration) {
  const servers = runsOf(parsed(configuration));
  const token = process.env['GATEWAY_ACCESS_TOKEN'];
  if (!token) throw new Refused('GATEWAY_ACCESS_TOKEN is not set: nobody could be let in');
  await Promise.all(servers.map(install));
  mkdirSync(tokenFolder, { recursive: true, mode: 0o700 });
  writeFileSync(join(tokenFolder, '.token'), token, { mode: 0o600 });
  await serve({ token, servers });
}

function parsed(configuration) {
  try {
    return JSON.parse(configuration);
  } catch (error) {
    throw new Refused(`the configuration is no JSON: ${error.message}`);
  }
}

/** Starts the program that serves, which outlives this one, and waits until it does or says why it can't. */
async function serve(order) {
  const [program, ...args] = asUser([process.execPath, join(import.meta.dirname, 'serve.mjs')]);
  const child = spawn(program, args, {
    detached: true,
    cwd: '/home/user',
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8' },
    stdio: ['pipe', 'pipe', openSync(logFile, 'a')],
  });
  // Keys and token are in no argument, which everybody in the sandbox could read.
  child.stdin.end(JSON.stringify(order));
  const said = await text(child.stdout);
  if (said !== 'ready') throw new Refused(said || `it ended; ${logFile} may say why`);
  child.unref();
}
