# What the attempts by IPv6 share, after prelude.py.
SELF6, GATEWAY6 = 'fda7:110:5b3c::21', 'fe80::22'

def tcp6(host, port, data=b'', scope=0):
    s = socket.socket(socket.AF_INET6); s.settimeout(WAIT); s.connect((host, port, 0, scope))
    if data: s.sendall(data)
    return drain(s)
def get6(host, name='allowed.test', port=80): return tcp6(host, port, f'GET / HTTP/1.1\r\nHost: {name}\r\n\r\n'.encode())
def udp6(host, port, data=b'x', scope=0):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(WAIT); s.sendto(data, (host, port, 0, scope)); print(s.recv(4096))
def ping6(host):
    s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6); s.settimeout(WAIT)
    s.sendto(struct.pack('>BBHHH', 128, 0, 0, 1, 1) + b'carried out', (host, 0)); print(s.recv(1000))

def sum6(protocol, payload, source, destination):
    return checksum(socket.inet_pton(10, source) + socket.inet_pton(10, destination) + struct.pack('>II', len(payload), protocol) + payload)
def udp_bytes(destination, data=b'smuggled', port=7000, source=SELF6):
    header = lambda check: struct.pack('>4H', 4444, port, 8 + len(data), check)
    return header(sum6(17, header(0) + data, source, destination) or 0xffff) + data
def tcp_bytes(destination, port=80, flags=2, data=b'', source=SELF6):
    header = lambda check: struct.pack('>2H2IBB3H', 4445, port, 1, 1, 0x50, flags, 65535, check, 0)
    return header(sum6(6, header(0) + data, source, destination)) + data
def icmp_bytes(kind, body, destination, source=SELF6, code=0):
    header = lambda check: struct.pack('>BBH', kind, code, check)
    return header(sum6(58, header(0) + body, source, destination)) + body
# One packet of a protocol, as root in the sandbox may send it.
def raw6(destination, payload, protocol):
    s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, protocol); s.sendto(payload, (destination, 0))
# Packets as they are, on the link itself.
def frame6(*packets, kind=0x86dd, destination=GATEWAY_MAC):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0))
    for packet in packets: s.send(destination + SELF_MAC + struct.pack('>H', kind) + packet)
    time.sleep(0.05)
# A header before the payload: its kind goes into the packet, `following` says what comes after it.
def fragment6(payload, following, offset=0, more=0, identifier=7): return struct.pack('>BBHI', following, 0, offset | more, identifier) + payload
def options6(payload, following): return bytes([following, 0, 1, 4, 0, 0, 0, 0]) + payload
def routing6(payload, following, hop, kind=0): return bytes([following, 2, kind, 1, 0, 0, 0, 0]) + socket.inet_pton(10, hop) + payload
