import { renameSync } from 'node:fs';
import { lookThrough, rewriteImage } from './images/image-file.ts';
import { messageIn, numberIn, numbersIn, withMessages, withNumbers, type Field } from './images/protobuf.ts';

/** Field of `file_entry` in CRIU's images/fdinfo.proto that holds an internet socket. */
const internetSocket = 4;
/** Fields of `inet_sk_entry` in CRIU's images/sk-inet.proto. */
const socket = {
  protocol: 5,
  state: 6,
  localPort: 7,
  peerPort: 8,
  localAddress: 11,
  peerAddress: 12,
  shutdown: 19,
} as const;

const IPPROTO_TCP = 6;
/** States of TCP sockets, include/net/tcp_states.h. */
const established = 1;
const closed = 7;
/** Both directions, `sk_shutdown` in CRIU's images/sk-opts.proto. */
const shutBoth = 3;

/**
 * Closes the TCP connections of a checkpoint that have only one end in it: nobody will be at the other end after a
 * restore. A program that reads from such a socket sees the end of the stream; one that writes gets EPIPE. Connections
 * between processes of the sandbox stay open, with the data under way in them. Answers how many were closed.
 */
export async function closeOneEndedConnections(filesImage: string): Promise<number> {
  let count = 0;
  const changed = `${filesImage}.changed`;
  const ends = new Set<string>();
  await lookThrough(filesImage, file => connectionOf(file)?.here.forEach(end => ends.add(end)));
  await rewriteImage(filesImage, changed, file => {
    const connection = connectionOf(file);
    if (!connection || (connection.open && ends.has(connection.there))) return file;
    count++;
    return withMessages(file, internetSocket, fields =>
      withNumbers(fields, {
        [socket.state]: closed,
        [socket.localPort]: 0,
        [socket.peerPort]: 0,
        [socket.shutdown]: shutBoth,
      }),
    );
  });
  renameSync(changed, filesImage);
  return count;
}

type Connection = {
  /** Whether it is fully open: a half-closed connection can't be restored at both ends. */
  open: boolean;
  /** This end and the other one, each as its addresses seen from there; `here` has entries only while it is open. */
  here: string[];
  there: string;
};

/** The TCP connection that an entry of the files image is an end of; undefined for every other file. */
function connectionOf(file: Field[]): Connection | undefined {
  const fields = messageIn(file, internetSocket);
  if (!fields || numberIn(fields, socket.protocol) !== IPPROTO_TCP || numberIn(fields, socket.peerPort) === 0)
    return undefined;
  const local = `${address(numbersIn(fields, socket.localAddress))}:${numberIn(fields, socket.localPort)}`;
  const peer = `${address(numbersIn(fields, socket.peerAddress))}:${numberIn(fields, socket.peerPort)}`;
  const open = numberIn(fields, socket.state) === established;
  return { open, here: open ? [`${local} ${peer}`] : [], there: `${peer} ${local}` };
}

/** An IPv4 address counts as the same address on a socket of the other family. */
function address(words: number[]): string {
  return words.length === 4 && words[0] === 0 && words[1] === 0 && words[2] === 0xffff0000
    ? String(words[3])
    : words.join('.');
}
