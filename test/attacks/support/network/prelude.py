# What the attempts share. They run inside of a sandbox, as root.
import os, random, socket, ssl, struct, subprocess, time

ALLOWED, WILD, OTHER, ATTACKER, ANYCAST = '203.0.113.10', '203.0.113.12', '203.0.113.11', '203.0.113.66', '1.1.1.1'
RESOLVER, HOST, HOST_PUBLIC, SELF, GATEWAY = '8.8.8.8', '192.0.2.2', '203.0.113.200', '169.254.0.21', '169.254.0.22'
GATEWAY_MAC, SELF_MAC = bytes.fromhex('02a011000022'), bytes.fromhex('02a011000021')
WAIT = 0.7

# Addresses of the installation, whose number the runner says: what stands for its sandboxes, where its proxy listens and
# what it connects from.
def slot(n): return f'198.18.{(INSTALLATION * 2048 + n) >> 8}.{n}'
def proxy_source(n): return f'198.18.{(INSTALLATION * 2048 + 1024 + n) >> 8}.{n}'
PROXY, PLATFORM = f'198.19.0.{INSTALLATION + 1}', f'198.19.1.{INSTALLATION + 1}'

def tcp(host, port, data=b'', pieces=None, pause=0.0):
    s = socket.create_connection((host, port), WAIT); s.settimeout(WAIT)
    for piece in pieces or [data]:
        s.sendall(piece); time.sleep(pause)
    return drain(s)

def drain(s):
    out = b''
    try:
        while len(out) < 100_000:
            part = s.recv(65536)
            if not part: break
            out += part
    except OSError: pass
    print(out[:2000]); return out

def http(host, *lines, port=80, body=b''):
    return tcp(host, port, '\r\n'.join([*lines, '', '']).encode('latin1') + body)

def get(host, name, port=80): return http(host, 'GET / HTTP/1.1', f'Host: {name}', port=port)

def udp(host, port, data=b'x', times=1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(WAIT)
    for _ in range(times): s.sendto(data, (host, port))
    print(s.recv(4096))

def extension(kind, data): return struct.pack('>HH', kind, len(data)) + data
def server_names(*names, kind=0):
    entries = b''.join(struct.pack('>BH', kind, len(n)) + n for n in (n.encode('latin1') if isinstance(n, str) else n for n in names))
    return extension(0, struct.pack('>H', len(entries)) + entries)
def message(extensions):
    joined = b''.join(extensions) + extension(43, b'\x02\x03\x03') + extension(10, b'\x00\x02\x00\x17') + extension(13, b'\x00\x02\x04\x03') + extension(11, b'\x01\x00')
    body = b'\x03\x03' + bytes(32) + b'\x00' + b'\x00\x04\xc0\x2b\xc0\x2f' + b'\x01\x00' + struct.pack('>H', len(joined)) + joined
    return b'\x01' + struct.pack('>I', len(body))[1:] + body
def record(data, kind=22, version=b'\x03\x01'): return bytes([kind]) + version + struct.pack('>H', len(data)) + data
def hello(*extensions): return record(message(extensions))

def tls(address, sni, request=None, port=443, alpn=None):
    context = ssl._create_unverified_context()
    if alpn: context.set_alpn_protocols(alpn)
    s = context.wrap_socket(socket.create_connection((address, port), 2), server_hostname=sni); s.settimeout(WAIT)
    s.sendall(request or f'GET / HTTP/1.1\r\nHost: {sni}\r\n\r\n'.encode())
    return drain(s)

def question(name, kind=1, identifier=7, flags=0x100, count=1, extra=b'', raw=None):
    encoded = raw if raw is not None else b''.join(bytes([len(l)]) + l.encode('latin1') for l in name.split('.')) + b'\x00'
    return struct.pack('>6H', identifier, flags, count, 0, 0, 1 if extra else 0) + (encoded + struct.pack('>2H', kind, 1)) * count + extra
def ask(server, name, **more): udp(server, 53, question(name, **more))
def ask_tcp(server, name, **more):
    q = question(name, **more); tcp(server, 53, struct.pack('>H', len(q)) + q)

def checksum(data):
    data += b'\x00' * (len(data) % 2); total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ip(destination, payload, protocol=17, source=SELF, identifier=77, fragment=0, options=b'', ttl=64):
    header = lambda check: struct.pack('>BBHHHBBH4s4s', 0x40 | (5 + len(options) // 4), 0, 20 + len(options) + len(payload), identifier, fragment, ttl, protocol, check,
                                       socket.inet_aton(source), socket.inet_aton(destination)) + options
    return header(checksum(header(0))) + payload
def datagram(data=b'smuggled', port=7000, source_port=4444): return struct.pack('>4H', source_port, port, 8 + len(data), 0) + data
def segment(destination, port=80, flags=2, data=b'', source=SELF, source_port=4445, sequence=1):
    header = lambda check: struct.pack('>2H2IBB3H', source_port, port, sequence, 1, 0x50, flags, 65535, check, 0)
    pseudo = socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack('>BBH', 0, 6, 20 + len(data))
    return header(checksum(pseudo + header(0) + data)) + data
def raw(*packets):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for packet in packets: s.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
def frame(payload, kind=0x0800, destination=GATEWAY_MAC, source=SELF_MAC):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0))
    s.send(destination + source + struct.pack('>H', kind) + payload)
