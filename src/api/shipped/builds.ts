/** Which build of a shipped template this installation has made, and of which definition. */
type ShippedBuild = { buildId: string; key: string };

/** The file of the data directory that they are recorded in. */
export const shippedBuildsFile = 'shipped-templates.json';

/** What was recorded, by the template's name; undefined where nothing was, or where what was can't be read any more. */
export type ShippedBuilds = {
  of(name: string): ShippedBuild | undefined;
  put(name: string, build: ShippedBuild): Promise<void>;
};

/** Builds by the text that was written last; `write` writes the next one. */
export function shippedBuilds(text: string | undefined, write: (text: string) => Promise<void>): ShippedBuilds {
  let builds = parsed(text);
  return {
    of: name => builds[name],
    async put(name, build) {
      const next = { ...builds, [name]: build };
      await write(JSON.stringify(next, null, 2));
      builds = next;
    },
  };
}

function parsed(text: string | undefined): Record<string, ShippedBuild> {
  try {
    return JSON.parse(text ?? '{}') as Record<string, ShippedBuild>;
  } catch {
    // Without it, templates stay as they are.
    return {};
  }
}
