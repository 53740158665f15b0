import { Sandbox } from 'e2b';
import { startAgent, type AgentOptions, type TestAgent } from './test-agent.ts';
import { addUser } from './users.ts';

/** The published SDK, talking only to an agent: in its debug mode it makes no calls to a platform. */
export type SdkSandbox = AsyncDisposable & { agent: TestAgent; sandbox: Sandbox };

export async function startSdkSandbox(options: AgentOptions = {}): Promise<SdkSandbox> {
  const agent = await startAgent({
    ...options,
    init: { defaultUser: 'user', envVars: { E2B_SANDBOX: 'true', GIT_CONFIG_NOSYSTEM: '1' }, ...options.init },
  });
  addUser(agent, 'user', 1000);
  const sandbox = await Sandbox.create({ debug: true, sandboxUrl: agent.url });
  return { agent, sandbox, [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose]() };
}