def ping(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.settimeout(WAIT)
    body = struct.pack('>BBHHH', 8, 0, 0, 1, 1) + b'carried out'; s.sendto(body[:2] + struct.pack('>H', checksum(body)) + body[4:], (host, 0)); print(s.recv(1000))
def run(command): print(subprocess.run(command, shell=True, capture_output=True, text=True, timeout=6))
def each(action, count):
    for n in range(count):
        try: action(n)
        except OSError as error: print(n, error)

# Sends frames and tells what comes back. Nothing that the host says of itself may: no frame but IPv4, no ICMP, no address of its own.
def hears(*frames, wait=0.4):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('eth0', 3)); s.settimeout(0.05)
    for f in frames: s.send(f)
    end = time.time() + wait
    while time.time() < end:
        try: data, (_, _, kind, *_) = s.recvfrom(2000)
        except TimeoutError: continue
        if kind == 4: continue # what we have sent
        ethertype = struct.unpack('>H', data[12:14])[0]
        if ethertype != 0x0800: print('LEAK: a frame of kind', hex(ethertype), data[14:60].hex())
        elif data[23] == 1: print('LEAK: ICMP from', socket.inet_ntoa(data[26:30]))
        elif socket.inet_ntoa(data[26:30]) in (HOST, HOST_PUBLIC, '127.0.0.1', '10.0.0.5'): print('LEAK: a packet from', socket.inet_ntoa(data[26:30]))
    s.close()
def eth(payload, kind, destination=GATEWAY_MAC, source=SELF_MAC): return destination + source + struct.pack('>H', kind) + payload
EVERYBODY = b'\xff' * 6
def arp(target, operation=1, sender=SELF, sender_mac=SELF_MAC, target_mac=bytes(6), hardware=1, protocol=0x0800, sizes=(6, 4), to=EVERYBODY, kind=0x0806):
    return eth(struct.pack('>HHBBH', hardware, protocol, *sizes, operation) + sender_mac + socket.inet_aton(sender) + target_mac + socket.inet_aton(target), kind, to)
def ip6(payload, following=58, source='fe80::a0:11ff:fe00:21', destination='ff02::1', hops=255):
    return b'\x60\0\0\0' + struct.pack('>HBB', len(payload), following, hops) + socket.inet_pton(10, source) + socket.inet_pton(10, destination) + payload
def icmp6(kind, body, source='fe80::a0:11ff:fe00:21', destination='ff02::1', hops=255):
    pseudo = socket.inet_pton(10, source) + socket.inet_pton(10, destination) + struct.pack('>II', 4 + len(body), 58)
    sum6 = checksum(pseudo + struct.pack('>BBH', kind, 0, 0) + body)
    mac = bytes.fromhex('333300000001') if destination.startswith('ff') else GATEWAY_MAC
    return eth(ip6(struct.pack('>BBH', kind, 0, sum6) + body, 58, source, destination, hops), 0x86dd, mac)

# Whether the proxy still serves us, which share it with what was tried.
def still(within=10.0):
    s = socket.create_connection((ALLOWED, 80), within); s.settimeout(within)
    s.sendall(b'GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n')
    out = b''
    while part := s.recv(65536): out += part
    if b'page of allowed' in out: print('still served')
def many(count, action, seconds=3.0):
    kept, end = [], time.time() + seconds
    for n in range(count):
        if time.time() > end: break
        try: kept.append(action(n))
        except OSError: pass
    return kept
# Says outside that all is taken, and goes on when it is told to: `Held` of the test.
def hold():
    open('/taken', 'w').close()
    end = time.time() + 60
    while not os.path.exists('/go') and time.time() < end: time.sleep(0.05)
def connected(host, port, data=b'', wait=1.0):
    s = socket.create_connection((host, port), wait); s.settimeout(wait)
    if data: s.sendall(data)
    return s
