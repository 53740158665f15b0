import { type Fixture, type FixtureOptions, startFixture } from './fixture.ts';
import { type RawServer, RawSocket, startRawServer } from './raw-socket.ts';

/** The Host line for port 80 of sandbox `one`. */
export const host = 'Host: 80-one.localhost\r\n';
export const get = `GET / HTTP/1.1\r\n${host}\r\n`;

type BothEnds = AsyncDisposable & { readonly fixture: Fixture; readonly server: RawServer; readonly client: RawSocket };

/** An edge, a sandbox `one` whose port 80 is a server that the test plays, and a client that it plays too. */
export async function startBoth(options: FixtureOptions = {}): Promise<BothEnds> {
  const fixture = startFixture(options);
  const server = startRawServer();
  fixture.sandbox('one');
  fixture.mapPort(80, server.port);
  fixture.mapPort(49983, server.port);
  const client = await RawSocket.connect(fixture.port);
  return {
    fixture,
    server,
    client,
    async [Symbol.asyncDispose]() {
      client.close();
      await fixture[Symbol.asyncDispose]();
      server[Symbol.dispose]();
    },
  };
}
