import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { AnyTable, Caller } from '../../../src/protocol/wire/method.ts';
import { callsOn, proxyOf } from '../../../src/wire/call.ts';
import { checkedMethods } from '../../../src/wire/checked.ts';
import { connectionTo } from '../../../src/wire/connect.ts';
import { listenOn } from '../../../src/wire/listen.ts';
import { memoryChannels } from './memory.ts';
import { serve } from '../../../src/wire/serve.ts';

/** The methods of a table, called over a wire within this process. */
type Wired<Protocol> = Disposable & { remote: Protocol };

/** Over channels that only pass text and files. */
export function wiredInMemory<Protocol extends object>(
  table: AnyTable,
  implementation: Protocol,
  caller: Caller,
): Wired<Protocol> {
  const [left, right] = memoryChannels();
  const methods = checkedMethods(table);
  serve(right, caller, { methods, implementation, log: silentLog });
  return {
    remote: proxyOf<Protocol>(
      table,
      methods,
      callsOn(left, 'other part', () => {}),
    ),
    [Symbol.dispose]: () => left.close(),
  };
}

/** Over a unix socket. */
export function wiredBySocket<Protocol extends object>(
  table: AnyTable,
  implementation: Protocol,
  caller: Caller,
): Wired<Protocol> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const path = join(folder, 'part.sock');
  const methods = checkedMethods(table);
  const listening = listenOn(
    { path, caller, uid: process.getuid?.() ?? 0, log: silentLog },
    { methods, implementation },
  );
  const connection = connectionTo(path, 'other part', 200);
  return {
    remote: proxyOf<Protocol>(table, methods, connection),
    [Symbol.dispose]() {
      connection.close();
      listening.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
