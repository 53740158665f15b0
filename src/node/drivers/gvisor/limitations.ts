/**
 * What sandboxes can do on crun but not on gVisor, for `atoll doctor` and the documents. Tests show each limitation
 * (test/conformance).
 */
export const limitations = {
  memory: 'no pause with memory, no fork and no snapshot with processes: files are kept',
  setuid: 'no sudo or other programs that change the user by their setuid bit; clients run commands as root instead',
  attributes: 'no extended attributes, and so no metadata of files',
  outOfMemory: 'a program that takes more memory than there is ends the whole sandbox',
  pool: 'no pool for all templates: a create takes about 0.3 s where its template was not asked for lately',
  addresses: 'services inside see clients come from a link-local address, not from the loopback',
} as const;

/** One of them. */
export type Limitation = keyof typeof limitations;
