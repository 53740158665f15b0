/** The build of a shipped template that this installation has made, and the key of its definition. */
type ShippedBuild = { buildId: string; key: string };

/** The file of the data directory in which the builds are recorded. */
export const shippedBuildsFile = 'shipped-templates.json';

/**
 * The recorded build, by the template's name; undefined where none was recorded, or the record can't be read any more.
 */
export type ShippedBuilds = {
  of(name: string): ShippedBuild | undefined;
  put(name: string, build: ShippedBuild): Promise<void>;
};

/** Builds from the text that was last written; `write` writes the next one. */
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
    // Without a record, templates stay as they are.
    return {};
  }
}
