const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** `length` random characters of `[a-z0-9]`, each equally likely. */
export function randomName(length: number): string {
  let name = '';
  while (name.length < length) {
    // 252 is the largest multiple of 36 below 256: bytes above it would favour the first letters.
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) if (byte < 252 && name.length < length) name += alphabet[byte % 36];
  }
  return name;
}

/** `i` and 20 characters: usable as a DNS label behind a port prefix. */
export const newSandboxId = (): string => `i${randomName(20)}`;
export const newTemplateId = (): string => randomName(20);
export const newUuid = (): string => crypto.randomUUID();
