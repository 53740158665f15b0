import type { Finding } from '../inside/feature.ts';
import { left, ownNumber, taken } from './down.ts';
import { finding, sh, type Scene, type Stage } from './stage.ts';
import { bothKinds, lookAfterwards } from './survivors.ts';

const timeoutMs = 40 * 60_000;
/** Longer than a start plus the watchdog take on an emulated machine, in its own seconds. */
const waitSeconds = 600;

/** systemd's state of the service, one line `NAME=VALUE` each. */
const state = 'systemctl show --property=ActiveState,MainPID,NRestarts,Result,ExecMainStatus,StatusText atoll';
const mainPid = 'systemctl show --property=MainPID --value atoll';

/** Waits until the service serves with another process than `$before`. */
const untilServes = (port: number) =>
  `end=$((SECONDS + ${waitSeconds})); until [ "$(${mainPid})" != "$before" ] && systemctl is-active --quiet atoll && (: < /dev/tcp/127.0.0.1/${port}) 2>/dev/null; do [ $SECONDS -lt $end ] || { ${state}; journalctl -u atoll -n 5 -o cat; exit 1; }; sleep 1; done; echo "again after $SECONDS s"`;

/** Events of a service whose sandboxes run on, and the commands that cause them. */
const survived = [
  { name: 'systemctl restart', script: 'systemctl restart atoll' },
  { name: 'kill -9 of the service', script: 'kill -9 $before' },
  { name: 'a service that stands still', script: 'kill -STOP $before' },
  { name: 'installing the package again', script: 'apt-get install --yes --reinstall $package' },
];

/**
 * The service under a real systemd: what ends it and what restarts it, with running and paused sandboxes; refused
 * starts; a reboot of the machine; the removal of the service and of the package.
 */
export const service: Stage = {
  name: 'service',
  async run(scene) {
    const found: Finding[] = [];
    const survivors = await bothKinds(scene);
    for (const { name, script } of survived.filter(({ name }) => chosen(scene, name))) {
      found.push(await cameBack(scene, name, script), ...(await lookAfterwards(scene, name, survivors)));
    }
    found.push(await refusedStart(scene));
    await scene.machine.reboot();
    found.push(
      await cameBack(scene, 'reboot: the service', 'before=0'),
      ...(await lookAfterwards(scene, 'reboot', survivors)),
    );
    const further = await bothKinds(scene);
    found.push(
      ...(await uninstalled(scene, 'atoll uninstall', `[ -e ${scene.dataDir}/api-key ]`)),
      await cameBack(scene, 'atoll install goes on with the data', 'before=0; atoll install'),
      ...(await lookAfterwards(scene, 'atoll uninstall', further)),
      ...(await uninstalled(scene, 'atoll uninstall --data --yes', `[ ! -e ${scene.dataDir} ]`)),
      await purged(scene),
    );
    return found;
  },
};

const chosen = ({ only }: Scene, name: string) => only.length === 0 || only.includes(name);

async function cameBack(scene: Scene, name: string, script: string): Promise<Finding> {
  const { exitCode, output } = await sh(
    scene,
    `cd /; package=${scene.debianPackage}; before=$(${mainPid}); SECONDS=0
     ${script} && ${untilServes(scene.port)}`,
    timeoutMs,
  );
  const again = /again after \d+ s/.exec(output)?.[0];
  return finding(`${name}: serves again`, exitCode === 0 && again !== undefined, again ?? output);
}

/** An impossible setting: one sentence in the status, exit code 78, and no second try. Then it is corrected. */
async function refusedStart(scene: Scene): Promise<Finding> {
  const settings = `${scene.dataDir}/settings`;
  const { exitCode, output } = await sh(
    scene,
    `cp ${settings} /var/tmp/settings && echo ATOLL_LOG_LEVEL=none >> ${settings}; systemctl restart atoll && exit 9
     sleep 5; ${state}; systemctl status atoll; journalctl -u atoll -o cat -n 20 | grep -c '^ *at ' | sed s/^/traces=/
     cp /var/tmp/settings ${settings}; before=0; systemctl restart atoll && ${untilServes(scene.port)}`,
    timeoutMs,
  );
  const said = /^StatusText=(.*)$/m.exec(output)?.[1] ?? '';
  const asPromised = ['ActiveState=failed', 'ExecMainStatus=78', 'NRestarts=0', 'traces=0'].every(line =>
    output.split('\n').includes(line),
  );
  const works = exitCode === 0 && asPromised && output.includes("ATOLL_LOG_LEVEL is 'none' and must be one of");
  return finding('a start that is refused says why, and is not tried again', works, works ? said : output);
}

/** `atoll uninstall` leaves no unit and nothing active, and what it says about the data is true. */
async function uninstalled(scene: Scene, command: string, holds: string): Promise<Finding[]> {
  const { exitCode, output } = await sh(
    scene,
    `cd /; ${ownNumber}; echo "installation <$number>"; ${command} 2>&1 && ${holds} && echo DONE; echo LEFT
     ${left}
     ls /etc/systemd/system/atoll.service /etc/systemd/system/*.wants/atoll.service 2>/dev/null; systemctl is-failed atoll | grep failed`,
    timeoutMs,
  );
  const [said = '', remains = ''] = output.split('LEFT\n');
  const ended = /^installation <\d+>$/m.test(said) && /^DONE$/m.test(said) && !/\n\s+at /.test(said);
  const remaining = remains.trim();
  return [
    finding(command, ended, ended ? '' : `exit ${exitCode}: ${said}`),
    finding(`${command} leaves nothing`, output.includes('LEFT\n') && ['', taken].includes(remaining), remaining),
  ];
}

/** A service with a sandbox, whose package is purged while it runs. */
async function purged(scene: Scene): Promise<Finding> {
  const { exitCode, output } = await sh(
    scene,
    `cd /; before=0; atoll install && ${untilServes(scene.port)} && ${ownNumber} && echo "installation <$number>" || exit 9
     apt-get purge --yes atoll; echo LEFT
     ${left}
     ls -d /usr/lib/atoll /usr/bin/atoll /var/lib/atoll /var/cache/atoll /etc/systemd/system/atoll.service 2>/dev/null; true`,
    timeoutMs,
  );
  const [said = '', remains = ''] = output.split('LEFT\n');
  const works = exitCode === 0 && /^installation <\d+>$/m.test(said) && remains.trim() === '';
  return finding('purging the package leaves nothing', works, works ? '' : `${said.slice(-300)}\n${remains}`);
}
