import { expect, test } from 'bun:test';
import type { SandboxLogEntry } from '../../protocol/logs.ts';
import { agentSink } from './agent-sink.ts';

test('secrets stay out of messages and fields, also those of a policy that came later', () => {
  const added: SandboxLogEntry[] = [];
  const store = {
    write: () => {},
    add: (_: string, entry: SandboxLogEntry) => void added.push(entry),
    place: async () => undefined,
    read: async () => [],
    close: async () => {},
  };
  let secrets: string[] = [];
  const sink = agentSink(store, 's', () => secrets);
  const entry: SandboxLogEntry = {
    timestampMs: 1,
    level: 'info',
    logger: 'process',
    message: 'it is the-secret-value',
    fields: { arg: 'x=the-secret-value' },
  };
  sink.add(entry, { epoch: 'a', number: 1 });
  secrets = ['the-secret-value'];
  sink.add(entry, { epoch: 'a', number: 2 });
  expect(added.map(({ message, fields }) => [message, fields['arg']])).toEqual([
    ['it is the-secret-value', 'x=the-secret-value'],
    ['it is ***', 'x=***'],
  ]);
});
