/**
 * The value of a line `name value`; 0 if there is none. Uses no regular expression, because this runs hundreds of
 * times a second.
 */
export function keyed(text: string, name: string): number {
  const start = text.startsWith(`${name} `) ? 0 : text.indexOf(`\n${name} `) + 1;
  if (start === 0 && !text.startsWith(`${name} `)) return 0;
  return Number.parseInt(text.slice(start + name.length + 1, start + name.length + 21), 10);
}
