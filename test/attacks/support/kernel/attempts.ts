/**
 * Commands by which root in a sandbox tries to get at the host. Each ends with 0 only where it succeeds. What tools are missing for
 * is done by python3: a command that can't be run proves nothing.
 */

/** A system call by its number (x86-64). Ends with 0 only if the kernel carried it out. */
export const call = (number: number, ...args: (string | number)[]) =>
  `python3 -c 'import ctypes,sys; c=ctypes.CDLL(None,use_errno=True); r=c.syscall(${[number, ...args].join(',')}); sys.exit(0 if r>=0 else 1)'`;
const python = (...lines: string[]) => `python3 -c '${lines.join('\n')}'`;

/** Against kernels of either kind. */
export const attempts: Record<string, string> = {
  'mount a tmpfs': 'mount -t tmpfs none /mnt',
  'mount proc anew': 'mkdir -p /p && mount -t proc proc /p',
  'mount sysfs anew': 'mkdir -p /s && mount -t sysfs sysfs /s',
  'mount a device': 'mount -t ext4 /dev/loop0 /mnt',
  'bind-mount': 'mount --bind /proc/sys /mnt',
  'remount /proc/sys writable': 'mount -o remount,rw /proc/sys',
  'remount /sys writable': 'mount -o remount,rw /sys',
  'remount the root with devices': 'mount -o remount,dev /',
  'unmount the mask of a proc file': 'umount /proc/keys',
  'unmount /sys': 'umount /sys',
  'unmount the agent': 'umount /.agent',
  'mount by the new interface: fsopen': call(430, 'b"tmpfs"', 0),
  'clone a mount tree: open_tree': call(428, -100, 'b"/"', 1),
  'pivot_root': call(155, 'b"/"', 'b"/"'),
  'make a block device': 'mknod /root/disk b 254 0',
  'make a character device': 'mknod /root/mem c 1 1',
  'read the host’s disk': 'head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1',
  'read a loop device': 'head -c 1 /dev/loop0 || head -c 1 /dev/loop1',
  'get a loop device': `python3 -c 'open("/dev/loop-control")'`,
  'open the fuse device': `python3 -c 'open("/dev/fuse","r+b")'`,
  'open the tunnel device': `python3 -c 'open("/dev/net/tun","r+b")'`,
  'open the virtual machine device': `python3 -c 'open("/dev/kvm","r+b")'`,
  'read physical memory': 'head -c 1 /dev/mem || head -c 1 /proc/kcore | grep -q .',
  'read the kernel log': 'dmesg',
  'load a module: init_module': call(175, 'b""', 0, 'b""'),
  'load a module: finit_module': call(313, 0, 'b""', 0),
  'start another kernel: kexec_load': call(246, 0, 0, 0, 0),
  'reboot': call(169, '0xfee1dead', 672_274_793, '0x1234567', 0),
  'make a user namespace': 'unshare --user true',
  'make a mount namespace': 'unshare --mount true',
  'make a network namespace': 'unshare --net true',
  'make a namespace by clone flags': call(56, '0x10000011', 0, 0, 0, 0),
  'enter the namespaces of PID 1': 'nsenter --target 1 --mount --pid true',
  'bpf': call(321, 0, 0, 0),
  'io_uring': call(425, 8, '(ctypes.c_char*256)()'),
  'userfaultfd': call(323, 0),
  'perf events': call(298, 0, 0, -1, -1, 0),
  'kernel keyring': call(248, 'b"user"', 'b"a"', 'b"b"', 1, -3),
  'open by handle': call(304, -100, '(ctypes.c_char*128)()', 0),
  'change the clock': 'date --set "2001-01-01"',
  'change the host name': call(170, 'b"x"', 1),
  'change a kernel setting': 'echo x > /proc/sys/kernel/core_pattern',
  'change a network setting': 'echo 1 > /proc/sys/net/ipv4/ip_forward',
  'trigger a system request': 'echo h > /proc/sysrq-trigger',
  'move to another cgroup': 'for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do [ -e $f ] && echo $$ > $f && exit 0; done; exit 1',
  'raise the memory limit': 'for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do [ -e $f ] && echo 9999999999 > $f && exit 0; done; exit 1',
  'raise the limit of processes': 'for f in /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max; do [ -e $f ] && echo max > $f && exit 0; done; exit 1',
  'raise the share of the processor': 'for f in /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu.weight; do [ -e $f ] && echo 10000 > $f && exit 0; done; exit 1',
  'allow itself a device': 'echo "a *:* rwm" > /sys/fs/cgroup/devices/devices.allow',
  'set a release agent': 'echo /x > /sys/fs/cgroup/memory/release_agent',
  'make a cgroup': 'if [ -d /sys/fs/cgroup/memory ]; then mkdir /sys/fs/cgroup/memory/x; else mkdir /sys/fs/cgroup/x; fi',
  'change the agent': 'touch /.agent/x || touch /.agent/agent || chmod 777 /.agent/agent',
  'put another agent in its place': 'mv /.agent /gone || rm -rf /.agent',
  'configure the network': 'ip link add dummy0 type dummy',
  'change routes': 'ip route replace default via 169.254.0.23 dev eth0 onlink',
  'open a vsock': `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'`,
  'type into the terminal of another': python('import fcntl,os', 'm,s=os.openpty()', 'fcntl.ioctl(s,0x5412,b"x")'),
  'raise a resource limit': 'ulimit -Hn 99999999',
};

