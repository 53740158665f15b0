import { counted } from '../../base/counted.ts';
import { resolve } from 'node:path';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { interruptible } from '../terminal/interruptible.ts';
import { jsonText } from '../terminal/table.ts';

type Report = {
  file: string;
  bytes: number;
  layers: number;
  sandboxes: string[];
  leftOut: { sandboxId: string; reason: string }[];
  restlessVolumes: string[];
};

/** Backups of this machine's own installation. File paths are absolute. */
type Backups = {
  /** `restlessVolumes`: those that were written to while being copied. */
  write(file: string, options: { sandboxes: boolean; signal: AbortSignal }): Promise<Report>;
  /** Makes an installation in an empty data directory, and answers the directory. */
  restore(file: string, signal: AbortSignal): Promise<{ dataDir: string; createdAt: string; sandboxes: string[] }>;
};

/** `atoll backup` and `atoll restore`. */
export function backupCommands(backups: Backups): Command[] {
  return [
    {
      name: 'backup',
      usage: 'FILE [--sandboxes] [--json]',
      summary:
        'Writes state, keys, templates and volumes to a file, also while the platform runs; --sandboxes: and the ' +
        'disks of paused sandboxes',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { sandboxes: { type: 'boolean' }, ...jsonOption }, [
          'FILE',
        ]);
        const file = resolve(positionals[0] ?? '');
        const { sandboxes: withSandboxes = false } = values;
        const report = await interruptible(signal => backups.write(file, { sandboxes: withSandboxes, signal }));
        for (const { sandboxId, reason } of report.leftOut)
          terminal.err(`Sandbox ${sandboxId} is left out: ${reason}.\n`);
        for (const volumeId of report.restlessVolumes)
          terminal.err(
            `Volume ${volumeId} was being written to all the time: files of that moment may be damaged in the ` +
              `backup.\n`,
          );
        const sandboxes = values.sandboxes
          ? `, ${counted(report.sandboxes.length, 'paused sandbox', 'paused sandboxes')}`
          : '';
        if (values.json) {
          terminal.out(jsonText(reportJson(report)));
          return 0;
        }
        terminal.out(
          `${report.file}: ${report.bytes} bytes, ${counted(report.layers, 'layer')}${sandboxes}. It holds ` +
            `the keys of the installation: keep it where nobody else reads it.\n`,
        );
        return 0;
      },
    },
    {
      name: 'restore',
      usage: 'FILE [--json]',
      summary: 'Makes an installation of a backup, in an empty data directory',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['FILE']);
        const file = resolve(positionals[0] ?? '');
        const { dataDir, createdAt, sandboxes } = await interruptible(signal => backups.restore(file, signal));
        if (values.json) {
          terminal.out(jsonText({ dataDir, createdAt, sandboxes }));
          return 0;
        }
        terminal.out(
          `${dataDir} is as it was at ` +
            `${createdAt}${sandboxes.length > 0 ? `, with ${sandboxes.length} paused sandboxes` : ''}. Start it ` +
            `with \`atoll up\`.\n`,
        );
        return 0;
      },
    },
  ];
}

function reportJson({ leftOut, ...report }: Report): object {
  return { ...report, leftOut: leftOut.map(({ sandboxId: sandboxID, reason }) => ({ sandboxID, reason })) };
}
