import { parseArguments } from './arguments.ts';
import type { Command } from './command.ts';
import { tableText } from './table.ts';

/** An API key as it may be shown after its creation. */
export type KeySummary = { keyId: string; name: string; masked: string; createdAt: Date; lastUsedAt: Date | null };

/** What the key commands need of the platform's store. */
export type KeyStore = {
  /** Makes a key of the installation's team and answers it. It is not kept anywhere in this form. */
  create(name: string): Promise<string>;
  list(): Promise<KeySummary[]>;
  /** Fails with `not_found` for an unknown key. */
  revoke(keyId: string): Promise<void>;
};

/** `atoll key …`. `open` gives the store for the time of one command. */
export function keyCommands(withStore: <T>(use: (store: KeyStore) => Promise<T>) => Promise<T>): Command[] {
  return [
    {
      name: 'key create',
      usage: '[--name NAME]',
      summary: 'Makes an API key and prints it, this once',
      async run(args, terminal) {
        const { values } = parseArguments(args, { name: { type: 'string' } });
        terminal.out(`${await withStore(store => store.create(values.name ?? 'unnamed'))}\n`);
        return 0;
      },
    },
    {
      name: 'key list',
      usage: '[--json]',
      summary: 'Lists the API keys, masked',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const keys = await withStore(store => store.list());
        const rows = keys.map(key => [key.keyId, key.masked, key.createdAt.toISOString(), key.lastUsedAt?.toISOString() ?? 'never', key.name]);
        terminal.out(values.json ? `${JSON.stringify(keys, null, 2)}\n` : tableText([['ID', 'KEY', 'CREATED', 'LAST USED', 'NAME'], ...rows]));
        return 0;
      },
    },
    {
      name: 'key revoke',
      usage: 'KEY_ID',
      summary: 'Revokes an API key; it is refused from the next request on',
      async run(args, terminal) {
        const { positionals } = parseArguments(args, {}, ['KEY_ID']);
        await withStore(store => store.revoke(positionals[0] ?? ''));
        terminal.err('Revoked.\n');
        return 0;
      },
    },
  ];
}
