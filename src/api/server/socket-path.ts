import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { AtollError } from '../../base/error.ts';

/**
 * Makes a unix socket's path free to listen on: a killed process leaves its socket file behind. Throws `conflict` when
 * somebody still answers on it.
 */
export async function freeSocketPath(path: string): Promise<void> {
  if (await isAnswered(path))
    throw new AtollError('conflict', `Another process listens on ${path}: is the platform running already?`);
  rmSync(path, { force: true });
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path);
    const answer = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}
