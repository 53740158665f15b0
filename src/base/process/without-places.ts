/** An absolute path as programs print it, up to the character that ends it in a sentence. */
const absolute = /(?<![\w.~])\/(?:[^\s/'"`:,;()]+\/)+/g;

/**
 * A message of a program of the host, for people who must not learn about the host: only the last part of each path.
 * Where `places` are given, only paths below these are shortened.
 */
export function withoutPlaces(text: string, places?: readonly string[]): string {
  if (!places) return text.trim().replace(absolute, '…/');
  let shown = text.trim();
  for (const place of places.toSorted((one, other) => other.length - one.length))
    if (place.startsWith('/') && place.length > 1) shown = shown.replaceAll(place, '…');
  return shown;
}
