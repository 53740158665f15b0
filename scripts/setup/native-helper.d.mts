/** Types of native-helper.mjs for the tests, which are checked. */
export const inside: string[];
export const preloaded: string[];
