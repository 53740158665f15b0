import { AtollError } from '../../base/error.ts';

/** Streams of one team that one process serves at a time: each looks for news several times a second. */
export const streamsPerTeamMax = 200;

/** Counts the open streams. */
export class OpenStreams {
  readonly #byTeam = new Map<string, number>();

  /** Counts one more stream of the team until it is disposed of. Throws `rate_limited`. */
  open(teamId: string): Disposable {
    const count = this.#byTeam.get(teamId) ?? 0;
    if (count >= streamsPerTeamMax) {
      const message = `The team follows ${streamsPerTeamMax} streams already: close some of them`;
      throw new AtollError('rate_limited', message, { retryAfterSeconds: 1 });
    }
    this.#byTeam.set(teamId, count + 1);
    let isOpen = true;
    return {
      [Symbol.dispose]: () => {
        if (!isOpen) return;
        isOpen = false;
        const left = (this.#byTeam.get(teamId) ?? 1) - 1;
        if (left > 0) this.#byTeam.set(teamId, left);
        else this.#byTeam.delete(teamId);
      },
    };
  }
}
