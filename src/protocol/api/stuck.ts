import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { sandboxStates } from '../state.ts';
import { dateTime, oneOf } from './primitives.ts';

/** A sandbox whose change of state takes too long. */
export const StuckSandbox = Type.Object(
  {
    sandboxID: Type.String(),
    teamID: Type.String(),
    nodeID: Type.String(),
    state: oneOf(sandboxStates),
    since: dateTime('Seen in this state since then; it may have been so before'),
  },
  { $id: 'StuckSandbox' },
);
export type StuckSandbox = Static<typeof StuckSandbox>;
