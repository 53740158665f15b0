import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { placeOf } from '../api/installation/place.ts';
import { platformVersion } from '../base/version.ts';
import type { Command } from '../cli/terminal/command.ts';
import { upgradeCommand } from '../cli/operator/upgrade.ts';
import type { Settings } from './settings/settings.ts';
import { isActive, isBooted, systemctl } from './systemd/systemctl.ts';

/** The unit that `atoll install` makes without `--name`. */
const unit = 'atoll';

/** `atoll upgrade` of this machine's installation, by `account` for the audit log. */
export function ownUpgrade(settings: () => Settings, account: string): Command {
  const place = () => placeOf(settings());
  return upgradeCommand({
    async plan() {
      const { requirePair } = await import('../api/installation/check.ts');
      await requirePair(place());
      return (await import('../api/local/upgrade.ts')).planUpgrade(place().database);
    },
    async tryOut() {
      const { tryMigrations } = await import('../api/local/upgrade.ts');
      return tryMigrations(place().database, place().dataDir);
    },
    backupFile() {
      const folder = join(settings().dataDir, 'backups');
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      return join(folder, `before-${platformVersion}-${new Date().toISOString().replace(/[:.]/g, '')}.backup`);
    },
    async backup(file) {
      const { writeBackup } = await import('../api/backup/write.ts');
      await writeBackup(place(), account, file, { sandboxes: false });
    },
    async restart() {
      if (!isBooted() || !(await isActive(unit))) return false;
      await systemctl('restart', `${unit}.service`);
      return true;
    },
  });
}
