import type { WebhookRecord } from '../record.ts';

/**
 * Deliveries under way at a time: of one webhook that takes them, of one that failed last, of all that failed, of all
 * together; and how many of these places are for teams that have none under way.
 */
const most = { ofWebhook: 4, ofFailing: 1, allFailing: 64, all: 256, forIdleTeams: 64 };

type Place = Pick<WebhookRecord, 'webhookId' | 'teamId' | 'failing'>;

/**
 * Who has a delivery under way. How long a receiver takes is its own choice, so no team may have more places than are
 * still free: `n` teams leave an n-plus-first part of them to others. A free place goes to the team with the fewest.
 */
export class Places {
  #taken = 0;
  #ofFailing = 0;
  readonly #ofTeam = new Map<string, number>();
  readonly #ofWebhook = new Map<string, number>();

  /** How many more deliveries of this webhook may begin. */
  roomFor({ webhookId, teamId, failing }: Place): number {
    const own = this.#ofTeam.get(teamId) ?? 0;
    const free = most.all - this.#taken;
    const common = free - most.forIdleTeams;
    if (own >= common && (own > 0 || free === 0)) return 0;
    const ofWebhook = (failing ? most.ofFailing : most.ofWebhook) - (this.#ofWebhook.get(webhookId) ?? 0);
    return Math.max(0, Math.min(ofWebhook, failing ? most.allFailing - this.#ofFailing : free));
  }

  /** The webhook whose turn it is: there is room for it, and its team has the fewest places. */
  next<Waiting extends Place>(waiting: Iterable<Waiting>): Waiting | undefined {
    let first: Waiting | undefined;
    for (const webhook of waiting)
      if (this.roomFor(webhook) > 0 && (first === undefined || this.#isBefore(webhook, first))) first = webhook;
    return first;
  }

  /** Takes a place; the answer gives it back. */
  take({ webhookId, teamId, failing }: Place): () => void {
    const count = (by: 1 | -1) => {
      this.#taken += by;
      if (failing) this.#ofFailing += by;
      add(this.#ofTeam, teamId, by);
      add(this.#ofWebhook, webhookId, by);
    };
    count(1);
    return () => count(-1);
  }

  #isBefore(one: Place, other: Place): boolean {
    const byTeam = (this.#ofTeam.get(one.teamId) ?? 0) - (this.#ofTeam.get(other.teamId) ?? 0);
    if (byTeam !== 0) return byTeam < 0;
    return (this.#ofWebhook.get(one.webhookId) ?? 0) < (this.#ofWebhook.get(other.webhookId) ?? 0);
  }
}

function add(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
