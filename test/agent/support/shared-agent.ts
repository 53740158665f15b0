import { afterAll, beforeAll } from 'bun:test';
import { startAgent, type AgentOptions, type TestAgent } from './test-agent.ts';

/** One agent for all tests of a file. The returned object becomes the agent once the first test runs. */
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
