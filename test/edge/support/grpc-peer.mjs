// One side of gRPC, as people run it: `server` prints its port; `client PORT CA AUTHORITY` makes the calls below
// through the edge, over TLS or, with an empty CA, in the clear, and prints the outcome of each as a line of JSON.
import { readFileSync } from 'node:fs';
import {
  Client,
  credentials,
  makeGenericClientConstructor,
  Metadata,
  Server,
  ServerCredentials,
  status,
} from '@grpc/grpc-js';

const bytes = { serialize: value => value, deserialize: value => value };
const method = (name, requestStream, responseStream) => ({
  path: `/test.Peer/${name}`,
  requestStream,
  responseStream,
  requestSerialize: bytes.serialize,
  requestDeserialize: bytes.deserialize,
  responseSerialize: bytes.serialize,
  responseDeserialize: bytes.deserialize,
});
const service = {
  echo: method('Echo', false, false),
  count: method('Count', false, true),
  sum: method('Sum', true, false),
  talk: method('Talk', true, true),
  fail: method('Fail', false, false),
  failLate: method('FailLate', false, true),
  refuseRest: method('RefuseRest', true, false),
  hang: method('Hang', true, true),
  hung: method('Hung', false, false),
};
const unlimited = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

async function serve(keyFile, certificateFile) {
  let cancelled = 0;
  const detail = () => {
    const trailers = new Metadata();
    trailers.set('x-detail', 'why');
    trailers.set('x-detail-bin', Buffer.from([0, 1, 255]));
    return trailers;
  };
  const server = new Server(unlimited);
  server.addService(service, {
    echo(call, done) {
      const initial = new Metadata();
      initial.set('x-seen', String(call.metadata.get('x-sent')[0] ?? ''));
      initial.set('x-forwarded', String(call.metadata.get('x-forwarded-proto')[0] ?? ''));
      call.sendMetadata(initial);
      const trailers = new Metadata();
      trailers.set('x-behind', 'yes');
      done(null, call.request, trailers);
    },
    count(call) {
      const wanted = Number(call.request);
      let at = 0;
      const go = () => {
        while (at < wanted) if (!call.write(Buffer.from(String(at++)))) return void call.once('drain', go);
        call.end();
      };
      go();
    },
    sum(call, done) {
      let sum = 0;
      call.on('data', message => (sum += message.length));
      call.on('end', () => done(null, Buffer.from(String(sum))));
    },
    talk(call) {
      call.on('data', message => call.write(Buffer.from(`${message}!`)));
      call.on('end', () => call.end());
    },
    fail: (call, done) => done({ code: status.NOT_FOUND, details: 'näh % nothing', metadata: detail() }),
    failLate(call) {
      call.write(Buffer.from('one'));
      call.emit('error', { code: status.ABORTED, details: 'later', metadata: detail() });
    },
    refuseRest(call, done) {
      call.once('data', () => done({ code: status.INVALID_ARGUMENT, details: 'enough' }));
    },
    hang(call) {
      call.on('cancelled', () => cancelled++);
      call.on('data', () => call.write(Buffer.from('heard')));
      call.on('error', () => {});
    },
    hung: (call, done) => done(null, Buffer.from(String(cancelled))),
  });
  const secure = keyFile
    ? ServerCredentials.createSsl(null, [
        { private_key: readFileSync(keyFile), cert_chain: readFileSync(certificateFile) },
      ])
    : ServerCredentials.createInsecure();
  server.bindAsync('127.0.0.1:0', secure, (error, port) => console.log(error ? `failed: ${error}` : port));
}

const ended = call =>
  new Promise(resolve => {
    const messages = [];
    let initial;
    call.on('metadata', metadata => (initial = metadata.getMap()));
    call.on('data', message => messages.push(message.toString()));
    call.on('error', () => {});
    call.on('status', ({ code, details, metadata }) =>
      resolve({ code, details, trailers: metadata.getMap(), messages, initial }),
    );
  });

/** The outcome of a call with one answer. */
const answered = begin =>
  new Promise(resolve => {
    let seen = {};
    const call = begin((error, answer) => (seen = { ...seen, answer: answer?.toString('latin1') }));
    call.on('metadata', metadata => (seen.initial = metadata.getMap()));
    call.on('status', ({ code, details, metadata }) =>
      setImmediate(() => resolve({ ...seen, code, details, trailers: metadata.getMap() })),
    );
  });

