/** A number of things in words: `1 sandbox`, `2 sandboxes`. `many`: where an `s` does not make it several. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
