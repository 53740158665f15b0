/** What a pause survives: crashes of its machine (`node`), or the loss of the machine itself (`cluster`). */
export const durabilities = ['node', 'cluster'] as const;
/** One of them. */
export type Durability = (typeof durabilities)[number];
