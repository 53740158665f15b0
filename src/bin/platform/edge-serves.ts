import { unlessAborted } from '../../base/concurrency/unless-aborted.ts';
import { AtollError } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { watchCertificate } from '../../supervisor/certificates/watch.ts';
import type { Part } from '../../supervisor/part.ts';
import type { EdgeAbout } from '../../protocol/wire/part-about.ts';
import type { EdgeUpdate } from '../parts/edge.ts';
import { portError } from '../preflight/ports.ts';
import type { Settings } from '../settings/settings.ts';
import type { Certificate } from './certificate.ts';

/** Waits until a part serves. Errors: those of its start, and `canceled` if the whole start is given up. */
export const served = <About>(part: Part<About>, signal: AbortSignal): Promise<About> =>
  unlessAborted(part.ready, signal, 'The start was interrupted.');

/**
 * Waits until the edge serves, and passes it each later certificate. Errors: as `served`, and which port can't be
 * opened.
 */
export async function edgeServes(
  started: AsyncDisposableStack,
  edge: Part<EdgeAbout>,
  certificate: Certificate | undefined,
  { settings, log, signal }: { settings: Settings; log: Log; signal: AbortSignal },
): Promise<EdgeAbout & { authorityFile: string | null }> {
  if (certificate)
    started.use(
      watchCertificate(certificate.source, pair => edge.update({ certificate: pair } satisfies EdgeUpdate), log),
    );
  const about = await served(edge, signal).catch((error: unknown) => {
    throw error instanceof AtollError && error.code !== 'internal' ? error : portError(settings, error);
  });
  return { ...about, authorityFile: certificate?.authorityFile ?? null };
}
