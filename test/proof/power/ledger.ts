import type { ConnectionOpts } from 'e2b';
import type { TestPlatform } from '../../support/platform.ts';

/** Where a fact is looked for: a platform that has started after the power came back. */
export type Looker = { platform: TestPlatform; connection: ConnectionOpts };
type Look = (looker: Looker) => Promise<void>;

/** Something that was answered: it holds from then on, until a client asks for something else. */
export type Fact = {
  what: string;
  /** Bytes of the disk's log at the answer. */
  since: number;
  /** Bytes of the log when the client asked for something else. */
  until: number;
  /** Throws where it does not hold. */
  look: Look;
  /** Looks at what takes longer, and may change things. */
  lookInside?: Look;
};

/** Everything that clients were told, and when. */
export class Ledger {
  readonly facts: Fact[] = [];
  readonly #loggedBytes: () => number;

  constructor(loggedBytes: () => number) {
    this.#loggedBytes = loggedBytes;
  }

  /** A client was told this. The answer is called before anybody asks for something that changes it. */
  told(what: string, look: Look, lookInside?: Look): () => void {
    const fact: Fact = { what, since: this.#loggedBytes(), until: Infinity, look, ...(lookInside && { lookInside }) };
    this.facts.push(fact);
    return () => {
      fact.until = this.#loggedBytes();
    };
  }

  /** What must hold of a disk that has everything of the log up to here that was flushed. */
  inForce(end: number): Fact[] {
    return this.facts.filter(({ since, until }) => since <= end && end < until);
  }
}

/** A client of a platform. */
export function lookerOf(platform: TestPlatform): Looker {
  const { apiKey, url, domain } = platform.ready;
  // For this the SDK has no option.
  process.env['E2B_VOLUME_API_URL'] = url;
  return { platform, connection: { apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs: 120_000 } };
}
