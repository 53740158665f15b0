import type { Finding } from '../inside/feature.ts';
import { finding, sh, type Scene, type Stage } from './stage.ts';
import { bothKinds, lookAfterwards } from './survivors.ts';
import { startAgain } from './up.ts';

const timeoutMs = 20 * 60_000;

/**
 * Printed if another platform on the machine has taken the returned number: what bears the number is then that
 * platform's.
 */
export const taken = 'another installation has its number now';

/** The installation's active things on the machine, one per line: none, after `atoll down`. */
export const left = `
owner=$(cat /run/atoll/$number/owner 2>/dev/null)
if [ -n "$owner" ] && [ "$owner" != "$ATOLL_DATA_DIR" ]; then echo "${taken}"; else
ls -d /sys/fs/cgroup/$atoll /sys/fs/cgroup/*/$atoll 2>/dev/null
nft list tables 2>/dev/null | grep -w "$atoll"
ls /sys/class/net | grep "^$links"
ls -d /run/atoll/$number 2>/dev/null
fi
losetup -a 2>/dev/null | grep "$ATOLL_DATA_DIR"
cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F "$ATOLL_DATA_DIR/" | cut -d" " -f5 | sort -u
ps -eo pid,args | grep -F "$ATOLL_DATA_DIR" | grep -v grep
`;

/**
 * Remains of sandboxes in the data directory: none, after `atoll down --all`. Formatted empty disks are kept to copy
 * from.
 */
const files = 'ls $ATOLL_DATA_DIR/node/sandboxes $ATOLL_DATA_DIR/node/disks | grep -v -e "^empty-" -e ":$" -e "^$"';

/**
 * `atoll down`, with running and paused sandboxes: it ends without complaint and leaves nothing active; the paused ones
 * come back with the next start. Then `atoll down --all`, after which nothing is left of them either.
 */
export const down: Stage = {
  name: 'down',
  async run(scene) {
    const survivors = await bothKinds(scene);
    return [
      ...(await goDown(scene, 'down', '')),
      await startAgain(scene, 'down: the platform starts again'),
      ...(await lookAfterwards(scene, 'down', survivors)),
      ...(await goDown(scene, 'down --all', files)),
    ];
  },
};

/** Finds the installation's number on the machine, and the names that begin with it. */
export const ownNumber =
  'number=$(grep -lx "$ATOLL_DATA_DIR" /run/atoll/*/owner | head -1 | cut -d/ -f4); atoll=atoll$number; links=at$number-';

async function goDown(scene: Scene, command: string, alsoLeft: string): Promise<Finding[]> {
  const script = `${ownNumber}; echo "installation <$number>"; bin/atoll ${command} 2>&1; echo "exit $?"; echo LEFT; ${left}${alsoLeft}`;
  const { output } = await sh(scene, script, timeoutMs);
  const [said = '', remains = ''] = output.split('LEFT\n');
  const known = /^installation <\d+>\n/.test(said);
  const remaining = remains.trim();
  const ended = known && /exit 0/.test(said) && !/\n\s+at /.test(said);
  return [
    finding(command, ended, ended ? '' : said),
    finding(
      `${command} leaves nothing`,
      known && output.includes('LEFT\n') && ['', taken].includes(remaining),
      remaining,
    ),
  ];
}
