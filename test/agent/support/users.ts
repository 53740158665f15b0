import { appendFileSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { TestAgent } from './test-agent.ts';

/** Makes a user with a home directory in the agent's root file system, replacing users of that name or number. */
export function addUser(agent: TestAgent, name: string, uid: number, groups: Record<string, number> = {}): void {
  mkdirSync(agent.path('/etc'), { recursive: true });
  for (const file of ['/etc/passwd', '/etc/group'].map(path => agent.path(path))) {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
    const others = lines.filter(line => line.split(':')[0] !== name && line.split(':')[2] !== String(uid));
    writeFileSync(file, others.map(line => `${line}\n`).join(''));
  }
  appendFileSync(agent.path('/etc/passwd'), `${name}:x:${uid}:${uid}::/home/${name}:/bin/sh\n`);
  appendFileSync(agent.path('/etc/group'), `${name}:x:${uid}:\n`);
  for (const [group, gid] of Object.entries(groups))
    appendFileSync(agent.path('/etc/group'), `${group}:x:${gid}:other,${name}\n`);
  mkdirSync(agent.path(`/home/${name}`), { recursive: true });
  chownSync(agent.path(`/home/${name}`), uid, uid);
}

/** The header that names a user. */
export const as = (name: string) => ({ authorization: `Basic ${Buffer.from(`${name}:`).toString('base64')}` });