const calls = {
  async unary(client) {
    const metadata = new Metadata();
    metadata.set('x-sent', 'mine');
    return answered(done => client.echo(Buffer.from('hello'), metadata, done));
  },
  empty: client => answered(done => client.echo(Buffer.alloc(0), done)),
  async serverStream(client) {
    const { messages, ...rest } = await ended(client.count(Buffer.from('1000')));
    return { ...rest, count: messages.length, last: messages.at(-1) };
  },
  clientStream: client =>
    answered(done => {
      const call = client.sum(done);
      for (let number = 0; number < 100; number++) call.write(Buffer.alloc(number * 100));
      call.end();
      return call;
    }),
  async bidirectional(client) {
    const call = client.talk();
    const over = ended(call);
    for (let number = 0; number < 50; number++) {
      const heard = new Promise(resolve => call.once('data', resolve));
      call.write(Buffer.from(String(number)));
      await heard;
    }
    call.end();
    const { messages, ...rest } = await over;
    return { ...rest, count: messages.length, last: messages.at(-1) };
  },
  error: client => answered(done => client.fail(Buffer.alloc(1), done)),
  errorBehindMessages: client => ended(client.failLate(Buffer.alloc(1))),
  errorBeforeTheEnd: client =>
    answered(done => {
      const call = client.refuseRest(done);
      call.on('error', () => {});
      call.write(Buffer.alloc(100_000));
      call.write(Buffer.alloc(100_000));
      return call;
    }),
  unknownMethod: client =>
    answered(done =>
      client.makeUnaryRequest(
        '/test.Peer/None',
        x => x,
        x => x,
        Buffer.alloc(0),
        done,
      ),
    ),
  async large(client) {
    const sent = Buffer.alloc(20 * 1024 * 1024, 'x');
    const { answer, ...rest } = await answered(done => client.echo(sent, done));
    return { ...rest, length: answer?.length };
  },
  async cancel(client) {
    const before = Number((await answered(done => client.hung(Buffer.alloc(0), done))).answer);
    const call = client.hang();
    const over = ended(call);
    call.write(Buffer.from('x'));
    await new Promise(resolve => call.once('data', resolve));
    call.cancel();
    const { code } = await over;
    let after = before;
    while (after === before) after = Number((await answered(done => client.hung(Buffer.alloc(0), done))).answer);
    return { code, after: after - before };
  },
  async deadline(client) {
    const before = Number((await answered(done => client.hung(Buffer.alloc(0), done))).answer);
    const { code } = await ended(client.hang({ deadline: Date.now() + 300 }));
    let after = before;
    while (after === before) after = Number((await answered(done => client.hung(Buffer.alloc(0), done))).answer);
    return { code, after: after - before };
  },
  async hangForGood(client) {
    const call = client.hang();
    const over = ended(call);
    call.write(Buffer.from('x'));
    return over;
  },
  async many(client) {
    const all = Array.from({ length: 200 }, (_, number) =>
      answered(done => client.echo(Buffer.from(String(number)), done)),
    );
    const answers = await Promise.all(all);
    return {
      code: Math.max(...answers.map(({ code }) => code)),
      right: answers.filter(({ answer }, at) => answer === String(at)).length,
    };
  },
};

async function ask(port, ca, authority, only) {
  const secure = ca ? credentials.createSsl(readFileSync(ca)) : credentials.createInsecure();
  const Peer = makeGenericClientConstructor(service, 'Peer');
  const client = new Peer(`127.0.0.1:${port}`, secure, {
    ...unlimited,
    'grpc.default_authority': authority,
    'grpc.ssl_target_name_override': authority.replace(/:\d+$/, ''),
    // A refusal must be visible, not retried.
    'grpc.enable_retries': 0,
  });
  for (const [name, call] of Object.entries(calls)) {
    if (only ? !only.split(' ').includes(name) : name === 'hangForGood') continue;
    const late = new Promise(resolve => setTimeout(resolve, 20_000, { late: true }).unref());
    console.log(JSON.stringify({ name, ...(await Promise.race([call(client), late])) }));
  }
  client.close();
}

const [mode, ...parameters] = process.argv.slice(2);
if (!(Client.prototype && mode)) throw new Error('server or client?');
await (mode === 'server' ? serve(...parameters) : ask(...parameters));
