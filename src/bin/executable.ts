import { programOption } from '../base/process/own-program.ts';

// The one executable, compiled or from source: the command line, and every program that the platform starts. Each loads
// only its own part.

const programs: Record<string, () => Promise<unknown>> = {
  node: () => import('./parts/node.ts'),
  api: () => import('./parts/api.ts'),
  edge: () => import('./parts/edge.ts'),
  gate: () => import('./parts/gate.ts'),
  'egress-proxy': () => import('../node/network/egress/proxy/main.ts'),
};

const [, , option, name = ''] = process.argv;
await (option === programOption ? programs[name]?.() : import('./atoll.ts'));
