import type { BuildStatus } from '../../../protocol/api/template.ts';
import type { Tone } from '../../parts/bits.tsx';

/** The colour of each state of a build. */
export const buildTone: Record<BuildStatus, Tone> = { waiting: 'idle', building: 'warn', ready: 'ok', error: 'danger' };
