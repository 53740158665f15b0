import { hostname as kernelsHostname } from 'node:os';
import { agentVersion, controlTokenTaken, type AgentInit } from '../protocol/agent.ts';
import { AtollError } from '../base/error.ts';
import type { Agent } from './agent.ts';
import { readBounded } from './bounded-body.ts';
import { parseJson } from './connect/envelope.ts';
import { asMessage, booleanField, stringField, stringMapField, type Message } from './connect/message.ts';
import { configureRootfs } from './sandbox/configure-rootfs.ts';

/** Limit of the environment and certificates of a sandbox. */
const initBodyBytesMax = 4 << 20;
const controlTokenPattern = /^[0-9a-f]{64}$/;

/** `POST /init`: takes the platform's settings and applies them before anything else is answered. */
export async function init(
  agent: Pick<Agent, 'store' | 'settings' | 'log' | 'afterAnswer' | 'spawner'>,
  request: Request,
): Promise<Response> {
  const settings = readInit(asMessage(parseJson(await readBounded(request, initBodyBytesMax)), 'the body'));
  const isTaken = agent.store.take(settings);
  if (isTaken) {
    const configure = () => {
      configureRootfs(settings, agent.settings().envVars, agent.log);
      // The platform has set the kernel's host name, except where it can't from outside.
      const { hostname } = settings;
      if (hostname && hostname !== kernelsHostname()) agent.spawner.nameHost(hostname);
    };
    if (settings.filesLater) agent.afterAnswer.later(configure);
    else configure();
  }
  const status = isTaken && settings.controlToken !== undefined ? controlTokenTaken : 204;
  return new Response(null, { status, headers: { 'x-envd-version': agentVersion } });
}

function readInit(body: Message): AgentInit {
  const init: AgentInit = {};
  if (body['envVars'] !== undefined) init.envVars = stringMapField(body, 'envVars');
  if (body['accessToken'] === null) init.accessToken = null;
  for (const name of [
    'accessToken',
    'controlToken',
    'timestamp',
    'defaultUser',
    'defaultWorkdir',
    'caBundle',
    'hostname',
    'entropy',
  ] as const) {
    const value = stringField(body, name);
    if (value !== undefined) init[name] = value;
  }
  for (const name of ['memoryBytes', 'cpuCount'] as const) {
    const value = body[name];
    if (typeof value === 'number' && value > 0) init[name] = value;
  }
  for (const name of ['logOutput', 'filesLater'] as const) {
    const value = booleanField(body, name);
    if (value !== undefined) init[name] = value;
  }
  if (init.timestamp !== undefined && Number.isNaN(Date.parse(init.timestamp)))
    throw new AtollError('invalid', 'timestamp must be a time of RFC 3339');
  if (init.controlToken !== undefined && !controlTokenPattern.test(init.controlToken))
    throw new AtollError('invalid', `controlToken must match ${controlTokenPattern.source}`);
  return init;
}
