/**
 * A program that keeps running in a neighbour, and records in /tmp/visited whatever reaches its port 7000 by that
 * family.
 */
export const noteVisitors = (family: 'AF_INET' | 'AF_INET6', anyAddress: string): string => `
import os, socket, threading
if os.fork(): os._exit(0)
os.setsid()
os.dup2(os.open('/dev/null', os.O_RDWR), 1); os.dup2(1, 2)
def note(text): open('/tmp/visited', 'a').write(text + '\\n')
def datagrams():
    s = socket.socket(socket.${family}, socket.SOCK_DGRAM); s.bind(('${anyAddress}', 7000))
    while True: note(f'datagram {s.recvfrom(100)}')
threading.Thread(target=datagrams).start()
l = socket.socket(socket.${family}); l.bind(('${anyAddress}', 7000)); l.listen()
while True: note(f'connection {l.accept()[1]}')
`;
