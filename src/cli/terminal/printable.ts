/**
 * Control characters, which tell a terminal what to do, and those that turn the order of what is behind them. Line
 * breaks and tabs are none here.
 */
const commands = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text as a terminal may show it, whoever has written it: nothing in it is a command. */
export function printable(text: string): string {
  return text.replace(commands, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
