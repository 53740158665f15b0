/**
 * What a terminal says when a program asks it: where the cursor is, what it is, how large, its modes and colours, in
 * the forms of ECMA-48 and xterm's control sequences.
 */
// oxlint-disable-next-line no-control-regex
const reports = /^(?:\x1b\[[?>]?[\d;]*(?:[Rcnt]|\$y)|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\)$/;

/** Whether this is a terminal's report to a program that asked for it, and not something that was typed. */
export const isReport = (text: string): boolean => reports.test(text);
