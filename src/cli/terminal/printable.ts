/**
 * Control characters, which command a terminal, and characters that reverse the order of what follows. Line breaks and
 * tabs are not among them.
 */
const commands = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text that is safe to show in a terminal, whoever wrote it: nothing in it acts as a command. */
export function printable(text: string): string {
  return text.replace(commands, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
