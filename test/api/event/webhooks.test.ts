import { expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { onEachDatabase } from '../databases.ts';
import { Platform, adminToken, call, until } from '../platform.ts';
import { Receiver, isGenuine } from '../webhook-receiver.ts';

type Delivery = {
  eventId: string;
  state: string;
  attempts: number;
  lastStatus: number | null;
  lastError: string | null;
};

const quick = {
  allowPrivateAddresses: true,
  attemptsMax: 3,
  timeoutMs: 400,
  backoffMs: 20,
  backoffMaxMs: 60,
  pollMs: 20,
};
const allOfSandboxes = ['created', 'updated', 'paused', 'resumed', 'checkpointed', 'forked', 'killed'].map(
  change => `sandbox.lifecycle.${change}`,
);

onEachDatabase(database => {
  const open = (webhooks = {}) => Platform.start({ database, webhooks: { ...quick, ...webhooks } });
  const register = async (platform: Platform, url: string, more = {}) => {
    const answer = await platform.call('POST', '/events/webhooks', {
      name: 'hook',
      url,
      events: allOfSandboxes,
      ...more,
    });
    expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 201 });
    return answer.body as { id: string; signatureSecret?: string };
  };
  const deliveries = async (platform: Platform, id: string, query = '') =>
    (await platform.call('GET', `/events/webhooks/${id}/deliveries?${query}`)).body as Delivery[];

  test('events come signed, in order and once; a secret is shown once and kept sealed', async () => {
    await using platform = await open();
    await using receiver = await Receiver.start();
    const hook = await register(platform, receiver.url);
    const own = await register(platform, receiver.url, {
      signatureSecret: 'a secret of my own',
      events: ['sandbox.lifecycle.killed'],
    });
    const { sandboxID } = await platform.createSandbox({ metadata: { a: 'b' } });
    for (let i = 0; i < 3; i++) await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 100 + i });
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await until(() => receiver.received.length === 6);
    await until(async () => (await deliveries(platform, hook.id)).every(({ state }) => state === 'delivered'));

    const ofHook = receiver.received.filter(({ headers }) => headers['e2b-webhook-id'] === hook.id);
    expect(ofHook.map(({ type }) => type.split('.').at(-1))).toEqual([
      'created',
      'updated',
      'updated',
      'updated',
      'killed',
    ]);
    for (const received of ofHook) {
      expect(isGenuine(hook.signatureSecret ?? '', received)).toBe(true);
      expect(received.headers['webhook-id']).toBe(received.id);
      const plain = createHash('sha256')
        .update(hook.signatureSecret + received.text)
        .digest('base64url');
      expect(received.headers).toMatchObject({
        'e2b-signature': plain,
        'e2b-signature-version': 'v1',
        'content-type': 'application/json',
      });
    }
    const [killed] = receiver.received.filter(({ headers }) => headers['e2b-webhook-id'] === own.id);
    expect(killed && isGenuine('a secret of my own', killed)).toBe(true);
    expect(killed && isGenuine('another secret here', killed)).toBe(false);
    const told = (await platform.call('GET', `/events/sandboxes/${sandboxID}?orderAsc=true`)).body;
    expect(ofHook.map(({ text }) => JSON.parse(text) as unknown)).toEqual(told as unknown[]);

    expect(own.signatureSecret).toBeUndefined();
    const shown = JSON.stringify([
      (await platform.call('GET', '/events/webhooks')).body,
      (await platform.call('GET', `/events/webhooks/${hook.id}`)).body,
    ]);
    const kept = JSON.stringify(await platform.store.db.selectFrom('webhooks').selectAll().execute());
    const audited = JSON.stringify(
      (await call(platform.socketPath, 'GET', '/admin/audit', undefined, { 'x-admin-token': adminToken })).body,
    );
    for (const text of [shown, kept, audited]) {
      for (const secret of [hook.signatureSecret ?? '?', 'a secret of my own']) expect(text).not.toContain(secret);
    }
    expect(audited).not.toContain('token=x');
    expect(audited).not.toContain('/hook');
    expect(audited).toContain(`http://127.0.0.1:${receiver.port}/***`);
  });

  test('a receiver that fails is tried again, later each time and before what follows; then the delivery is dead and can be asked for', async () => {
    await using platform = await open();
    await using receiver = await Receiver.start();
    receiver.answer = (response, _, count) => void response.writeHead(count <= 2 ? 500 : 204).end();
    const hook = await register(platform, receiver.url);
    const { sandboxID } = await platform.createSandbox();
    await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 77 });
    await until(() => receiver.received.length === 4);
    expect(receiver.typesOf(sandboxID)).toEqual(['created', 'created', 'created', 'updated']);
    await until(async () => (await deliveries(platform, hook.id)).every(({ state }) => state === 'delivered'));
    expect((await deliveries(platform, hook.id)).map(({ attempts }) => attempts)).toEqual([1, 3]);

    receiver.answer = response => void response.writeHead(503).end();
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await until(async () => (await deliveries(platform, hook.id, 'state=dead')).length === 1);
    const [dead] = await deliveries(platform, hook.id, 'state=dead');
    expect(dead).toMatchObject({ attempts: 3, lastStatus: 503, lastError: 'The receiver answered 503' });
    expect((await platform.call('GET', `/events/webhooks/${hook.id}`)).body).toMatchObject({ failing: true });

    receiver.answer = response => void response.writeHead(200).end();
    const path = `/events/webhooks/${hook.id}/deliveries/${dead?.eventId}/redeliver`;
    expect((await platform.call('POST', path)).status).toBe(202);
    await until(
      async () =>
        (await deliveries(platform, hook.id, 'state=dead')).length === 0 &&
        (await deliveries(platform, hook.id, 'state=pending')).length === 0,
    );
    expect(receiver.received.at(-1)?.id).toBe(dead?.eventId);
    const isFailing = async () =>
      ((await platform.call('GET', `/events/webhooks/${hook.id}`)).body as { failing: boolean }).failing;
    await until(async () => !(await isFailing()));
  });

  test('a try that the end of the process cut off counts as none', async () => {
    await using platform = await open({ timeoutMs: 60_000 });
    await using receiver = await Receiver.start();
    receiver.answer = () => {};
    const hook = await register(platform, receiver.url);
    await platform.createSandbox();
    for (let starts = 1; starts <= quick.attemptsMax; starts++) {
      await until(() => receiver.received.length === starts);
      await platform.restart();
    }
    receiver.answer = response => void response.writeHead(204).end();
    await until(() => receiver.received.length === quick.attemptsMax + 1);
    await platform.restart();
    await until(async () => (await deliveries(platform, hook.id))[0]?.state === 'delivered');
    expect(await deliveries(platform, hook.id)).toMatchObject([{ attempts: 1, lastStatus: 204 }]);
  });

  test('receivers that stall, redirect, babble or lie are failures within their time, and delay nobody else', async () => {
    await using platform = await open({ attemptsMax: 1000 });
    await using good = await Receiver.start();
    await using liars = await Liars.start(good.url);
    const hooks = new Map<string, string>();
    for (const [name, url] of liars.urls) hooks.set(name, (await register(platform, url)).id);
    await register(platform, good.url);
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) ids.push((await platform.createSandbox()).sandboxID);
    // On a busy machine its answer may also come too late: then it gets the event again.
    await until(() => ids.every(id => good.typesOf(id).length >= 1), 30_000);
    const expected: Record<string, RegExp> = {
      silent: /within 400 ms/,
      drip: /within 400 ms|can't be reached/,
      redirect: /^The receiver answered 302$/,
      'endless head': /within 400 ms|can't be reached/,
      nonsense: /can't be reached: it does not speak HTTP/,
      closes: /can't be reached: it closed the connection without an answer/,
      refuses: /can't be reached: nothing listens there/,
    };
    // On a busy machine an answer may miss its time, and arrive at a later try.
    for (const [name, error] of Object.entries(expected)) {
      await until(
        async () =>
          (await deliveries(platform, hooks.get(name) ?? '')).some(({ lastError }) => error.test(lastError ?? '')),
        30_000,
      );
    }
    await until(
      async () =>
        (await deliveries(platform, hooks.get('slow body') ?? '')).every(({ state }) => state === 'delivered'),
      30_000,
    );
    // If the redirect had been followed, the good one would have it twice.
    expect(good.received.filter(({ headers }) => headers['e2b-webhook-id'] === hooks.get('redirect'))).toEqual([]);
  });

  test('no request goes to an address of the machine or of a private network, by whatever name', async () => {
    await using platform = await open({ allowPrivateAddresses: false, attemptsMax: 1 });
    await using receiver = await Receiver.start();
    const { port } = receiver;
    const forbidden = [
      '127.0.0.1',
      '127.1',
      '0x7f000001',
      '2130706433',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '[fd00::1]',
      '[2002:7f00:1::]',
      'localhost',
      'x.localhost',
      '0.0.0.0',
      '[::]',
    ];
    for (const host of forbidden) {
      const answer = await platform.call('POST', '/events/webhooks', {
        name: 'x',
        url: `http://${host}:${port}/`,
        events: allOfSandboxes,
      });
      expect({ host, status: answer.status }).toEqual({ host, status: 400 });
    }
    for (const url of [
      'ftp://a.example/',
      'https://user:word@a.example/',
      'nonsense',
      'file:///etc/passwd',
      'https://',
    ]) {
      expect((await platform.call('POST', '/events/webhooks', { name: 'x', url, events: allOfSandboxes })).status).toBe(
        400,
      );
    }
    // A name that was fine at registration, but is one of this machine at delivery.
    const hook = await register(platform, `http://receiver.example:${port}/`);
    await platform.store.db
      .updateTable('webhooks')
      .set({ url: `http://localhost:${port}/` })
      .where('webhook_id', '=', hook.id)
      .execute();
    await platform.createSandbox();
    await until(async () => (await deliveries(platform, hook.id, 'state=dead')).length === 1);
    expect((await deliveries(platform, hook.id))[0]?.lastError).toContain('private networks');
    expect(receiver.received).toEqual([]);
  });

  test('a webhook that is switched off gets nothing, a changed one what it asks for, a deleted one nothing; a team has a number of them', async () => {
    await using platform = await open();
    await using receiver = await Receiver.start();
    const hook = await register(platform, receiver.url, { enabled: false });
    const { sandboxID } = await platform.createSandbox();
    const changed = await platform.call('PATCH', `/events/webhooks/${hook.id}`, {
      enabled: true,
      events: ['sandbox.lifecycle.paused', 'sandbox.lifecycle.killed'],
    });
    expect({ status: changed.status, body: changed.body }).toMatchObject({
      status: 200,
      body: { enabled: true, events: ['sandbox.lifecycle.paused', 'sandbox.lifecycle.killed'], name: 'hook' },
    });
    await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 50 });
    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    await until(() => receiver.received.length === 1);
    expect(receiver.typesOf(sandboxID)).toEqual(['paused']);
    expect((await platform.call('DELETE', `/events/webhooks/${hook.id}`)).status).toBe(200);
    expect((await platform.call('DELETE', `/events/webhooks/${hook.id}`)).status).toBe(404);
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    expect(await platform.store.db.selectFrom('webhook_deliveries').selectAll().execute()).toEqual([]);
    expect((await platform.call('PATCH', `/events/webhooks/${hook.id}`, { name: 'x' })).status).toBe(404);

    for (let i = 0; i < 20; i++) await register(platform, receiver.url);
    const refused = await platform.call('POST', '/events/webhooks', {
      name: 'x',
      url: receiver.url,
      events: allOfSandboxes,
    });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, null]);
    for (const body of [
      {},
      { name: 'x', url: receiver.url, events: [] },
      { name: 'x', url: receiver.url, events: ['nonsense'] },
      { name: 'x', url: receiver.url, events: allOfSandboxes, signatureSecret: 'short' },
    ]) {
      expect((await platform.call('POST', '/events/webhooks', body)).status).toBe(400);
    }
  });
});

