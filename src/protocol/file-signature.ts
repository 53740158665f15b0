/** The operations that a signed URL of a file can allow. */
export type FileOperation = 'read' | 'write';

/** What the signature of a file's URL covers, as it stands in the URL. */
type SignedFile = {
  path: string;
  operation: FileOperation;
  username: string;
  /** Unix seconds in decimal; null: it does not expire. */
  expiration: string | null;
};

/** The query parameter that holds the signature. */
export const signatureParameter = 'signature';

/** The signature of a file's URL, made with the sandbox's token as published clients make it. */
export function fileSignature({ path, operation, username, expiration }: SignedFile, accessToken: string): string {
  const parts = [path, operation, username, accessToken, ...(expiration === null ? [] : [expiration])];
  const digest = new Bun.CryptoHasher('sha256').update(parts.join(':')).digest('base64');
  // The base64 of 32 bytes ends in one padding character.
  return `v1_${digest.slice(0, -1)}`;
}

/** The signed members of a URL's query. */
export function signedFileOf(query: URLSearchParams, operation: FileOperation): SignedFile {
  return {
    path: query.get('path') ?? '',
    operation,
    username: query.get('username') ?? '',
    expiration: query.get('signature_expiration'),
  };
}
