import type { HostFinding } from '../../protocol/doctor.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { advice } from '../../base/process/set-up.ts';

const marks = { ok: '✓ ok', limited: '~ limited', missing: '✗ missing' } as const;

/**
 * `atoll doctor`: what this host can and can't do, with a remedy for each problem. Exit code 1 if no sandbox can run.
 */
export function doctorCommand(examine: () => Promise<HostFinding[]>): Command {
  return {
    name: 'doctor',
    usage: '[--json]',
    summary: 'Tries out what this machine can do for sandboxes, and says what would help',
    async run(args, terminal) {
      const { values } = parseArguments(args, { json: { type: 'boolean' } });
      const findings = await examine();
      terminal.out(values.json ? `${JSON.stringify(findings, null, 2)}\n` : reportText(findings));
      return findings.some(blocks) ? 1 : 0;
    },
  };
}

const blocks = ({ needed, status }: HostFinding) => needed && status === 'missing';

function reportText(findings: HostFinding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const markWidth = Math.max(...Object.values(marks).map(mark => mark.length));
  const lines = findings.map(({ name, status, detail, remedy }) => {
    const line = `${marks[status].padEnd(markWidth)}  ${name.padEnd(width)}  ${detail}\n`;
    return remedy === undefined ? line : `${line}${' '.repeat(markWidth + width + 4)}→ ${remedy}\n`;
  });
  const blocking = findings.filter(blocks).map(({ name }) => name);
  return `${lines.join('')}\n${verdict(findings, blocking)}\n`;
}

/** Says that sandboxes can run only if one has run. */
function verdict(findings: HostFinding[], blocking: string[]): string {
  if (blocking.length > 0) return `Sandboxes can't run here before this is mended: ${blocking.join(', ')}.`;
  if (findings.some(({ name, status }) => name === 'a sandbox' && status === 'ok'))
    return 'Sandboxes can run here: one just did.';
  const nothing = 'Nothing was found that speaks against sandboxes here, but none was run';
  return `${nothing}: ${advice.setUp} to have one.`;
}