/** Servers that answer every request wrongly, on one port, by path. */
class Liars implements AsyncDisposable {
  readonly urls: Map<string, string>;
  readonly #server;
  private constructor(server: ReturnType<typeof createServer>, port: number, names: string[], refusing: number) {
    this.#server = server;
    this.urls = new Map([
      ...names.map(name => [name, `http://127.0.0.1:${port}/${name.replace(' ', '-')}`] as const),
      ['refuses', `http://127.0.0.1:${refusing}/`],
    ]);
  }

  static async start(elsewhere: string): Promise<Liars> {
    const answers: Record<
      string,
      (write: (text: string) => void, end: () => void, every: (work: () => void) => void) => void
    > = {
      silent: () => {},
      drip: (write, _, every) => every(() => write('H')),
      redirect: (write, end) => (
        write(`HTTP/1.1 302 Found\r\nLocation: ${elsewhere}\r\nContent-Length: 0\r\n\r\n`),
        end()
      ),
      'endless head': (write, _, every) => (
        write('HTTP/1.1 200 OK\r\n'),
        every(() => write(`X: ${'y'.repeat(4000)}\r\n`))
      ),
      nonsense: (write, end) => (write('220 mail.example ESMTP\r\n\r\n'), end()),
      closes: (_, end) => end(),
      'slow body': (write, _, every) => (
        write('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n'),
        every(() => write('.'))
      ),
    };
    const server = createServer(socket => {
      socket.on('error', () => {});
      socket.once('data', chunk => {
        const name = / \/([a-z-]+) /.exec(String(chunk))?.[1]?.replace('-', ' ') ?? '';
        const every = (work: () => void) => {
          const timer = setInterval(work, 5);
          socket.once('close', () => clearInterval(timer));
        };
        answers[name]?.(
          text => void socket.write(text),
          () => void socket.end(),
          every,
        );
      });
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const closed = createServer();
    await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve));
    const refusing = (closed.address() as AddressInfo).port;
    await new Promise<void>(resolve => void closed.close(() => resolve()));
    return new Liars(server, (server.address() as AddressInfo).port, Object.keys(answers), refusing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}
