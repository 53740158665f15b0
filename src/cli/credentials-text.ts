import type { CredentialSummary } from './local-accounts.ts';
import { tableText } from './table.ts';

/** Keys or tokens as a table. */
export function credentialsText(heading: string, credentials: CredentialSummary[]): string {
  const rows = credentials.map(({ id, masked, createdAt, lastUsedAt, name }) => [id, masked, createdAt.toISOString(), lastUsedAt?.toISOString() ?? 'never', name]);
  return tableText([['ID', heading, 'CREATED', 'LAST USED', 'NAME'], ...rows]);
}
