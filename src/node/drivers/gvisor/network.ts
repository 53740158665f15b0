import { closeSync, openSync } from 'node:fs';
import { accessAddress, relayPort } from '../../layout.ts';
import { errno, libc } from '../../native/libc.ts';
import { openTcpSockets, type TcpSockets } from '../../native/tcp-sockets.ts';
import { connect4, netlinkIn, type Connecting, type NetworkNamespace } from '../../native/netns.ts';

const EAGAIN = 11;
const MSG_DONTWAIT = 0x40;
/** The relay's answer once it has connected. */
const connectedByte = 0;

/**
 * The way into a sandbox whose network stack is gVisor's: a link that begins in the network namespace of the process
 * `outsidePid`. `sandboxPid` holds the other ends of all its links.
 */
export function openAccess(outsidePid: number, sandboxPid: number): NetworkNamespace {
  const outside = openSync(`/proc/${outsidePid}/ns/net`, 'r');
  const sandbox = openSync(`/proc/${sandboxPid}/ns/net`, 'r');
  return {
    // Most services listen on all addresses, and are reached without a detour.
    targets: ['outside', 'relay'],
    connect(target, port) {
      if (target === 'outside') return connect4(outside, accessAddress.inside, port);
      return throughRelay(connect4(outside, accessAddress.inside, relayPort), port);
    },
    netlinkSocket: protocol => netlinkIn(sandbox, protocol),
    closeSocket: fd => void libc.close(fd),
    close() {
      // Their other ends vanished silently: a reader would wait for ever.
      void closeAll(openTcpSockets({ netlinkSocket: protocol => netlinkIn(outside, protocol) }));
      closeSync(outside);
      closeSync(sandbox);
    },
  };
}

/** The namespace may be removed meanwhile: what is open of it stays until this is done. */
async function closeAll(sockets: TcpSockets): Promise<void> {
  try {
    for await (const part of sockets.list()) for (const socket of part) sockets.destroy(socket);
  } catch {
    // Nobody reads from them any more, or soon nobody will.
  } finally {
    sockets.close();
  }
}

/** Asks the relay for a port as soon as the relay is connected; its answer says whether that worked. */
function throughRelay({ fd, progress }: Connecting, port: number): Connecting {
  const question = Uint8Array.of(port >> 8, port & 255);
  const answer = new Uint8Array(1);
  let asked = false;
  return {
    fd,
    progress() {
      if (!asked) {
        const state = progress();
        if (state !== 'connected') return state;
        asked = true;
        // Two bytes on a new connection always fit.
        if (Number(libc.send(fd, question, question.length, MSG_DONTWAIT)) !== question.length) return 'refused';
      }
      const received = Number(libc.recv(fd, answer, 1, MSG_DONTWAIT));
      if (received < 0 && errno() === EAGAIN) return 'pending';
      return received === 1 && answer[0] === connectedByte ? 'connected' : 'refused';
    },
  };
}
