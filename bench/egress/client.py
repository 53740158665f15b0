# Measures requests from inside of a sandbox: `connections N URL` (a new connection each), `requests N URL` (one connection),
# `download URL`. Prints ms, one a line; of a download, MB/s.
import http.client, ssl, sys, time
from urllib.parse import urlsplit

def connect(url):
    parts = urlsplit(url)
    if parts.scheme == 'https':
        context = connect.context = getattr(connect, 'context', None) or ssl._create_unverified_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=20, context=context), parts.path or '/'
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=20), parts.path or '/'

def ask(connection, path):
    connection.request('GET', path)
    return connection.getresponse().read()

kind, *rest = sys.argv[1:]
if kind == 'download':
    connection, path = connect(rest[0]); start = time.perf_counter(); connection.request('GET', path); answer = connection.getresponse(); size = 0
    while part := answer.read(1 << 20): size += len(part)
    print(size / (time.perf_counter() - start) / 1e6)
else:
    count, url = int(rest[0]), rest[1]
    connection, path = connect(url)
    for _ in range(count):
        start = time.perf_counter()
        if kind == 'connections': connection, path = connect(url)
        ask(connection, path)
        if kind == 'connections': connection.close()
        print((time.perf_counter() - start) * 1000)