/** What is done to a kernel of the sandbox's own, where it has one, and reaches nobody else. */
export const ofOwnKernel = [
  'read the kernel log', 'make a user namespace', 'make a namespace by clone flags', 'change a network setting', 'remount the root with devices', 'make a mount namespace',
  'make a network namespace', 'put another agent in its place', 'remount /sys writable', 'mount sysfs anew', 'mount proc anew', 'bind-mount', 'mount a tmpfs',
];

const buffer = '(ctypes.c_char*4096)()';
/** Calls that a sandbox on the host's kernel must not reach, with arguments that would let the kernel go to work. */
export const systemCalls: Record<string, [number: number, ...args: (string | number)[]]> = {
  'uselib': [134, 'b"/bin/sh"'], 'ustat': [136, 1, buffer], 'sysfs': [139, 3], 'vhangup': [153], 'modify_ldt': [154, 0, buffer, 16], '_sysctl': [156, buffer], 'acct': [163, 'b"/acct"'],
  'settimeofday': [164, buffer, 0], 'mount': [165, 'b"none"', 'b"/mnt"', 'b"tmpfs"', 0, 0], 'umount2': [166, 'b"/proc"', 2], 'swapon': [167, 'b"/swap"', 0], 'swapoff': [168, 'b"/swap"'],
  'setdomainname': [171, 'b"x"', 1], 'iopl': [172, 3], 'ioperm': [173, 0, 1, 1], 'delete_module': [176, 'b"x"', 0], 'quotactl': [179, 0, 0, 0, 0], 'nfsservctl': [180, 0, 0, 0],
  'lookup_dcookie': [212, 0, buffer, 16], 'remap_file_pages': [216, 0, 0, 0, 0, 0], 'io_setup': [206, 1, buffer], 'io_submit': [209, 0, 0, 0], 'io_destroy': [207, 0], 'clock_settime': [227, 0, buffer],
  'mbind': [237, 0, 0, 0, 0, 0, 0], 'set_mempolicy': [238, 0, 0, 0], 'request_key': [249, 'b"user"', 'b"a"', 0, 0], 'keyctl: session keyring': [250, 1, 0], 'keyctl: read a key': [250, 11, 1, buffer, 16],
  'migrate_pages': [256, 0, 1, buffer, buffer], 'unshare: time': [272, '0x80'], 'unshare: cgroup': [272, '0x2000000'], 'unshare: ipc': [272, '0x8000000'], 'unshare: uts': [272, '0x4000000'], 'unshare: pid': [272, '0x20000000'],
  'move_pages': [279, 0, 0, 0, 0, 0, 0], 'fanotify_init': [300, 0, 0], 'fanotify_mark': [301, 0, 1, 1, -100, 'b"/"'], 'name_to_handle_at': [303, -100, 'b"/"', buffer, buffer, 0], 'clock_adjtime': [305, 0, buffer],
  'setns': [308, 0, 0], 'kcmp': [312, 1, 1, 0, 0, 0], 'kexec_file_load': [320, 0, 0, 0, 'b""', 0], 'clone3': [435, buffer, 88], 'io_uring_enter': [426, 0, 0, 0, 0, 0, 0], 'io_uring_register': [427, 0, 0, 0, 0],
  'move_mount': [429, -100, 'b"/"', -100, 'b"/mnt"', 0], 'fsconfig': [431, 0, 0, 0, 0, 0], 'fsmount': [432, 0, 0, 0], 'fspick': [433, -100, 'b"/"', 0], 'pidfd_getfd': [438, 0, 0, 0], 'process_madvise': [440, 0, 0, 0, 0, 0],
  'mount_setattr': [442, -100, 'b"/"', 0, buffer, 32], 'quotactl_fd': [443, 0, 0, 0, 0], 'memfd_secret': [447, 0], 'set_mempolicy_home_node': [450, 0, 0, 0, 0], 'cachestat': [451, 0, 0, 0, 0], 'statmount': [457, buffer, buffer, 16, 0],
  'listmount': [458, buffer, buffer, 1, 0], 'lsm_set_self_attr': [460, 0, 0, 0, 0], 'open_tree_attr': [467, -100, 'b"/"', 0, 0, 0], 'a number that is none': [4000],
  'clone into a user namespace': [56, '0x10000011', 0, 0, 0, 0], 'clone into a network namespace': [56, '0x40000011', 0, 0, 0, 0], 'clone into a PID namespace': [56, '0x20000011', 0, 0, 0, 0],
  'clone into a mount namespace': [56, '0x00020011', 0, 0, 0, 0], 'personality: read implies exec': [135, '0x0400000'], 'a call through the x32 table': ['0x40000000+39' as unknown as number],
  'prlimit: processes': [302, 0, 6, '(ctypes.c_ulonglong*2)(99999999,99999999)', 0], 'setpriority: before everybody': [141, 0, 0, -20], 'sched_setscheduler: real time': [144, 0, 1, '(ctypes.c_int*1)(50)'],
  'ioprio_set: real time': [251, 1, 0, '(1<<13)'], 'mlock more than may be': [149, 'ctypes.cast((ctypes.c_char*(64<<20))(),ctypes.c_void_p)', 64 << 20],
};

