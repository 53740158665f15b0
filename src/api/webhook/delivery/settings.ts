/** How webhooks are delivered. */
export type WebhookSettings = {
  /** Receivers on this machine and in private networks may be reached too. */
  allowPrivateAddresses: boolean;
  /** Attempts of one delivery; after that it is dead until somebody requests it again. */
  attemptsMax: number;
  /** Time for one attempt: resolving, connecting, sending, and the head of the answer. */
  timeoutMs: number;
  /** Added to the timeout of an attempt, until another process may assume that the one which began it is dead. */
  claimMarginMs: number;
  /**
   * Wait after the first failed attempt, ms; each further wait is `backoffFactor` times as long, up to `backoffMaxMs`.
   */
  backoffMs: number;
  backoffFactor: number;
  backoffMaxMs: number;
  /** How often it checks for due deliveries, ms. */
  pollMs: number;
};

/** Ten attempts over about three and a half hours. */
export const defaultWebhookSettings: WebhookSettings = {
  allowPrivateAddresses: false,
  attemptsMax: 10,
  timeoutMs: 10_000,
  claimMarginMs: 5_000,
  backoffMs: 5_000,
  backoffFactor: 3,
  backoffMaxMs: 3_600_000,
  pollMs: 500,
};

/**
 * The wait before the next attempt, ms, after `attempts` failures. A quarter of it is random, so that receivers are not
 * hit in waves.
 */
export function backoffOf(settings: WebhookSettings, attempts: number, random: number): number {
  const whole = Math.min(settings.backoffMs * settings.backoffFactor ** (attempts - 1), settings.backoffMaxMs);
  return Math.round(whole * (1 - random / 4));
}
