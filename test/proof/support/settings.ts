/** A figure that `npm run prove` was given, by the name of its variable. */
export const numberOf = (name: string, fallback: number) => Number(process.env[name] ?? fallback);
