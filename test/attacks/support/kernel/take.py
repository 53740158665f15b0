# Takes all it can of one thing, says how many it got, and holds them until its input ends.
import ctypes, fcntl, os, resource, signal, struct, sys

c = ctypes.CDLL(None, use_errno=True)
what, most = sys.argv[1], int(sys.argv[2])
held = []
# Numbers of system calls: arm64 has its own.
io_setup, add_key = (0, 217) if os.uname().machine == 'aarch64' else (206, 248)


def descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def inotify():
    return c.inotify_init() >= 0


def queues():
    # Without a name it lasts as long as this process.
    queue = ctypes.CDLL('librt.so.1', use_errno=True)
    name = f'/queue{os.getpid()}-{taken}'.encode()
    return queue.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0 and queue.mq_unlink(name) == 0


def terminals():
    held.append(os.openpty())
    return True


def aio():
    return c.syscall(io_setup, 100, ctypes.byref(ctypes.c_ulong(0))) >= 0


def signals():
    if not taken:
        signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    return c.sigqueue(os.getpid(), 40, 0) == 0


def locks():
    if taken % 1000 == 0:
        held.append(open(f'/tmp/locks{os.getpid()}-{taken}', 'w+'))
    fcntl.fcntl(held[-1], fcntl.F_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, taken % 1000 * 2, 1, 0))
    return True


def keys():
    return c.syscall(add_key, b'user', str(taken).encode(), b'x', 1, -2) >= 0


def loops():
    return fcntl.ioctl(os.open('/dev/loop-control', os.O_RDWR), 0x4C82) >= 0


def files():
    held.append(os.open('/dev/null', os.O_RDONLY))
    return True


def processes():
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    held.append(pid)
    return True


def semaphores():
    held.append(c.semget(0, 100, 0o600))
    return held[-1] >= 0


descriptors()
taken = 0
try:
    while taken < most and globals()[what]():
        taken += 1
except OSError:
    pass
print(taken, flush=True)
sys.stdin.read()
for pid in held if what == 'processes' else []:
    os.kill(pid, 9)
# They outlast who made them.
for semaphore in held if what == 'semaphores' else []:
    c.semctl(semaphore, 0, 0)
