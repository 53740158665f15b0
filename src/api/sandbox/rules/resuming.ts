import type { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import type { Kept } from '../../../protocol/node.ts';
import type { SandboxRecord } from '../record.ts';

/** Resumes under way in this process, by sandbox ID. */
export type Resuming = SingleFlight<string, { sandbox: SandboxRecord; from: Kept }>;
