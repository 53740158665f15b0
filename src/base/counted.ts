/** A number of things in words: `1 sandbox`, `2 sandboxes`. `many`: the plural, where it is not formed with an `s`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
