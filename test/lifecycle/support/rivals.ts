import { randomOf } from '../../api/random.ts';
import type { TestPlatform } from '../../support/platform.ts';
import type { Operation } from './history.ts';
import { answered } from './storm-client.ts';
import { strike, type Victim } from './victims.ts';

/** Few enough for clients to meet on them. */
const sharedMax = 5;
/** How soon clients ask again while a part is away. */
const awayMs = 30;
/** How much of the platform's log is shown with a failure. */
const logCharactersMax = 8_000;

type Answer = { status: number; body: unknown } | undefined;
type Listed = { sandboxID: string; state: 'running' | 'paused'; transition?: string };

/** Clients that change the same few sandboxes, and record their requests and answers. */
class Rivals {
  readonly operations: Operation[] = [];
  readonly #platform: TestPlatform;
  /** Sandboxes whose creation was answered and whose end was not. */
  readonly #shared: string[] = [];
  /** Everything that was ever named in an answer. */
  readonly #known = new Set<string>();
  #creating = 0;
  over = false;

  constructor(platform: TestPlatform) {
    this.#platform = platform;
  }

  async work(client: number, random: () => number): Promise<void> {
    while (!this.over) {
      const dice = random();
      const sandbox = this.#shared[Math.floor(random() * this.#shared.length)];
      if (sandbox === undefined || (dice < 0.15 && this.#shared.length + this.#creating < sharedMax))
        await this.#create(client);
      else if (dice < 0.35) await this.#change(client, sandbox, 'pause');
      else if (dice < 0.6) await this.#change(client, sandbox, 'connect');
      else if (dice < 0.67) await this.#change(client, sandbox, 'kill');
      else if (dice < 0.85) await this.#look(client, sandbox);
      else await this.#list(client);
    }
  }

  async #create(client: number): Promise<void> {
    const called = now();
    this.#creating++;
    const answer = await this.#ask('POST', '/sandboxes', { templateID: 'base', timeout: 3600 });
    this.#creating--;
    if (answer?.status !== 201) return; // a sandbox whose creation was not answered is met in lists
    const { sandboxID: sandbox } = answer.body as { sandboxID: string };
    this.#known.add(sandbox);
    this.#shared.push(sandbox);
    this.#note({ client, sandbox, kind: 'create', called, told: 'done' });
  }

  async #change(client: number, sandbox: string, kind: 'pause' | 'connect' | 'kill'): Promise<void> {
    const called = now();
    const answer = await this.#request(sandbox, kind);
    const told = toldOf(answer?.status);
    if (told === 'missing' || (kind === 'kill' && told === 'done')) this.#forget(sandbox);
    this.#note({ client, sandbox, kind, called, told });
  }

