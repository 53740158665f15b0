import { agentPort } from '../../../src/protocol/agent.ts';
import type { TestPlatform } from '../../support/platform.ts';

const conflictPauseMs = 200;
const answerMs = 90_000;

/** Whatever is killed: nobody waits longer for an answer or its failure. */
export async function answered<T>(what: string, answer: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer in ${answerMs} ms: ${what}`)), answerMs);
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** What was asked of each sandbox, and answered. */
class Histories {
  readonly #lines: string[] = [];

  note(id: string, what: string): void {
    this.#lines.push(`${new Date().toISOString()} ${id} ${what}`);
  }

  of(id: string): string {
    return this.#lines.filter(line => line.includes(id)).join('\n');
  }
}

/** The requests of a storm's clients to a platform whose processes are being killed. */
export class StormClient {
  readonly platform: TestPlatform;
  readonly histories = new Histories();
  answered = 0;
  /** Sandboxes that may exist unknown to anybody: those whose answer a crash cut off. */
  unknownMax = 0;
  over = false;

  constructor(platform: TestPlatform) {
    this.platform = platform;
  }

  /**
   * One operation; undefined if a strike cut its answer off. While the sandbox is still being repaired after a strike,
   * it asks again.
   */
  async ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown } | undefined> {
    for (;;) {
      const answer = await answered(
        `${method} ${path}`,
        this.platform.api(method, path, body).then(
          async response => ({ status: response.status, text: await response.text() }),
          () => undefined,
        ),
      );
      this.histories.note(path, `${method} ${path} ${JSON.stringify(body)}: ${answer?.status} ${answer?.text}`);
      // Survivors answer for what was killed: the request may nevertheless have been carried out.
      if (answer === undefined || (answer.status >= 400 && this.over)) return undefined;
      if (answer.status === 409) {
        // A window for whatever is under way.
        await Bun.sleep(conflictPauseMs);
        continue;
      }
      this.answered++;
      return { status: answer.status, body: answer.text === '' ? undefined : JSON.parse(answer.text) };
    }
  }

  agent(id: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(agentPort), ...init.headers };
    return answered(`${path} of ${id}`, fetch(`${this.platform.ready.url}${path}`, { ...init, headers }));
  }

  async run(id: string, command: string): Promise<string> {
    const message = Buffer.from(JSON.stringify({ process: { cmd: '/bin/sh', args: ['-c', command] }, stdin: false }));
    const envelope = Buffer.concat([Buffer.alloc(5), message]);
    envelope.writeUInt32BE(message.length, 1);
    const answer = await this.agent(id, '/process.Process/Start', {
      method: 'POST',
      headers: { 'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1' },
      body: envelope,
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    let output = '';
    for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
      const part = JSON.parse(bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1)).toString()) as {
        event?: { data?: { stdout?: string } };
      };
      output += Buffer.from(part.event?.data?.stdout ?? '', 'base64').toString();
    }
    return output;
  }
}
