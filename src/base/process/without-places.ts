/** An absolute path as programs print it: up to what ends it in a sentence. */
const absolute = /(?<![\w.~])\/(?:[^\s/'"`:,;()]+\/)+/g;

/**
 * What a program of the host has said, for people who are strangers to the host: of each path its last part. Where
 * `places` are given, only of paths below these.
 */
export function withoutPlaces(text: string, places?: readonly string[]): string {
  if (!places) return text.trim().replace(absolute, '…/');
  let shown = text.trim();
  for (const place of places.toSorted((one, other) => other.length - one.length))
    if (place.startsWith('/') && place.length > 1) shown = shown.replaceAll(place, '…');
  return shown;
}
