import { afterAll, beforeAll } from 'bun:test';
import { startAgent, type AgentOptions, type TestAgent } from './test-agent.ts';

/** One agent for all tests of a file. The answered object is the agent once the first test runs. */
export function sharedAgent(options: AgentOptions = {}): TestAgent {
  let agent: TestAgent | undefined;
  beforeAll(async () => {
    agent = await startAgent(options);
  }, 30_000);
  afterAll(() => agent?.[Symbol.asyncDispose]());
  return new Proxy({} as TestAgent, {
    get(_, name) {
      if (!agent) throw new Error('the agent is there from the first test on');
      return Reflect.get(agent, name);
    },
  });
}

/** Makes a user in the agent's root file system, with a home directory. */
export async function addUser(agent: TestAgent, name: string, uid: number, groups: Record<string, number> = {}): Promise<void> {
  const append = async (file: string, line: string) => {
    const path = agent.path(file);
    const text = await Bun.file(path).text().catch(() => '');
    await Bun.write(path, `${text.replace(/\n?$/, text === '' ? '' : '\n')}${line}\n`);
  };
  await append('/etc/passwd', `${name}:x:${uid}:${uid}::/home/${name}:/bin/sh`);
  await append('/etc/group', `${name}:x:${uid}:`);
  for (const [group, gid] of Object.entries(groups)) await append('/etc/group', `${group}:x:${gid}:other,${name}`);
  const { mkdirSync, chownSync } = await import('node:fs');
  mkdirSync(agent.path(`/home/${name}`), { recursive: true });
  chownSync(agent.path(`/home/${name}`), uid, uid);
}

/** The header that names a user. */
export const as = (name: string) => ({ authorization: `Basic ${Buffer.from(`${name}:`).toString('base64')}` });
