import { resolve } from 'node:path';
import { parseArguments } from '../../cli/arguments.ts';
import type { Command } from '../../cli/command.ts';
import type { Settings } from '../settings.ts';
import { restoreBackup } from './restore.ts';
import { writeBackup } from './write.ts';

/** `atoll backup` and `atoll restore`, by `account` for the audit log. */
export function backupCommands(settings: () => Settings, account: string): Command[] {
  return [
    {
      name: 'backup',
      usage: 'FILE [--sandboxes]',
      summary: 'Writes state, keys, templates and volumes to a file, also while the platform runs; --sandboxes: and the disks of paused sandboxes',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { sandboxes: { type: 'boolean' } }, ['FILE']);
        const report = await writeBackup(settings(), account, resolve(positionals[0] ?? ''), { sandboxes: values.sandboxes ?? false });
        for (const { sandboxId, reason } of report.leftOut) terminal.err(`Sandbox ${sandboxId} is left out: ${reason}.\n`);
        for (const volumeId of report.restlessVolumes) terminal.err(`Volume ${volumeId} was being written to all the time: files of that moment may be damaged in the backup.\n`);
        const sandboxes = values.sandboxes ? `, ${report.sandboxes.length} paused sandboxes` : '';
        terminal.out(`${report.file}: ${report.bytes} bytes, ${report.layers} layers${sandboxes}. It holds the keys of the installation: keep it where nobody else reads it.\n`);
        return 0;
      },
    },
    {
      name: 'restore',
      usage: 'FILE',
      summary: 'Makes an installation of a backup, in an empty data directory',
      async run(args, terminal) {
        const { positionals } = parseArguments(args, {}, ['FILE']);
        const own = settings();
        const { createdAt, sandboxes } = await restoreBackup(own, account, resolve(positionals[0] ?? ''));
        terminal.out(`${own.dataDir} is as it was at ${createdAt}${sandboxes.length > 0 ? `, with ${sandboxes.length} paused sandboxes` : ''}. Start it with \`atoll up\`.\n`);
        return 0;
      },
    },
  ];
}
