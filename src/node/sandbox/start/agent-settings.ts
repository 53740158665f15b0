import { randomBytes } from 'node:crypto';
import { randomHex } from '../../../base/crypto/secret.ts';
import type { AgentInit } from '../../../protocol/agent.ts';
import { initAgent } from '../../agent-client/call.ts';
import type { NetworkNamespace } from '../../native/netns.ts';

/** More than any program seeds its first secrets with. */
const entropyBytes = 64;

/** What an agent is told when its sandbox starts, or continues from its memory. */
type AgentSettings = {
  /** The whole global environment; null: it already has its own. */
  envVars: Record<string, string> | null;
  /** Required from clients of the agent; null: the sandbox is not secured. */
  accessToken: string | null;
  /** For commands that name none (an empty workdir: the user's home directory); null: it already has its own. */
  defaults: { user: string; workdir: string } | null;
  /** Certificates (PEM) to trust in addition to those that are there; null: none. */
  authorities: string | null;
  /**
   * Mixes random bytes into its entropy, so that no other sandbox that continues from the same memory draws the same
   * numbers.
   */
  freshEntropy: boolean;
  /** Gives it a control token of its own, which no other sandbox that begins with the same memory has. */
  freshControlToken?: boolean;
  /** Absent: the name in its files. */
  hostname?: string;
  /** Puts what processes write into the sandbox's log. */
  logOutput: boolean;
  /** See `AgentInit`. */
  filesLater?: boolean;
};

/**
 * Gives the agent its settings. They are in force when this resolves. They carry no time: an agent that continues from
 * memory may have had its last ones by a clock that was ahead, and would ignore these, including its sandbox's token.
 * The caller has waited for earlier settings. Answers the agent's control token from now on. Errors: `internal`.
 */
export function configureAgent(
  namespace: NetworkNamespace,
  controlToken: string,
  settings: AgentSettings,
): Promise<string> {
  const { envVars, accessToken, defaults, authorities, freshEntropy, hostname, logOutput, filesLater } = settings;
  const init: AgentInit = {
    accessToken,
    logOutput,
    ...(envVars && { envVars }),
    ...(filesLater && { filesLater }),
    ...(defaults && { defaultUser: defaults.user, defaultWorkdir: defaults.workdir }),
    ...(hostname !== undefined && { hostname }),
    ...(authorities !== null && { caBundle: authorities }),
    ...(freshEntropy && { entropy: randomBytes(entropyBytes).toString('base64') }),
    ...(settings.freshControlToken && { controlToken: randomHex(32) }),
  };
  return initAgent(namespace, controlToken, init);
}

/** Adds certificates (PEM) to those that a sandbox trusts; its other settings stay. Errors: `internal`. */
export async function trustAuthorities(
  namespace: NetworkNamespace,
  controlToken: string,
  authorities: string,
): Promise<void> {
  await initAgent(namespace, controlToken, { caBundle: authorities });
}