/** Socket families, types and protocols that a sandbox on the host's kernel must not have, as `family, type, protocol`. */
export const sockets: Record<string, [family: number, type: number, protocol: number]> = {
  ...Object.fromEntries(
    Object.entries({ AX25: 3, IPX: 4, APPLETALK: 5, NETROM: 6, BRIDGE: 7, ATMPVC: 8, X25: 9, ROSE: 11, KEY: 15, PACKET: 17, ATMSVC: 20, RDS: 21, PPPOX: 24, LLC: 26, IB: 27, MPLS: 28, CAN: 29, TIPC: 30, BLUETOOTH: 31, RXRPC: 33, PHONET: 35, IEEE802154: 36, CAIF: 37, ALG: 38, NFC: 39, VSOCK: 40, KCM: 41, QIPCRTR: 42, SMC: 43, XDP: 44, MCTP: 45 }).map(
      ([name, family]) => [`AF_${name}`, [family, name === 'ALG' ? 5 : 3, 0] as [number, number, number]],
    ),
  ),
  'AF_PACKET by its older name': [2, 10, 0x300],
  'AF_PACKET for all protocols': [17, 3, 0x300],
  'SCTP': [2, 1, 132], 'SCTP over IPv6': [10, 5, 132], 'DCCP': [2, 6, 33], 'UDP-Lite': [2, 2, 136], 'multipath TCP': [2, 1, 262], 'L2TP': [2, 2, 115], 'SMC by TCP': [2, 1, 256],
  'netlink: audit': [16, 3, 9], 'netlink: netfilter': [16, 3, 12], 'netlink: device events': [16, 3, 15], 'netlink: generic': [16, 3, 16], 'netlink: IPsec': [16, 3, 6], 'netlink: crypto': [16, 3, 21], 'netlink: RDMA': [16, 3, 20], 'netlink: connector': [16, 3, 11],
};

