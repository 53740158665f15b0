import { once } from 'node:events';
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bunPath } from '../../../scripts/setup/npm-packages.mjs';
import { repository } from '../../support/platform.ts';
import { killGroup, start, textOf } from '../../support/process.ts';

/** An API with many sandboxes, served to browsers. */
export type Many = AsyncDisposable & {
  url: string;
  /** A link that signs in once. */
  link: string;
  /** From now on, makes this many changes per second. Answers how many there have been. */
  change(perSecond: number): Promise<number>;
};

/** Starts an API with `count` sandboxes on a node without a machine. */
export async function startMany(count: number): Promise<Many> {
  const child = start([bunPath(repository), join(import.meta.dirname, 'serve-many.ts'), String(count)], {});
  const complaints = textOf(child, 'stderr');
  if (!child.stdout) throw new Error('it has no output');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async <T>() => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`it ended: ${complaints()}`);
    return JSON.parse(value) as T;
  };
  const { socketPath, path } = await answer<{ socketPath: string; path: string }>();
  const open = new Set<Socket>();
  const server = createServer(socket => {
    const inside = connect(socketPath);
    for (const [one, other] of [
      [socket, inside],
      [inside, socket],
    ] as const) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy()).on('close', () => open.delete(one));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  return {
    url,
    link: `${url}${path}`,
    async change(perSecond) {
      child.stdin?.write(`${perSecond}\n`);
      return (await answer<{ changes: number }>()).changes;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of open) socket.destroy();
      const closed = once(child, 'close');
      child.stdin?.end();
      const timer = setTimeout(() => killGroup(child, 'SIGKILL'), 10_000);
      await closed;
      clearTimeout(timer);
    },
  };
}
