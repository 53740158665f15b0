// One address takes all it can of an edge; then another address and this machine itself ask it for a little.
import { connect, createServer } from 'node:net';

const [port, how, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const [greedy, modest, local] = ['10.99.0.1', '10.99.0.2', '127.0.0.1'];

// Stands for every sandbox: requests for /answer are answered, all others hang.
const sandboxes = createServer(socket => {
  socket.on('error', () => {});
  socket.on('data', bytes => {
    if (bytes.includes('GET /answer ')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
});
await new Promise(resolve => sandboxes.listen(7777, '127.0.0.1', resolve));

const head = (path, host = 'api.localhost', more = '') => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
const first = {
  idle: () => head('/health'),
  silent: () => '',
  'half a head': () => 'GET / HTTP/1.1\r\nHost: api.localhost\r\nX: ',
  'half a body': () => 'POST / HTTP/1.1\r\nHost: api.localhost\r\nContent-Length: 100\r\n\r\nabc',
  hanging: index => head('/hang', `80-a${index % 12}.localhost`),
}[how];

const held = [];
/** Connects from an address, sends, and reports what happened within a moment. */
function open(from, to, bytes, enough, patienceMs) {
  return new Promise(resolve => {
    const socket = connect({ host: to, port, localAddress: from });
    let text = '';
    const done = outcome => {
      clearTimeout(timer);
      resolve({ outcome, socket });
    };
    const timer = setTimeout(() => done('open'), patienceMs);
    socket.on('connect', () => bytes !== '' && socket.write(bytes, 'latin1'));
    socket.on('data', part => {
      text += part.toString('latin1');
      if (enough !== null && text.includes(enough)) done(text.slice(9, 12));
    });
    socket.on('error', () => done('lost'));
    socket.on('close', () => done('lost'));
  });
}

for (let index = 0; index < count; index += 100) {
  const batch = Array.from({ length: Math.min(100, count - index) }, (_, offset) =>
    open(greedy, greedy, first(index + offset), how === 'idle' ? '\r\n\r\n' : null, how === 'idle' ? 5_000 : 150),
  );
  held.push(...(await Promise.all(batch)));
}

/** How many of twenty are answered. */
async function answered(from, bytes) {
  let good = 0;
  for (let index = 0; index < 20; index++) {
    const { outcome, socket } = await open(from, from, bytes, '\r\n\r\n', 5_000);
    if (outcome === '200') good++;
    socket.destroy();
  }
  return good;
}
const others = {
  modestApi: await answered(modest, head('/health')),
  modestSandbox: await answered(modest, head('/answer', '80-b1.localhost')),
  localApi: await answered(local, head('/health')),
  localSandbox: await answered(local, head('/answer', '80-b1.localhost')),
};
console.log(JSON.stringify({ ...others, greedyOpen: held.filter(({ socket }) => !socket.destroyed).length }));
process.exit(0);