  #request(sandbox: string, kind: 'pause' | 'connect' | 'kill'): Promise<Answer> {
    const path = `/sandboxes/${sandbox}`;
    if (kind === 'kill') return this.#ask('DELETE', path);
    return this.#ask('POST', `${path}/${kind}`, kind === 'pause' ? { memory: true } : { timeout: 3600 });
  }

  async #look(client: number, sandbox: string): Promise<void> {
    const called = now();
    const answer = await this.#ask('GET', `/sandboxes/${sandbox}`);
    const told = answer?.status === 200 ? seen(answer.body as Listed) : toldOf(answer?.status);
    if (told !== '') this.#note({ client, sandbox, kind: 'look', called, told });
  }

  /** What a list says about the shared sandboxes at the time of the request, and about all others that it shows. */
  async #list(client: number): Promise<void> {
    const called = now();
    const shared = [...this.#shared];
    const answer = await this.#ask('GET', '/v2/sandboxes?state=running,paused&limit=100');
    if (answer?.status !== 200) return;
    const listed = new Map((answer.body as Listed[]).map(one => [one.sandboxID, one]));
    for (const sandbox of new Set([...shared, ...listed.keys()])) {
      const one = listed.get(sandbox);
      this.#note({ client, sandbox, kind: 'look', called, told: one ? seen(one) : 'missing' });
    }
  }

  #forget(sandbox: string): void {
    const at = this.#shared.indexOf(sandbox);
    if (at >= 0) this.#shared.splice(at, 1);
  }

  #note(operation: Omit<Operation, 'returned'>): void {
    this.operations.push({ ...operation, returned: operation.told === '' ? null : now() });
  }

  /** Undefined if there was no answer: its sender was killed. */
  async #ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await answered(
      `${method} ${path}`,
      this.#platform.api(method, path, body).then(
        async response => ({ status: response.status, text: await response.text() }),
        () => undefined,
      ),
    );
    if (answer === undefined || answer.status >= 500) await this.#serves();
    if (answer === undefined) return undefined;
    return { status: answer.status, body: answer.text === '' ? undefined : JSON.parse(answer.text) };
  }

  /**
   * Waits until the platform answers again. Going on would leave a great many operations that may have taken effect,
   * and no checker can try all their orders.
   */
  async #serves(): Promise<void> {
    while (!this.over) {
      const answer = await this.#platform.api('GET', '/v2/sandboxes').catch(() => undefined);
      if (answer?.status === 200) return;
      await Bun.sleep(awayMs);
    }
  }

  /**
   * Their history. A sandbox that appeared only in lists was created by somebody who heard no answer; one that could
   * not appear anywhere is left out.
   */
  history(): Operation[] {
    const unknown = new Set(this.operations.map(({ sandbox }) => sandbox).filter(sandbox => !this.#known.has(sandbox)));
    const created = [...unknown].map(
      sandbox => ({ client: 0, sandbox, kind: 'create', told: '', called: 0, returned: null }) as const,
    );
    return [...created, ...this.operations];
  }
}

/** Microseconds since this process began. */
const now = () => Math.round(performance.now() * 1000);

const seen = ({ state, transition }: Listed) => (transition === undefined ? state : 'changing');

/** The meaning of a status; '' for that of a platform under repair. */
function toldOf(status = 500): Operation['told'] {
  if (status === 201 || status === 204) return 'done';
  if (status === 200) return 'already';
  if (status === 404) return 'missing';
  if (status === 409) return 'conflict';
  if (status >= 500 || status === 429) return '';
  throw new Error(`a status that no client expects: ${status}`);
}

/** What clients did with the same sandboxes, and what was killed meanwhile. */
export type Rivalry = { operations: Operation[]; strikes: Record<string, number> };

/**
 * Clients pause, resume, kill, look at and list the same few sandboxes at once, while processes of the platform are
 * killed: one after about `perStrike` operations each time.
 */
export async function runRivals(
  platform: TestPlatform,
  options: { seed: number; operations: number; perStrike: number; clients: number; victims: readonly Victim[] },
): Promise<Rivalry> {
  const { seed, operations, perStrike, clients, victims } = options;
  const random = randomOf(seed);
  const rivals = new Rivals(platform);
  const strikes: Record<string, number> = {};
  const failures: unknown[] = [];
  const working = Array.from({ length: clients }, (_, client) =>
    rivals.work(client, randomOf(Math.floor(random() * 2 ** 31))).catch((error: unknown) => failures.push(error)),
  );
  const isDone = () => failures.length > 0 || rivals.operations.length >= operations;
  while (!isDone()) {
    const until = rivals.operations.length + perStrike * (0.5 + random());
    while (!isDone() && rivals.operations.length < until) await Bun.sleep(20);
    if (isDone()) break;
    const victim = victims[Math.floor(random() * victims.length)] ?? 'api';
    await strike(platform, victim)
      .then(({ recovered }) => recovered())
      .catch((cause: unknown) => {
        rivals.over = true;
        throw new Error(`after ${victim} was killed: ${platform.log().slice(-logCharactersMax)}`, { cause });
      });
    strikes[victim] = (strikes[victim] ?? 0) + 1;
  }
  rivals.over = true;
  await Promise.all(working);
  if (failures.length > 0) throw failures[0];
  return { operations: rivals.history(), strikes };
}
