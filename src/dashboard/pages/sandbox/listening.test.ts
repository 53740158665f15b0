import { expect, test } from 'bun:test';
import { listeningPorts } from './listening.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';

test('ports that listen are read, each once, and whether they are for the inside alone', () => {
  const four =
    `${head}   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1\n` +
    '   1: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 2\n' +
    '   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 3\n';
  const six =
    `${head}   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0\n` +
    '   1: 00000000000000000000000000000000:C353 00000000000000000000000000000000:0000 0A 0:0\n';
  expect(listeningPorts([four, six])).toEqual([
    { port: 3000, isLocal: false },
    { port: 8080, isLocal: true },
    { port: 50_003, isLocal: false },
  ]);
  expect(listeningPorts(['', head, 'what a program wrote'])).toEqual([]);
});
