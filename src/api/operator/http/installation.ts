import { AtollError } from '../../../base/error.ts';
import { formatTime } from '../../../base/time.ts';
import type { Clock } from '../../../base/clock.ts';
import { Examination, ShownSettings } from '../../../protocol/api/installation.ts';
import type { HostFinding } from '../../../protocol/doctor.ts';
import { route } from '../../http/route.ts';

/** `GET /admin/doctor` */
export const examineRoute = route({
  operationId: 'adminExamine',
  method: 'GET',
  path: '/admin/doctor',
  summary: 'Examine the machine that answers, as `atoll doctor` does; takes some seconds and changes nothing',
  auth: 'admin',
  noStore: true,
  responses: { 200: { description: 'What was found', schema: Examination } },
  errors: [501],
  async handle({ examine, clock }: { examine: (() => Promise<HostFinding[]>) | null; clock: Clock }) {
    if (!examine) throw new AtollError('unimplemented', 'Nothing here can examine the machine');
    const findings = await examine();
    return { status: 200, body: { examinedAt: formatTime(clock()), findings } };
  },
});

/** `GET /admin/settings` */
export const listSettingsRoute = route({
  operationId: 'adminListSettings',
  method: 'GET',
  path: '/admin/settings',
  summary: 'List the settings that the process which answers was started with, and where each comes from',
  auth: 'admin',
  responses: { 200: { description: 'The settings; of secrets, that they are set', schema: ShownSettings } },
  async handle({ shownSettings }: { shownSettings: ShownSettings }) {
    return { status: 200, body: shownSettings };
  },
});
