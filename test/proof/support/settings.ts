/** A figure given to `npm run prove`, by the name of its variable. */
export const numberOf = (name: string, fallback: number) => Number(process.env[name] ?? fallback);
