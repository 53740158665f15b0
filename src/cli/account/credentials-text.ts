import type { CredentialSummary } from './local-accounts.ts';
import type { Terminal } from '../terminal/command.ts';
import { momentText, tableText } from '../terminal/table.ts';

/** A key or token by the API's names of its members. */
export function credentialJson({ lastUsedAt: lastUsed, ...credential }: CredentialSummary): object {
  return { ...credential, lastUsed };
}

/** Keys or tokens as a table. */
export function credentialsText(terminal: Terminal, heading: string, credentials: CredentialSummary[]): string {
  const rows = credentials.map(({ id, masked, createdAt, lastUsedAt, name }) => [
    id,
    masked,
    momentText(terminal, createdAt.toISOString()),
    lastUsedAt ? momentText(terminal, lastUsedAt.toISOString()) : 'never',
    name,
  ]);
  return tableText([['ID', heading, 'CREATED', 'LAST USED', 'NAME'], ...rows], terminal.columns);
}
