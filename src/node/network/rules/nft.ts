import { tryCommand } from '../../../base/process/command.ts';

/** Applies a script of packet rules as one transaction: all of it or nothing. */
export async function nft(script: string): Promise<void> {
  await tryCommand(['nft', '-f', '-'], script);
}
