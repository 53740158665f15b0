/** One way to be a bad neighbour: what a sandbox does, as long as it is allowed to, to take what all share. */
export type Hostility = {
  name: string;
  /** Run by /bin/sh. It does not end by itself. */
  command: string;
  user: 'root' | 'user';
};

const python = (program: string) => `exec python3 -c '${program}'`;

/**
 * The rows of SECURITY.md's table of shares that concern time rather than counts, and other things that keep a kernel
 * busy for long. All of them need only a program inside.
 */
export const hostilities: Hostility[] = [
  {
    name: 'fork bomb',
    user: 'user',
    command: python('import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'),
  },
  { name: 'fork bomb of root', user: 'root', command: ':(){ :|:& }; while true; do : | : & done' },
  { name: 'processes that start and end', user: 'user', command: many(64, 'while true; do /bin/true; done') },
  { name: 'busy processors', user: 'user', command: many(64, 'while :; do :; done') },
  {
    name: 'memory beyond the limit',
    user: 'root',
    command: 'while true; do python3 -c "x=[bytearray(1<<20) for _ in range(1<<20)]"; done',
  },
  {
    name: 'memory at the limit, read and written',
    user: 'user',
    command: python('import os\nx=bytearray(380<<20)\nwhile True:\n  for i in range(0,len(x),4096): x[i]=(x[i]+1)&255'),
  },
  {
    name: 'files of layers read again and again',
    user: 'root',
    command: many(8, 'while true; do cat /usr/bin/* /usr/lib/*/* > /dev/null 2>&1; done'),
  },
  {
    name: 'disk written and synced',
    user: 'user',
    command: many(4, 'while true; do dd if=/dev/zero of=/tmp/f$$ bs=1M count=64 conv=fsync 2>/dev/null; done'),
  },
  {
    name: 'disk full',
    user: 'user',
    command: 'while true; do cat /dev/zero > /tmp/full 2>/dev/null; rm -f /tmp/full; done',
  },
  {
    name: 'files made and removed',
    user: 'user',
    command: many(
      4,
      'mkdir -p /tmp/d$$; cd /tmp/d$$; while true; do for i in $(seq 2000); do : > $i; done; rm -f *; sync; done',
    ),
  },
  {
    name: 'namespaces made and left',
    user: 'root',
    command: many(16, 'while true; do unshare -mnpuif true 2>/dev/null || unshare -Ur true; done'),
  },
  {
    name: 'pipes and context switches',
    user: 'user',
    command: many(16, 'while true; do yes | head -c 50000000 > /dev/null; done'),
  },
  {
    name: 'connections on its loopback',
    user: 'user',
    command: python(
      'import socket,threading\ns=socket.socket();s.bind(("127.0.0.1",0));s.listen(4096)\n' +
        'def serve():\n  while True: s.accept()[0].close()\n' +
        'def call():\n  while True:\n    try: c=socket.create_connection(s.getsockname());c.recv(1);c.close()\n    except OSError: pass\n' +
        '[threading.Thread(target=f).start() for f in [serve]*4+[call]*8]',
    ),
  },
  {
    name: 'connections out, all refused',
    user: 'user',
    command: python(
      'import socket,threading\n' +
        'def call():\n  while True:\n    try: socket.create_connection(("192.0.2.1",80),0.2).close()\n    except OSError: pass\n' +
        '[threading.Thread(target=call).start() for _ in range(64)]',
    ),
  },
  {
    name: 'packets out',
    user: 'user',
    command: many(
      4,
      python(
        'import socket\ns=socket.socket(2,2)\nwhile True:\n  try: s.sendto(b"x"*1200,("192.0.2.1",9))\n  except OSError: pass',
      ),
    ),
  },
  {
    name: 'questions for names',
    user: 'user',
    command: many(
      8,
      python(
        'import socket,random\nwhile True:\n  try: socket.getaddrinfo("%d.example.invalid"%random.random(),80)\n  except OSError: pass',
      ),
    ),
  },
  { name: 'output without end', user: 'user', command: many(4, 'exec yes "$(head -c 1000 /dev/zero | tr "\\0" x)"') },
  {
    name: 'terminals opened and closed',
    user: 'user',
    command: many(8, python('import os\nwhile True:\n  a,b=os.openpty();os.close(a);os.close(b)')),
  },
  {
    name: 'watches made and removed',
    user: 'user',
    command: many(
      4,
      python(
        'import ctypes,os\nl=ctypes.CDLL(None)\nwhile True:\n  f=l.inotify_init()\n  [l.inotify_add_watch(f,p,4095) for p in (b"/tmp",b"/etc",b"/usr")];os.close(f)',
      ),
    ),
  },
  {
    name: 'system calls without end',
    user: 'user',
    command: many(16, python('import os\nwhile True: os.stat("/"); os.getppid()')),
  },
];

/** A shell command that runs another one `count` times side by side, and waits. */
function many(count: number, command: string): string {
  const quoted = command.replaceAll("'", "'\\''");
  return `for n in $(seq ${count}); do sh -c '${quoted}' & done; wait`;
}
