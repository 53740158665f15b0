/** A failure that a person can mend: its message says what is missing and what to do, and is printed alone. */
export class Problem extends Error {}
