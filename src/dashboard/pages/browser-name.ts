/** Browsers and their unique marks; those that also carry another browser's mark come first. */
const browsers: [name: string, mark: RegExp][] = [
  ['Edge', /Edg\/(\d{1,4})/],
  ['Opera', /OPR\/(\d{1,4})/],
  ['Firefox', /Firefox\/(\d{1,4})/],
  ['Chrome', /Chrome\/(\d{1,4})/],
  ['Safari', /Version\/(\d{1,4})/],
];
const systems: [name: string, mark: string][] = [
  ['Android', 'Android'],
  ['iOS', 'iPhone'],
  ['iPadOS', 'iPad'],
  ['Windows', 'Windows'],
  ['macOS', 'Mac OS X'],
  ['Linux', 'Linux'],
];

/** A browser and its system in a few words; its own description if it is unknown. */
export function browserName(userAgent: string): string {
  for (const [name, mark] of browsers) {
    const version = mark.exec(userAgent)?.[1];
    if (version === undefined) continue;
    const system = systems.find(([, text]) => userAgent.includes(text))?.[0];
    return `${name} ${version}${system === undefined ? '' : ` on ${system}`}`;
  }
  return userAgent;
}
