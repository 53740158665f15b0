import { messageOf } from '../../../base/error.ts';
import { webhookSecret } from '../rules/webhooks.ts';
import { startLoop } from '../../../base/concurrency/loop.ts';
import type { Loop } from '../../../base/concurrency/loop.ts';
import {
  claimDelivery,
  dueHeads,
  releaseClaims,
  returnDelivery,
  settleDelivery,
  webhooksDue,
} from '../store/deliveries.ts';
import type { ClaimedDelivery } from '../store/deliveries.ts';
import { attemptDelivery } from './attempt.ts';
import { Places } from './places.ts';
import { backoffOf } from './settings.ts';
import type { WebhookRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { WebhookSettings } from './settings.ts';

/** What deliveries need: the queue in the database, and the seed that encrypts the signing secrets. */
type DispatcherDeps = { db: Db; clock: Clock; log: Log; seed: Uint8Array; webhooks: WebhookSettings };

/**
 * Delivers events to webhooks, at least once, those of one subject in order. A receiver that fails or stalls has few
 * places, and no team has more than it leaves to others.
 */
export class WebhookDispatcher {
  readonly #deps: DispatcherDeps;
  readonly #loop: Loop;
  readonly #stopping = new AbortController();
  readonly #places = new Places();
  readonly #work = new Set<Promise<void>>();

  private constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#loop = startLoop({
      name: 'webhooks',
      intervalMs: () => deps.webhooks.pollMs,
      run: () => this.#round(),
      log: deps.log,
    });
  }

  static async start(deps: DispatcherDeps): Promise<WebhookDispatcher> {
    // Without a shared database there is no other process: claims belong to one that has died.
    if (kindOf(deps.db) === 'sqlite') await releaseClaims(deps.db, deps.clock());
    return new WebhookDispatcher(deps);
  }

  /**
   * Gives up what is under way; that is tried again after the next start or by another process, and does not count as
   * an attempt.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
    await Promise.all(this.#work);
  }

  async #round(): Promise<void> {
    const { db, clock } = this.#deps;
    /** With those of its deliveries that may begin, once they were looked for. */
    const waiting = new Map<WebhookRecord, number[] | null>();
    for (const webhook of await webhooksDue(db, clock())) waiting.set(webhook, null);
    while (!this.#stopping.signal.aborted) {
      const webhook = this.#places.next(waiting.keys());
      if (webhook === undefined) return;
      const heads =
        waiting.get(webhook) ?? (await dueHeads(db, webhook.webhookId, clock(), this.#places.roomFor(webhook)));
      const sequence = heads.shift();
      if (sequence === undefined) {
        waiting.delete(webhook);
      } else {
        waiting.set(webhook, heads);
        await this.#begin(webhook, sequence);
      }
    }
  }

  async #begin(webhook: WebhookRecord, sequence: number): Promise<void> {
    const { db, clock, webhooks } = this.#deps;
    const nowUs = clock();
    const claimed = await claimDelivery(
      db,
      { webhookId: webhook.webhookId, sequence },
      nowUs,
      nowUs + (webhooks.timeoutMs + webhooks.claimMarginMs) * 1000,
    );
    if (!claimed) return;
    const giveBack = this.#places.take(webhook);
    const work = this.#deliver(webhook, claimed)
      // Not recorded: it is tried again when the claim has expired.
      .catch(error =>
        this.#deps.log.error('the outcome of a delivery could not be kept', {
          webhookId: webhook.webhookId,
          error: messageOf(error),
        }),
      )
      .finally(() => {
        giveBack();
        this.#work.delete(work);
        this.#loop.wake();
      });
    this.#work.add(work);
  }

  async #deliver(webhook: WebhookRecord, delivery: ClaimedDelivery): Promise<void> {
    const { db, clock, webhooks: settings, log } = this.#deps;
    const { ok, status, error } = await attemptDelivery(
      settings,
      { url: webhook.url, secret: webhookSecret(this.#deps.seed, webhook) },
      delivery,
      this.#stopping.signal,
    );
    const nowUs = clock();
    // An attempt that this process itself cut off says nothing about the receiver.
    if (!ok && this.#stopping.signal.aborted) return returnDelivery(db, delivery, nowUs);
    const isLast = delivery.attempts >= settings.attemptsMax;
    if (!ok && isLast)
      log.warn('a delivery was given up', { webhookId: webhook.webhookId, eventId: delivery.eventId, error });
    await settleDelivery(db, delivery, {
      state: ok ? 'delivered' : isLast ? 'dead' : 'pending',
      status,
      error,
      dueAtUs: ok || isLast ? nowUs : nowUs + backoffOf(settings, delivery.attempts, Math.random()) * 1000,
      nowUs,
    });
  }
}
