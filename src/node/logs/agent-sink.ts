import type { LogSink } from '../agent-client/log-intake.ts';
import type { LogStore } from './log-store.ts';
import { withoutSecrets } from './policy-secrets.ts';

/**
 * Puts what a sandbox's agent logs into the store. `secrets` answers what no entry may show; it is called each time,
 * because policies change.
 */
export function agentSink(store: LogStore, sandboxId: string, secrets: () => readonly string[]): LogSink {
  return {
    place: () => store.place(sandboxId),
    add(entry, place) {
      const hidden = secrets();
      const fields = Object.entries(entry.fields).map(([name, text]) => [name, withoutSecrets(text, hidden)]);
      const message = withoutSecrets(entry.message, hidden);
      store.add(sandboxId, { ...entry, message, fields: Object.fromEntries(fields) }, place);
    },
    gap: (text, fields) => store.write(sandboxId, 'warn', 'agent', text, fields),
  };
}
