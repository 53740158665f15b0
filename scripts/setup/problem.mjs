/** A failure that a person can fix: its message says what is missing and what to do, and is printed without a stack. */
export class Problem extends Error {}
