// Resolves names under `localhost` to this machine, as systemd-resolved and libnss-myhostname do where they are
// installed.

import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const { lookup } = dns;
dns.lookup = (name, options, done) => lookup(name.endsWith('.localhost') ? 'localhost' : name, options, done);
syncBuiltinESMExports();
