import { AtollError } from '../../../base/error.ts';

/** Pairs in one filter: each is a separate look-up. */
const metadataPairsMax = 50;

/** A key and a value that must both match. */
type MetadataPair = readonly [key: string, value: string];

/**
 * Reads the `metadata` query value, already decoded once as a query value. Clients encode each key and value, join them
 * to `key=value&key2=value2`, encode the joined text, and it is encoded again as a query value. A person with curl
 * leaves out the middle step: a value that can't be read the first way is read that way. Throws `invalid`.
 */
export function parseMetadataFilter(value: string | undefined): MetadataPair[] {
  if (value === undefined || value === '') return [];
  if (value.split('&', metadataPairsMax + 1).length > metadataPairsMax) throw tooMany();
  const joined = decode(value);
  const pairs = (joined === null ? null : parsePairs(joined)) ?? parsePairs(value);
  if (pairs && pairs.length > metadataPairsMax) throw tooMany();
  if (pairs) return pairs;
  throw new AtollError(
    'invalid',
    'metadata: must be key=value pairs joined by "&", with each key and value URL-encoded',
  );
}

function tooMany(): AtollError {
  return new AtollError('invalid', `metadata: has more than ${metadataPairsMax} pairs`);
}

/** Null when a piece is not exactly one key and one value in valid URL encoding. */
function parsePairs(joined: string): MetadataPair[] | null {
  const pairs: MetadataPair[] = [];
  for (const piece of joined.split('&')) {
    const [key = '', value = null, ...more] = piece.split('=').map(decode);
    if (key === null || key === '' || value === null || more.length > 0) return null;
    pairs.push([key, value]);
  }
  return pairs;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // the caller refuses it and names the parameter
  }
}
