import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { placeOf } from '../api/installation/place.ts';
import { unitFolder } from '../base/process/set-up.ts';
import { platformVersion } from '../base/version.ts';
import type { Command } from '../cli/terminal/command.ts';
import { upgradeCommand } from '../cli/operator/upgrade.ts';
import { settingsFileOf } from './settings/file.ts';
import type { Settings } from './settings/settings.ts';
import { isActive, isBooted, systemctl } from './systemd/systemctl.ts';
import { unitsOf } from './systemd/unit.ts';

/** `atoll upgrade` of this machine's installation, by `account` for the audit log. */
export function ownUpgrade(settings: () => Settings, account: string): Command {
  const place = () => placeOf(settings());
  return upgradeCommand({
    async plan() {
      const { isOfCluster, requirePair } = await import('../api/installation/check.ts');
      const { database } = place();
      await requirePair(place());
      const { planUpgrade } = await import('../api/local/upgrade.ts');
      return { ...(await planUpgrade(database)), isCluster: await isOfCluster(database) };
    },
    async tryOut(signal) {
      const { tryMigrations } = await import('../api/local/upgrade.ts');
      return tryMigrations(place().database, place().dataDir, signal);
    },
    backupFile() {
      const folder = join(settings().dataDir, 'backups');
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      return join(folder, `before-${platformVersion}-${new Date().toISOString().replace(/[:.]/g, '')}.backup`);
    },
    async backup(file, signal) {
      const { writeBackup } = await import('../api/backup/write.ts');
      await writeBackup(place(), account, file, { sandboxes: false, signal });
    },
    async restart() {
      if (!isBooted()) return false;
      // Another installation on this machine was neither tried nor saved, and goes on with the previous version.
      for (const unit of unitsOf(settingsFileOf(settings().dataDir), unitFolder))
        if (await isActive(unit)) {
          await systemctl('restart', `${unit}.service`);
          return true;
        }
      return false;
    },
  });
}
