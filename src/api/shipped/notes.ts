/** Which build of a shipped template this installation has made, and of which definition. */
type ShippedBuildNote = { buildId: string; key: string };

/** The file of the data directory that they are noted in. */
export const shippedNotesFile = 'shipped-templates.json';

/** What was noted, by the template's name; undefined where nothing was, or where what was can't be read any more. */
export type ShippedNotes = {
  of(name: string): ShippedBuildNote | undefined;
  put(name: string, note: ShippedBuildNote): Promise<void>;
};

/** Notes with the text that was written last; `write` writes the next one. */
export function shippedNotes(text: string | undefined, write: (text: string) => Promise<void>): ShippedNotes {
  let notes = parsed(text);
  return {
    of: name => notes[name],
    async put(name, note) {
      const next = { ...notes, [name]: note };
      await write(JSON.stringify(next, null, 2));
      notes = next;
    },
  };
}

function parsed(text: string | undefined): Record<string, ShippedBuildNote> {
  try {
    return JSON.parse(text ?? '{}') as Record<string, ShippedBuildNote>;
  } catch {
    // Without it, templates stay as they are.
    return {};
  }
}
