/** How webhooks are delivered. */
export type WebhookSettings = {
  /** Receivers on this machine and in private networks are reached too. */
  allowPrivateAddresses: boolean;
  /** Tries of one delivery; then it is dead until somebody asks for it again. */
  attemptsMax: number;
  /** Time for one try: resolving, connecting, sending, and the head of the answer. */
  timeoutMs: number;
  /** Beyond the timeout of a try, until another process may think that the one which began it is dead. */
  claimMarginMs: number;
  /**
   * Wait after the first failed try, ms; each further one waits `backoffFactor` times as long, up to `backoffMaxMs`.
   */
  backoffMs: number;
  backoffFactor: number;
  backoffMaxMs: number;
  /** How often is looked for what is due, ms. */
  pollMs: number;
};

/** Ten tries over about three and a half hours. */
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
 * The wait before the next try, ms, after `attempts` that failed. A quarter of it is chance, so that receivers are not
 * hit in waves.
 */
export function backoffOf(settings: WebhookSettings, attempts: number, random: number): number {
  const whole = Math.min(settings.backoffMs * settings.backoffFactor ** (attempts - 1), settings.backoffMaxMs);
  return Math.round(whole * (1 - random / 4));
}
