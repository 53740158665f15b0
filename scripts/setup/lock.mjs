import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const pollMs = 200;

/** Does `work` while no other process of this checkout does: two set-ups at once would tear each other's files. */
export async function exclusively(file, work) {
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  while (!take(file)) {
    const holder = holderOf(file);
    if (holder !== undefined && !isAlive(holder)) {
      // Its holder died. Should two waiters remove it, `take` still lets one of them through.
      rmSync(file, { force: true });
      continue;
    }
    if (!told) process.stderr.write(`Waiting for another set-up of this checkout (process ${holder}) …\n`);
    told = true;
    await new Promise(resolve => setTimeout(resolve, pollMs));
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function holderOf(file) {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
