import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, nullable, oneOf } from './primitives.ts';

const HostFinding = Type.Object(
  {
    name: Type.String({ description: 'Short and stable: programs select by it' }),
    status: oneOf(['ok', 'limited', 'missing']),
    detail: Type.String({ description: 'What was seen' }),
    needed: Type.Boolean({ description: 'No sandbox can run without it' }),
    remedy: Type.Optional(Type.String({ description: 'What to do, where something is to be done' })),
  },
  { $id: 'HostFinding' },
);

/** Answer of GET /admin/doctor. */
export const Examination = Type.Object(
  { examinedAt: dateTime(), findings: Type.Array(HostFinding) },
  { $id: 'Examination' },
);
export type Examination = Static<typeof Examination>;

const ShownSetting = Type.Object(
  {
    name: Type.String({ description: 'The variable' }),
    value: nullable(Type.String({ description: '`(hidden)` of a secret' })),
    source: oneOf(['environment', 'settings file', 'default']),
  },
  { $id: 'ShownSetting' },
);

/** Answer of GET /admin/settings. */
export const ShownSettings = Type.Object(
  { file: Type.String({ description: 'The settings file' }), settings: Type.Array(ShownSetting) },
  { $id: 'ShownSettings' },
);
export type ShownSettings = Static<typeof ShownSettings>;