/** Files of /proc and /sys that would tell of the host: empty, or not there. */
export const hiddenFiles = [
  ...['partitions', 'diskstats', 'cmdline', 'kcore', 'kallsyms', 'keys', 'key-users', 'timer_list', 'slabinfo', 'modules', 'interrupts', 'iomem', 'ioports', 'kmsg', 'config.gz', 'swaps', 'zoneinfo', 'softirqs', 'schedstat'].map(name => `/proc/${name}`),
  ...['buddyinfo', 'pagetypeinfo', 'vmallocinfo', 'mdstat', 'kpagecount', 'kpageflags', 'kpagecgroup', 'fs', 'acpi', 'scsi', 'driver', 'pressure', 'sched_debug', 'latency_stats'].map(name => `/proc/${name}`),
  ...['block', 'bus', 'class', 'dev', 'firmware', 'hypervisor', 'kernel', 'module', 'power', 'fs/ext4', 'fs/erofs', 'fs/fuse', 'fs/bpf', 'fs/pstore', 'devices/virtual', 'devices/platform', 'devices/pci0000:00', 'devices/virtual/bdi', 'class/net', 'block/loop0/loop/backing_file'].map(name => `/sys/${name}`),
];

/** Settings of the host's kernel: not to be written. */
export const settings = [
  'kernel/core_pattern', 'kernel/modprobe', 'kernel/hotplug', 'kernel/sysrq', 'kernel/panic', 'kernel/pid_max', 'kernel/threads-max', 'kernel/randomize_va_space', 'kernel/kptr_restrict', 'kernel/hostname', 'kernel/ns_last_pid', 'kernel/pty/max',
  'kernel/shmmax', 'kernel/poweroff_cmd', 'vm/overcommit_memory', 'vm/drop_caches', 'vm/panic_on_oom', 'vm/mmap_min_addr', 'fs/file-max', 'fs/suid_dumpable', 'fs/aio-max-nr', 'fs/protected_symlinks', 'fs/inotify/max_user_instances', 'fs/mqueue/queues_max',
  'user/max_user_namespaces', 'user/max_inotify_instances', 'net/ipv4/ip_forward', 'net/ipv4/conf/all/rp_filter', 'net/ipv6/conf/all/disable_ipv6', 'net/core/bpf_jit_enable',
].map(name => `/proc/sys/${name}`);

const request = (pid: number, code: number) => python('import ctypes,sys', 'c=ctypes.CDLL(None,use_errno=True)', `sys.exit(0 if c.ptrace(${code},${pid},0,0)>=0 else 1)`);
/** The agent's number; `withAgent` finds it. */
const theAgent = '$agent';
export const withAgent = (command: string) => `agent=$(pgrep -x agent | head -1); [ -n "$agent" ] || exit 127; ${command}`;
/** What init and agent hold: the sandbox's own tokens, and nothing that root in the sandbox may read. */
export const againstTheAgent: Record<string, string> = {
  'attach to init': request(1, 16), 'seize init': request(1, 0x4206), 'attach to the agent': request(2, 16), 'seize the agent': request(2, 0x4206),
  'read the memory of init': `python3 -c 'open("/proc/1/mem","rb")'`, 'write the memory of init': `python3 -c 'open("/proc/1/mem","r+b")'`,
  'read the memory of the agent': `python3 -c 'import sys; open("/proc/"+sys.argv[1]+"/mem","rb")' ${theAgent}`,
  'read the token of init': 'head -c 64 /proc/1/fd/3', 'read the token of the agent': `head -c 64 /proc/${theAgent}/fd/3`, 'write the token of the agent': `echo x > /proc/${theAgent}/fd/3`,
  'read the environment of the agent': `head -c 1 /proc/${theAgent}/environ`, 'read the mappings of the agent': `head -c 1 /proc/${theAgent}/maps`, 'read where the agent is in the kernel': `head -c 1 /proc/${theAgent}/stack`,
  'read the agent by another process’s call': python('import ctypes,sys', 'c=ctypes.CDLL(None)', 'b=ctypes.create_string_buffer(8)', 'v=(ctypes.c_void_p*2)(ctypes.addressof(b),8)', 'sys.exit(0 if c.syscall(310,2,v,1,v,1,0)>=0 else 1)'),
  'enter the root of init': 'ls /proc/1/root/', 'enter the directory of init': 'ls /proc/1/cwd/', 'find the agent’s file by its link': `ls -L /proc/${theAgent}/exe`,
  'spare itself when memory is short': 'echo -1000 > /proc/self/oom_score_adj',
  'take a descriptor of the agent': call(438, 'c.syscall(434,2,0)', 3, 0),
};
