import { randomBytes } from 'node:crypto';
import { randomHex } from '../../../base/crypto/secret.ts';
import type { AgentInit } from '../../../protocol/agent.ts';
import { initAgent } from '../../agent-client/call.ts';
import type { NetworkNamespace } from '../../native/netns.ts';

/** More than any program draws its first secrets from. */
const entropyBytes = 64;

/** What an agent is told when its sandbox starts, or goes on from its memory. */
type AgentSettings = {
  /** The whole global environment; null: it has its own already. */
  envVars: Record<string, string> | null;
  /** Required from clients of the agent; null: the sandbox is not secured. */
  accessToken: string | null;
  /** For commands that name none (an empty workdir: the user's home directory); null: it has its own already. */
  defaults: { user: string; workdir: string } | null;
  /** Certificates (PEM) that are trusted beside those that are there; null: no others. */
  authorities: string | null;
  /** Mixes random bytes into its entropy: nobody else who goes on from the same memory draws the same numbers then. */
  freshEntropy: boolean;
  /** Gives it a control token of its own, which nobody else who begins with the same memory has. */
  freshControlToken?: boolean;
  /** Absent: the name that its files say. */
  hostname?: string;
  /** What processes write is put into the sandbox's log. */
  logOutput: boolean;
  /** See `AgentInit`. */
  filesLater?: boolean;
};

/**
 * Gives the agent its settings. They are in force when this resolves. They say no time of theirs: an agent that goes
 * on from memory may have had its last ones by a clock that was ahead, and would pass over these, its sandbox's token
 * among them. Whoever calls has waited for the ones before. Answers the agent's control token from now on. Errors:
 * `internal`.
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

/** Adds certificates (PEM) to what a sandbox trusts; its other settings stay. Errors: `internal`. */
export async function trustAuthorities(
  namespace: NetworkNamespace,
  controlToken: string,
  authorities: string,
): Promise<void> {
  await initAgent(namespace, controlToken, { caBundle: authorities });
}
