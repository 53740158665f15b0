import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Received = {
  id: string;
  subject: string;
  type: string;
  headers: IncomingMessage['headers'];
  text: string;
  atMs: number;
};

/** A server that webhooks are sent to. `answer` decides its response to each request; by default it accepts all. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  answer: (response: ServerResponse, request: Received, count: number) => void = response =>
    void response.writeHead(204).end();
  readonly #server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body = JSON.parse(text) as { id: string; type: string; subject: { kind: string; id: string } };
    const received = {
      id: body.id,
      subject: body.subject.id,
      type: body.type,
      headers: request.headers,
      text,
      atMs: performance.now(),
    };
    this.received.push(received);
    this.answer(response, received, this.received.length);
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>(resolve => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook?token=x`;
  }

  /** The types received for one subject, in order. */
  typesOf(subject: string): string[] {
    return this.received
      .filter(received => received.subject === subject)
      .map(({ type }) => type.split('.').at(-1) ?? '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>(resolve => void this.#server.close(() => resolve()));
  }
}

/** What a receiver does that follows the Standard Webhooks specification. */
export function isGenuine(secret: string, { headers, text }: Received): boolean {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`;
  const fresh = Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) < 300;
  return fresh && headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}
