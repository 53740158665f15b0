import type { ConnectionOpts } from 'e2b';
import type { TestPlatform } from '../../support/platform.ts';

/** Where a fact is checked: a platform that has started after the power came back. */
export type Looker = { platform: TestPlatform; connection: ConnectionOpts };
type Look = (looker: Looker) => Promise<void>;

/** Something that was answered: it holds from then on, until a client requests something else. */
export type Fact = {
  what: string;
  /** Bytes of the disk's log at the time of the answer. */
  since: number;
  /** Bytes of the log when the client requested something else. */
  until: number;
  /** Throws if it does not hold. */
  look: Look;
  /** Checks that take longer, and may change things. */
  lookInside?: Look;
};

/** Everything that clients were told, and when. */
export class Ledger {
  readonly facts: Fact[] = [];
  readonly #loggedBytes: () => number;

  constructor(loggedBytes: () => number) {
    this.#loggedBytes = loggedBytes;
  }

  /** Records what a client was told. Call the returned function before requesting something that changes it. */
  told(what: string, look: Look, lookInside?: Look): () => void {
    const fact: Fact = { what, since: this.#loggedBytes(), until: Infinity, look, ...(lookInside && { lookInside }) };
    this.facts.push(fact);
    return () => {
      fact.until = this.#loggedBytes();
    };
  }

  /** What must hold for a disk with everything in the log up to here that was flushed. */
  inForce(end: number): Fact[] {
    return this.facts.filter(({ since, until }) => since <= end && end < until);
  }
}

/** Makes a client of a platform. */
export function lookerOf(platform: TestPlatform): Looker {
  const { apiKey, url, domain } = platform.ready;
  // The SDK has no option for this.
  process.env['E2B_VOLUME_API_URL'] = url;
  return { platform, connection: { apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs: 120_000 } };
}
