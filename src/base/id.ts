const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** `length` random characters of `[a-z0-9]`, each equally likely. */
export function randomName(length: number): string {
  let name = '';
  while (name.length < length) {
    // 252 is the largest multiple of 36 below 256: higher bytes would favour the first letters.
    for (const byte of crypto.getRandomValues(new Uint8Array(length)))
      if (byte < 252 && name.length < length) name += alphabet[byte % 36];
  }
  return name;
}

/** `i` and 20 characters: usable as a DNS label behind a port prefix. */
export const newSandboxId = (): string => `i${randomName(20)}`;
/** 20 characters, as IDs of E2B's templates have. */
export const newTemplateId = (): string => randomName(20);
/** A random UUID, version 4. */
export const newUuid = (): string => crypto.randomUUID();

const sandboxIdPattern = /^i[a-z0-9]{20}$/;

/** Whether a text has the form of `newSandboxId`. */
export function isSandboxId(text: string): boolean {
  return sandboxIdPattern.test(text);
}

const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Says whether a text is a UUID in its usual form, lower case. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}
