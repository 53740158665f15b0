import { finding, sh, type Stage } from './stage.ts';

const timeoutMs = 20 * 60_000;

/** What of the installation is on the machine, a line each: nothing, after `atoll down`. */
const left = `
ls -d /sys/fs/cgroup/$atoll /sys/fs/cgroup/*/$atoll 2>/dev/null
nft list tables 2>/dev/null | grep -w "$atoll"
ls /sys/class/net | grep "^$links"
losetup -a 2>/dev/null | grep "$ATOLL_DATA_DIR"
cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F -e "$ATOLL_DATA_DIR/" -e "/run/$atoll" | cut -d" " -f5 | sort -u
ls -d /run/atoll/$number 2>/dev/null
ps -eo pid,args | grep -F "$ATOLL_DATA_DIR" | grep -v grep
`;

/** `atoll down`: it ends without a word of complaint and leaves nothing. */
export const down: Stage = {
  name: 'down',
  async run(scene) {
    const script = `number=$(grep -lx "$ATOLL_DATA_DIR" /run/atoll/*/owner | head -1 | cut -d/ -f4); atoll=atoll$number; links=at$number-; bin/atoll down 2>&1; echo "exit $?"; echo LEFT; ${left}`;
    const { output } = await sh(scene, script, timeoutMs);
    const [said = '', remains = ''] = output.split('LEFT\n');
    return [finding('down', /exit 0/.test(said) && !/\n\s+at /.test(said), said.replace(/exit 0\s*$/, '')), finding('down leaves nothing', remains.trim() === '', remains)];
  },
};
